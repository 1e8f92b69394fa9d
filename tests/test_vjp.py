"""vjp: what goes back is real, what is drawn follows it, what cannot be drawn is refused."""

import math
import re

import pytest
import torch

from pytorch_lab.errors import UsageError
from pytorch_lab.widgets.vjp import MARGIN, REACH, SIZE, STEP, vjp

X = torch.tensor([1.0, 0.5])


def bend(x):
    return torch.stack([x[0] * x[1], x[0] + x[1] ** 2])


def bent(**changes):
    return vjp(**{"function": bend, "x": X, "target": (0.0, 1.0)} | changes)


def numbers(words):
    return [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", words)]


def every_choice():
    steps = [-REACH + STEP * k for k in range(round(2 * REACH / STEP) + 1)]
    return [(a, b) for a in steps for b in steps]


def test_every_choice_gives_what_the_whole_jacobian_gives():
    widget, jacobian = bent(), torch.autograd.functional.jacobian(bend, X)
    for v in every_choice():
        widget.on_choose(list(v))
        assert numbers(widget.state["back"]) == pytest.approx(
            (torch.tensor(v) @ jacobian).tolist(), abs=1e-3
        )


def test_the_target_is_reached_in_one_place_only():
    widget, reached = bent(), []
    for v in every_choice():
        widget.on_choose(list(v))
        reached += [v] if widget.state["reached"] else []
    assert reached == [(2.0, -1.0)]


def test_the_arrows_lie_tip_to_tail_and_inside_the_picture():
    widget = bent()
    for v in every_choice():
        widget.on_choose(list(v))
        ends = [
            [float(n) for n in re.findall(r"-?[\d.]+", path.replace("h0.1", ""))]
            for path in widget.state["arrows"]
        ]
        first, second, whole = ends
        assert first[:2] == whole[:2] == [SIZE / 2, SIZE / 2] or len(first) == 2
        assert second[:2] == first[2:4] or len(first) == 2 or len(second) == 2
        assert whole[-2:] == second[-2:]
        assert all(0 <= n <= SIZE for path in ends for n in path)


def test_up_is_more_and_the_longest_arrow_fits():
    widget = vjp(lambda x: 2 * x, X, target=(0.0, 4.0))
    widget.on_choose([0.0, 2.0])
    scale = (SIZE / 2 - MARGIN) / math.hypot(4, 4)  # at v = (2, 2)
    assert widget.state["arrows"][2].endswith(f"L{SIZE / 2} {round(SIZE / 2 - 4 * scale, 1)}")
    widget.on_choose([1.0, 2.0])
    assert widget.state["arrows"][0].endswith(f"L{round(SIZE / 2 + 2 * scale, 1)} {SIZE / 2}")


def test_the_learners_tensor_stays_as_it_was():
    mine = X.clone().requires_grad_()
    bent(x=mine).on_choose([2.0, 2.0])
    assert mine.grad is None
    with torch.no_grad():
        assert bent().state["back"] == "[0.5, 1]"


def test_a_row_of_zeros_and_a_double_are_drawn_too():
    widget = vjp(lambda x: torch.stack([x[0], x[0] * 0]), X.double(), target=(2.0, 0.0))
    assert widget.state["rows"] == ["[1, 0]", "[0, 0]"]
    assert widget.state["arrows"][1].endswith("h0.1")
    widget.on_choose([-1.0, 0.0])
    assert widget.state["back"] == "[-1, 0]"


def test_text_and_page_tell_the_same_and_are_stable():
    widget = bent()
    assert str(widget).splitlines() == [
        "Choose v:",
        "  x = [1, 0.5], y = [0.5, 1.25]",
        "  row 0 of J = [0.5, 1]",
        "  row 1 of J = [1, 1]",
        "  v = [1, 0]: v @ J = 1 × row 0 + 0 × row 1 = [0.5, 1]",
        "  target: v @ J = [0, 1]",
    ]
    assert widget.to_html() == bent().to_html()
    assert "<img alt=" in widget.to_html()


REFUSED = {
    "three inputs": ({"x": torch.ones(3)}, "expected `x` as two real numbers, got torch.float32"),
    "whole numbers": ({"x": torch.ones(2).long()}, "got torch.int64 of shape (2,)"),
    "a list": ({"x": [1.0, 2.0]}, "got [1.0, 2.0]"),
    "one result": ({"function": lambda x: x.sum()}, "expected a result of shape (2,)"),
    "no tensor": ({"function": lambda x: 1.0}, "got float without a graph"),
    "no graph": ({"function": lambda x: x.detach()}, "got shape (2,) without a graph"),
    "a far target": ({"target": (50.0, 0.0)}, "which no position of them reaches"),
    "a target too near": ({"target": (0.5, 1.0)}, "which is where it starts"),
    "half a target": ({"target": (1.0,)}, "expected `target` as two numbers, got (1.0,)"),
    "a target of words": ({"target": ("a", "b")}, "expected `target` as two numbers"),
    "no number": ({"v": (math.nan, 1.0)}, "expected `v` as two numbers, got (nan, 1.0)"),
}


@pytest.mark.parametrize(("changes", "says"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_drawn_is_refused(changes, says):
    with pytest.raises(UsageError, match=re.escape(says)):
        bent(**changes)


def test_a_strange_question_of_the_front_end_becomes_a_note():
    widget = bent()
    widget._answer(widget, {"ask": "choose", "with": {"v": ["x", None]}}, [])
    assert "expected `v` as two numbers" in widget.state["trouble"]
    widget._answer(widget, {"ask": "choose", "with": {"v": [1, 1]}}, [])
    assert (widget.state["trouble"], widget.state["back"]) == (None, "[1.5, 2]")
