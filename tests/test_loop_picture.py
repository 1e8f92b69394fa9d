"""The loop's picture: where curves and bars stand, and what is said without a kernel."""

import base64
import functools
import json
import math
import re

import pytest
import torch
from torch import nn

import pytorch_lab as lab
from pytorch_lab import loop
from pytorch_lab.errors import UsageError
from pytorch_lab.loop import Failure, LoopRun, LoopRuns, Remark
from pytorch_lab.widgets.loop import BOTTOM, LEFT, RIGHT, STRIP_HEIGHT, STRIP_WIDTH, TOP

ORDER = list(loop.RIGHT)


def made(losses, norms=None, motions=None, **more):
    count = len(losses)
    return LoopRun(
        ("step",), ("optimizer.step()",), count, count, tuple(losses),
        tuple(norms or [1.0] * count), tuple(motions or [1.0] * count),
        (0.1,) * count, (0,) * count, (0,) * count, **more,
    )  # fmt: skip


def points(path):
    return [tuple(map(float, pair)) for pair in re.findall(r"[ML]([\d.]+) ([\d.-]+)", path)]


def heights(bars):
    """How high each bar is."""
    return [STRIP_HEIGHT - float(top) for top in re.findall(r"M[\d.]+ 40V([\d.]+)h", bars)]


def test_heights_are_proportional():
    """Against the rule of three, on a scale from 0 to 4 and turns 1 to 3."""
    state = lab.show(made([4.0, 2.0, 1.0])).state
    assert points(state["scales"]["linear"]["paths"][0]) == [
        (LEFT, TOP),
        ((LEFT + RIGHT) / 2, TOP + (BOTTOM - TOP) / 2),
        (RIGHT, TOP + (BOTTOM - TOP) * 3 / 4),
    ]
    assert [label for _, label in state["x_ticks"]] == ["1", "2", "3"]


def test_strips_of_several_orders_share_their_scale():
    runs = LoopRuns((("a", made([1, 1], [1.0, 2.0])), ("b", made([1, 1], [4.0, None]))))
    a, b = [run["strips"][0] for run in lab.show(runs).state["runs"]]
    low, middle, high = *heights(a["bars"]), *heights(b["bars"])
    assert (low, middle, high) == pytest.approx((high / 4, high / 2, STRIP_HEIGHT - 3), abs=0.06)
    assert (a["says"], b["says"]) == ("1 to 2", "4 to 4")
    assert len(heights(b["bars"])) == 1  # nothing was found in its second turn


def test_what_is_no_number_is_marked():
    (strip, _) = lab.show(made([1, math.nan], [1.0, math.nan])).state["runs"][0]["strips"]
    assert strip["bad"].startswith(f"M{STRIP_WIDTH / 2:.1f} ")
    assert len(heights(strip["bars"])) == 1
    path = lab.show(made([1.0, math.inf, 2.0])).state["scales"]["linear"]["paths"][0]
    assert path.count("M") == 2


def test_a_run_that_flies_away_is_drawn_logarithmically():
    losses = [1.0, 0.5, 0.4, 0.3, 0.2, 1e12]
    state = lab.show(made(losses)).state
    assert [scale["first"] for scale in state["scales"].values()] == [False, True]
    assert [scale["first"] for scale in lab.show(made([2.0, 1.0])).state["scales"].values()] == [
        True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "losses",
    [(), (1.0,), (0.0, 0.0), (-3.0, -1.0), (math.nan, math.nan), (1e-300, 1e300), range(1, 5001)],
)
def test_everything_stays_in_the_picture(losses):
    widget = lab.show(made(list(losses)))
    for scale in widget.state["scales"].values():
        for x, y in points(scale["paths"][0]):
            assert LEFT <= x <= RIGHT
            assert TOP <= y <= BOTTOM
    assert len(widget.state["stops"]) <= 400
    assert len(json.dumps(widget.state, allow_nan=False)) < 150_000
    assert widget.to_html() == lab.show(made(list(losses))).to_html()


def test_each_order_stands_beside_its_curve_with_what_was_said():
    runs = loop.compare({"right": ORDER, "late": ["forward", "loss", "backward", "backward"]})
    state = lab.show(runs).state
    right, late = state["runs"]
    assert "\n".join("".join(text for _, text in line) for line in right["code"]) == "\n".join(
        loop.lines(ORDER)
    )
    assert (right["good"], right["faulty"], right["failure"]) == (True, None, None)
    assert (late["good"], late["faulty"]) == (False, 4)
    assert late["failure"].startswith("Stopped in turn 1, backward: RuntimeError")
    assert late["values"]["loss"][:2] == [f"{runs['late'].losses[0]:.3g}", "–"]
    assert state["title"].startswith("the last loss of 2 orders: right ")


def test_the_graph_has_a_column_only_where_it_grows():
    assert "graph on total" not in lab.show(loop.run(turns=2)).state["runs"][0]["values"]
    values = lab.show(loop.run([*ORDER, "total"], turns=2)).state["runs"][0]["values"]
    assert values["graph on total"] == ["8", "16"]


def test_without_a_kernel_there_is_a_picture_and_the_text():
    failure = Failure(3, 1, "<b>", "ValueError", "a < b", "")
    run = made([2.0, 1.0], failure=failure, remarks=(Remark("x", "note", "use `step` & <i>"),))
    page = lab.show(LoopRuns((("<script>", run),))).to_html()
    assert "<script>" not in page
    assert "<b>" not in page
    assert "turn 3, &lt;b&gt;: ValueError: a &lt; b." in page
    svg = base64.b64decode(re.search(r'base64,([^"]+)"', page)[1]).decode()
    assert "&lt;script&gt;" in svg
    assert str(lab.show(run)) == str(run)


def test_what_can_not_be_shown_is_a_sentence():
    with pytest.raises(UsageError, match="the LoopRun alone"):
        lab.show(made([1.0]), 3)
    with pytest.raises(UsageError, match="at most 6 orders in one picture, got 7"):
        lab.show(LoopRuns(tuple((str(k), made([1.0])) for k in range(7))))


# ---------------------------------------------------------------------------- the order puzzle


def puzzle(**more):
    return lab.order(
        "07.o1", "One turn of a training loop", lines=loop.lines(ORDER), measure=loop.run, **more
    )


def ran(order):
    piece = puzzle()
    piece.on_run(order)
    return piece.state["result"]


def test_the_puzzle_draws_the_real_curve_of_a_wrong_order():
    wrong = ran([1, 2, 3, 4, 0])
    assert wrong["right"]  # cleared last is as good as cleared first
    moved = ran([1, 2, 3, 0, 4])
    assert not moved["right"]
    assert moved["run"]["warnings"][0].startswith("Nothing moves: zero_grad clears")
    right, late = loop.run(), loop.run(["forward", "loss", "backward", "zero_grad", "step"])
    assert moved["run"]["value"] == late.summary
    assert moved["curve"]["alt"] == (
        f"Right order over 40 steps: from {right.losses[0]:.4g} to {right.losses[-1]:.4g}. "
        f"Your order over 40 steps: from {late.losses[0]:.4g} to {late.losses[-1]:.4g}."
    )


def test_the_puzzle_marks_the_line_that_raised():
    result = ran([1, 2, 4, 0, 3])
    fault = result["run"]["fault"]
    assert (fault["type"], fault["line"], fault["source"]) == ("RuntimeError", 5, "loss.backward()")
    assert "the optimizer has stepped since" in fault["message"]
    assert "Your order over 2 steps" in result["curve"]["alt"]


def test_a_measure_may_be_any_function_of_the_lines():
    piece = lab.order(
        "07.o2", "Rising", ["1", "2"], measure=lambda lines: [float(x) for x in lines]
    )
    piece.on_run([1, 0])
    assert not piece.state["result"]["right"]
    assert "Your order over 2 steps: from 2 to 1." in piece.state["result"]["curve"]["alt"]
    raised = lab.order("07.o3", "Division", ["1", "0"], measure=lambda lines: 1 / int(lines[0]))
    raised.on_run([1, 0])
    assert raised.state["result"]["run"]["fault"]["type"] == "ZeroDivisionError"


def test_a_measure_may_be_an_expression_that_gives_a_run():
    lines = ["order = ['zero_grad', 'forward', 'loss']", "order = order[:3] + ['backward', 'step']"]
    piece = lab.order("07.o4", "An order", lines, setup="from pytorch_lab import loop\norder = []",
                      measure="loop.run(order or ['step'], turns=3)")  # fmt: skip
    assert piece.target.losses == loop.run(turns=3).losses


def test_a_measure_that_runs_the_lines_takes_no_setup():
    with pytest.raises(UsageError, match="no `setup` beside a `measure` that runs the lines"):
        puzzle(setup="x = 1")


def test_the_puzzle_may_be_about_a_model_of_ones_own():
    model = nn.Linear(3, 2)
    batches = [(torch.randn(4, 3), torch.tensor([0, 1, 0, 1]))]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.clone()
    mine = functools.partial(loop.run, turns=3, model=model, batches=batches, optimizer=optimizer)
    piece = lab.order("07.o5", "Mine", lines=loop.lines(ORDER), measure=mine)
    assert len(piece.target.losses) == 3
    assert torch.equal(model.weight, before)
