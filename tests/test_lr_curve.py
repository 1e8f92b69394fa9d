"""The picture of a schedule: what is drawn is what was traced."""

import re

import pytest
import torch
from torch.optim import lr_scheduler as S

import pytorch_lab as lab
from pytorch_lab.errors import UsageError
from pytorch_lab.optim import trace_schedule, watch_schedule
from pytorch_lab.widgets.axes import Axis
from pytorch_lab.widgets.lr_curve import BOTTOM, LEFT, MOST_POINTS, MOST_STOPS, RIGHT, TOP
from tests.schedules import sgd


def points(path):
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]


def test_every_rate_stands_at_its_height():
    curve = trace_schedule(S.ExponentialLR(sgd(0.1), 0.8), 12)
    state = lab.show(curve).state
    (path,) = state["scales"]["linear"]["paths"]
    axis = Axis(0, 0.1, BOTTOM, TOP)
    heights = [y for _, y in points(path)]
    assert heights == [axis.at(rate) for rate in curve.rates[0]]
    assert [x for x, _ in points(path)] == state["places"]
    assert (state["places"][0], state["places"][-1]) == (LEFT, RIGHT)
    assert all(TOP <= y <= BOTTOM for y in heights)


def test_a_scheduler_is_traced_when_it_is_shown():
    shown = lab.show(S.StepLR(sgd(0.1), 3), 9)
    assert str(shown) == str(trace_schedule(S.StepLR(sgd(0.1), 3), 9))
    assert lab.show(S.StepLR(sgd(0.1), 3)).curve.steps == 100
    assert lab.show(S.CosineAnnealingLR(sgd(0.1), 300)).curve.steps == 300
    assert lab.show(S.StepLR(sgd(0.1), 3), steps=7).curve.steps == 7
    metric = [1.0] * 9
    watched = lab.show(S.ReduceLROnPlateau(sgd(0.1), patience=1), 9, metric=metric)
    assert watched.curve.metric == tuple(metric)


def test_groups_that_share_a_curve_share_a_line():
    state = lab.show(S.StepLR(sgd(0.1, 0.1, 0.02), 3), 5).state
    assert [line["name"] for line in state["lines"]] == ["group 0, group 1", "group 2"]
    state = lab.show(S.StepLR(sgd(*[0.1] * 30), 3), 5).state
    assert [line["name"] for line in state["lines"]] == ["group 0 and 29 groups alike"]
    state = lab.show(S.StepLR(sgd(*[0.1 + k for k in range(30)]), 3), 5).state
    assert len(state["lines"]) == 6
    assert state["left_out"] == 24


def test_a_long_curve_stays_small_and_keeps_its_peaks():
    spike = [1.0] * 10_000
    spike[7_777] = 5.0
    curve = trace_schedule(S.LambdaLR(sgd(0.1), lambda n: spike[min(n, 9_999)]), 10_000)
    state = lab.show(curve).state
    (path,) = state["scales"]["linear"]["paths"]
    assert len(points(path)) <= MOST_POINTS + 3
    assert len(state["stops"]) == MOST_STOPS
    assert min(y for _, y in points(path)) == Axis(0, 0.5, BOTTOM, TOP).at(0.5)


def test_what_is_odd_is_shaded_where_it_is():
    state = lab.show(S.CosineAnnealingLR(sgd(0.1), 10), 35).state
    ((start, end),) = state["shades"]
    assert start == state["places"][10]
    assert end == RIGHT
    assert not state["good"]
    assert lab.show(S.StepLR(sgd(0.1), 10), 35).state["shades"] == []


def test_a_line_breaks_where_a_rate_is_no_number():
    state = lab.show(S.LambdaLR(sgd(0.1), lambda n: float("nan") if n == 2 else 1.0), 5).state
    (path,) = state["scales"]["linear"]["paths"]
    assert path.count("M") == 2


def test_negative_rates_have_no_logarithm():
    state = lab.show(S.LambdaLR(sgd(0.1), lambda n: 1 - n), 5).state
    assert "log" not in state["scales"]


def test_the_page_without_a_kernel_is_stable_and_says_the_same():
    make = lambda: lab.show(S.CosineAnnealingLR(sgd(0.1, 0.02), 10), 35)  # noqa: E731
    page = make().to_html()
    assert page == make().to_html()
    assert "<img alt=" in page
    assert "CosineAnnealingLR is a wave" in page
    assert "<script" not in page


def test_a_curve_of_one_step_or_none_is_drawn():
    for curve in (trace_schedule(S.StepLR(sgd(0.1), 3), 1), watch_nothing()):
        state = lab.show(curve).state
        assert state["places"] == [LEFT]
        assert "<img" in lab.show(curve).to_html()


def watch_nothing():
    with watch_schedule(S.StepLR(sgd(0.1), 3)) as seen:
        pass
    return seen.curve


def test_a_curve_is_shown_alone():
    curve = trace_schedule(S.StepLR(sgd(0.1), 3), 5)
    with pytest.raises(UsageError, match="expected the LrCurve alone"):
        lab.show(curve, 5)


def test_axes_have_round_numbers():
    assert Axis(0, 0.07, 0, 100).ticks() == [0.0, 0.02, 0.04, 0.06, 0.08]
    log = Axis(1e-5, 0.1, 100, 0, log=True)
    assert log.ticks() == pytest.approx([1e-5, 1e-4, 1e-3, 1e-2, 0.1])
    assert (log.at(1e-5), log.at(0.1), log.at(0)) == (100, 0, 100)
    assert Axis(0, 0, 0, 100).at(0) == 0
    assert torch.tensor(Axis(-0.3, 0.1, 0, 100).ticks()).diff().tolist() == pytest.approx([0.1] * 4)
