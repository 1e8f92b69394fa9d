"""card: the beginning and the end of a lesson."""

import gc

import pytest

import pytorch_lab as lab
from pytorch_lab.errors import UsageError
from pytorch_lab.widgets import guesses


def opening(**changes):
    arguments = {"goal": "See what is **registered**.", "minutes": 50, "needs": ["lesson 02"],
                 "changed": ["`nn.Buffer` exists."]}  # fmt: skip
    return lab.card("Modules", **arguments | changes)


def closing(lesson="03"):
    return lab.card("Modules", learned="What is hidden is not trained.", lesson=lesson)


def ask(id="03.p1", right=False, guess="4"):
    guesses.keep(id, ask="How many?", guess=guess, right=right, answer="0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "card('M') expected either `goal` (it opens a lesson) or `learned` (it closes one), "
             "got neither; give one."),
        ({"goal": "g", "learned": "l"}, "got both; give one."),
        ({"learned": "l"}, "card('M') expected `lesson` such as '03', got None"),
        ({"learned": "l", "lesson": "03."}, "expected `lesson` such as '03', got '03.'"),
        ({"learned": "", "lesson": "03"}, "card('M') expected `learned` as a sentence, got ''"),
        ({"goal": ""}, "card('M') expected `goal` as a sentence, got ''"),
        ({"goal": "g", "minutes": 0}, "expected `minutes` as a whole number, got 0."),
        ({"goal": "g", "needs": "x"}, "expected `needs` as a list of lines, got 'x'."),
        ({"goal": "g", "needs": [""]}, "expected each entry of `needs` as a sentence, got ''"),
        ({"goal": "g", "changed": ["a\nb"]},
         "expected each entry of `changed` on one line, got 'a\\nb'; split it."),
    ],
)  # fmt: skip
def test_refuses(arguments, message):
    with pytest.raises(UsageError) as caught:
        lab.card("M", **arguments)
    assert message in str(caught.value)


def test_title_is_needed():
    with pytest.raises(UsageError, match=r"card\(\.\.\.\) expected a title as a sentence, got ''"):
        lab.card("", goal="g")


def test_opening():
    assert str(opening()) == (
        "Lesson: Modules (50 minutes)\n  See what is registered.\nNeeds:\n  - lesson 02\n"
        "Changed since most tutorials were written:\n  - `nn.Buffer` exists."
    )
    page = opening().to_html()
    assert "<p>See what is <strong>registered</strong>.</p><p>50 minutes</p>" in page
    assert "<li><code>nn.Buffer</code> exists.</li>" in page
    assert "<ul>" not in lab.card("M", goal="g").to_html()


def test_closing_shows_the_guesses_of_its_lesson():
    ask("03.p1", right=False)
    ask("03.p1", right=True, guess="0")
    ask("03.p2", right=True, guess=0.5)
    ask("04.p1")
    ask("03.p3")
    assert closing().state["rows"] == [
        {"ask": "How many?", "guess": "4", "answer": "0", "mark": "right in the end"},
        {"ask": "How many?", "guess": "0.5", "answer": "0", "mark": "right"},
        {"ask": "How many?", "guess": "4", "answer": "0", "mark": "not right"},
    ]


def test_closing_fills_itself():
    card, other = closing(), closing("04")
    assert card.state["rows"] == []
    ask("03.p1")
    assert len(card.state["rows"]) == 1
    assert other.state["rows"] == []


def test_a_card_that_is_gone_is_not_called():
    card = closing()
    hears = len(guesses._listeners)
    card.close()
    del card
    gc.collect()
    ask("03.p1")
    assert len(guesses._listeners) < hears


def test_static_closing_knows_nothing_of_the_learner():
    before = (str(closing()), closing().to_html())
    ask("03.p1")
    assert (str(closing()), closing().to_html()) == before
    assert "your guesses of lesson 03 stand here" in before[1]


def test_an_entry_written_by_something_else_is_passed_over(progress_file):
    progress_file.write_text('{"exercises": {}, "guesses": {"03.x": {"seen": true}}}')
    assert closing().state["rows"] == []
