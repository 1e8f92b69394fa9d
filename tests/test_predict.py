"""predict: what an author may write, how a guess is marked, what is remembered."""

import json
import math
from pathlib import Path

import pytest

import pytorch_lab as lab
from pytorch_lab.errors import UsageError
from pytorch_lab.widgets import prose, question

CHOICES = {
    "4: two each": "An attribute would be registered; a `list` is **not** < looked into.",
    "0: none": "A plain list hides both layers.",
    "an error": "Nothing complains.",
}
ASK = "How many tensors does `tower.parameters()` yield?"
TABLE = json.loads(Path(__file__).with_name("number_guesses.json").read_text("utf-8"))


def tower(**changes):
    return lab.predict(
        **{"id": "03.p1", "ask": ASK, "choices": CHOICES, "answer": "0: none"} | changes
    )


def weight(**changes):
    arguments = {"id": "03.p2", "ask": "How much?", "number": 4.2, "tolerance": 0.3, "unit": "MB",
                 "why": "Four bytes each."}  # fmt: skip
    return lab.predict(**arguments | changes)


# --------------------------------------------------------------------------------- what is refused

MANY = {"a": "why a", "b": "why b"}
REFUSED = {
    "answer is no choice": (
        {"id": "03.p1", "ask": "?", "choices": MANY, "answer": "c"},
        "predict('03.p1') expected `answer` to be one of its choices, got 'c'; "
        "use one of 'a', 'b'.",
    ),
    "option without explanation": (
        {"id": "03.p1", "ask": "?", "choices": {"a": "x", "b": " "}, "answer": "a"},
        "predict('03.p1') expected an explanation of the option 'b' as a sentence, got ' '; "
        "write one.",
    ),
    "empty option": (
        {"id": "03.p1", "ask": "?", "choices": {"a": "x", "": "y"}, "answer": "a"},
        "expected an option as a sentence, got ''",
    ),
    "one option": (
        {"id": "03.p1", "ask": "?", "choices": {"a": "x"}, "answer": "a"},
        "expected `choices` as a dict of at least two options",
    ),
    "a list of options": (
        {"id": "03.p1", "ask": "?", "choices": ["a", "b"], "answer": "a"},
        "got ['a', 'b']; write {option: explanation, ...}.",
    ),
    "both kinds": (
        {"id": "03.p1", "ask": "?", "choices": MANY, "answer": "a", "number": 3},
        "predict('03.p1') expected either `choices` or `number`, got both; give one.",
    ),
    "neither kind": (
        {"id": "03.p1", "ask": "?"},
        "predict('03.p1') expected either `choices` or `number`, got neither; give one.",
    ),
    "no question": (
        {"id": "03.p1", "ask": "", "number": 3, "why": "w"},
        "predict('03.p1') expected the question as a sentence, got ''; write one.",
    ),
    "number without explanation": (
        {"id": "03.p1", "ask": "?", "number": 3},
        "expected an explanation of the number, `why=`, as a sentence, got ''",
    ),
    "no number": (
        {"id": "03.p1", "ask": "?", "number": math.nan, "why": "w"},
        "predict('03.p1') expected `number` as a finite number, got nan.",
    ),
    "True is no number": (
        {"id": "03.p1", "ask": "?", "number": True, "why": "w"},
        "expected `number` as a finite number, got True.",
    ),
    "negative tolerance": (
        {"id": "03.p1", "ask": "?", "number": 3, "tolerance": -1, "why": "w"},
        "expected a `tolerance` of 0 or more, got -1; it is how far off a guess may be.",
    ),
    "id with a space": (
        {"id": "03 p1", "ask": "?", "number": 3, "why": "w"},
        "predict(id, ...) expected an id without spaces such as '03.p1', got '03 p1'.",
    ),
    "no id": (
        {"id": "", "ask": "?", "number": 3, "why": "w"},
        "predict(id, ...) expected an id without spaces such as '03.p1', got ''.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name):
    arguments, message = REFUSED[name]
    with pytest.raises(UsageError) as caught:
        lab.predict(**arguments)
    assert message in str(caught.value)


# ------------------------------------------------------------------------------- how it is marked


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['guess']} for {row['answer']}")
def test_number_is_marked_as_in_javascript(row):
    """The same table is read by tests/js/piece.test.mjs."""
    asked = question.Number("x", "?", row["answer"], row["tolerance"], "", "w")
    assert asked.is_right(row["guess"]) is row["right"]


@pytest.mark.parametrize("guess", [None, True, "4", math.nan, math.inf, [4]])
def test_what_is_no_number_is_not_kept(guess):
    widget = weight()
    widget.on_guess(guess)
    assert widget.state["kept"] is None


# ---------------------------------------------------------------------------- what is remembered


def test_first_guess_stays(progress_file):
    widget = tower()
    assert widget.state["kept"] is None
    widget.on_guess("an error")
    assert widget.state["kept"] == {"guess": "an error", "right": False, "last": "an error"}
    widget.on_guess("0: none")
    assert widget.state["kept"] == {"guess": "an error", "right": False, "last": "0: none"}
    assert json.loads(progress_file.read_text())["guesses"]["03.p1"] == {
        "ask": ASK, "guess": "an error", "right": False, "answer": "0: none",
        "last": "0: none", "last_right": True, "tries": 2,
    }  # fmt: skip


def test_shown_again_when_made_anew():
    tower().on_guess("an error")
    assert tower().state["kept"] == {"guess": "an error", "right": False, "last": "an error"}
    weight().on_guess(4)
    assert weight().state["kept"] == {"guess": 4, "right": True, "last": 4}


def test_a_guess_that_is_no_option_any_more_is_not_shown():
    tower().on_guess("an error")
    renamed = {text.replace("an error", "a warning"): why for text, why in CHOICES.items()}
    assert tower(choices=renamed).state["kept"] is None


def test_a_guess_that_is_no_option_is_not_kept():
    widget = tower()
    widget.on_guess("7")
    assert widget.state["kept"] is None
    assert tower().state["kept"] is None


def test_trouble_is_said_in_the_widget(progress_file, monkeypatch):
    """A folder that is not there: the same to root, who may write everywhere."""
    widget = tower()
    monkeypatch.setenv("PYTORCH_LAB_PROGRESS", str(progress_file.parent / "gone" / "p.json"))
    widget._answer(widget, {"ask": "guess", "with": {"guess": "an error"}}, [])
    assert widget.state["trouble"].startswith("expected to write your progress to ")
    monkeypatch.setenv("PYTORCH_LAB_PROGRESS", str(progress_file))
    widget._answer(widget, {"ask": "guess", "with": {"guess": "an error"}}, [])
    assert widget.state["trouble"] is None
    assert widget.state["kept"]["guess"] == "an error"


# ------------------------------------------------------------------------------- the static forms


def test_text():
    assert str(tower()) == (
        "Predict: How many tensors does `tower.parameters()` yield?\n"
        "  ( ) 4: two each\n"
        "  ( ) 0: none\n"
        "  ( ) an error"
    )
    assert str(weight()) == "Predict: How much?\n  a number: ____ MB"


def test_html_folds_the_answer():
    page = tower().to_html()
    before, folded = page.split("<details>")
    assert "A plain list hides both layers." not in before
    assert folded.count("<li>") == 3
    assert folded.index("✓ Right:</strong> 0: none") < folded.index("4: two each")
    assert "a <code>list</code> is <strong>not</strong> &lt; looked into" in folded
    assert "<strong>4.2 MB (± 0.3)</strong> Four bytes each." in weight().to_html()


def test_static_forms_know_nothing_of_the_learner():
    fresh = tower()
    before = (str(fresh), fresh.to_html())
    fresh.on_guess("an error")
    again = tower()
    assert (str(again), again.to_html()) == before


def test_mimebundle():
    data, _ = tower()._repr_mimebundle_()
    assert data["text/plain"] == str(tower())
    assert data["text/html"] == tower().to_html()


def test_long_text_fits_80_columns():
    widget = tower(ask="word " * 60, choices={"option " * 40: "a", "b": "c"}, answer="b")
    assert max(map(len, str(widget).splitlines())) <= 80


def test_prose_escapes_what_it_does_not_mark():
    assert prose.to_html("`<b>` & **<i>**") == (
        "<code>&lt;b&gt;</code> &amp; <strong>&lt;i&gt;</strong>"
    )
