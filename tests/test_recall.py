"""recall: several questions, kept one by one."""

import json

import pytest

import pytorch_lab as lab
from pytorch_lab.errors import UsageError

SUM = {"ask": "What is left?", "choices": {"the sum": "They add up.", "the last": "No."},
       "answer": "the sum"}  # fmt: skip
COUNT = {"ask": "How many leaves?", "number": 2, "why": "`w` and `b`."}


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([], "recall('03.recall') expected a list of questions, got []; write"),
        (SUM, "recall('03.recall') expected a list of questions, got {'ask'"),
        ([SUM, "x"], "recall('03.recall') expected question 2 as a dict with 'ask'"),
        ([{"answer": "a"}], "expected question 1 as a dict with 'ask'"),
        ([SUM | {"hint": "x"}], "expected question 1 as a dict with 'ask'"),
        (
            [SUM, SUM | {"answer": "x"}],
            "recall('03.recall'), question 2, expected `answer` to be one of its choices, got 'x'",
        ),
    ],
)
def test_refuses(questions, message):
    with pytest.raises(UsageError) as caught:
        lab.recall("03.recall", questions)
    assert message in str(caught.value)


def test_keeps_each_guess(progress_file):
    widget = lab.recall("03.recall", [SUM, COUNT])
    assert widget.state["kept"] == [None, None]
    widget.on_guess(1, 3)
    widget.on_guess(7, 3)
    widget.on_guess(0, "nothing")
    assert widget.state["kept"] == [None, {"guess": 3, "right": False, "last": 3}]
    assert list(json.loads(progress_file.read_text())["guesses"]) == ["03.recall.2"]
    assert lab.recall("03.recall", [SUM, COUNT]).state["kept"] == widget.state["kept"]


def test_static_forms():
    widget = lab.recall("03.recall", [SUM, COUNT])
    assert str(widget) == (
        "Recall:\n1. What is left?\n  ( ) the sum\n  ( ) the last\n"
        "2. How many leaves?\n  a number: ____"
    )
    assert widget.to_html().count("<details>") == 2
