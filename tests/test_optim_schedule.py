"""trace_schedule: the rates of a plain loop, and nothing changed, for every scheduler."""

import inspect
import re
import warnings

import numpy
import pytest
import torch
from torch.optim import lr_scheduler

from pytorch_lab import optim
from pytorch_lab.errors import UsageError
from tests import schedules

STEPS = 25
MAKERS = schedules.SCHEDULERS


def snapshot(value, seen=None):
    """Everything that can be told apart about an object: identities, contents, bytes."""
    seen = {} if seen is None else seen
    if isinstance(value, torch.Tensor):
        return (id(value), value._version, value.requires_grad, id(value.grad), value.tolist())
    if value is None or isinstance(value, bool | int | float | str | bytes | type):
        return repr(value)
    if id(value) in seen:
        return ("seen", seen[id(value)])
    seen[id(value)] = len(seen)
    if isinstance(value, dict):
        return (type(value), [(k, snapshot(v, seen)) for k, v in value.items()])
    if isinstance(value, list | tuple | set):
        return (type(value), [snapshot(v, seen) for v in value])
    if inspect.isfunction(value):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return (id(value), [snapshot(cell, seen) for cell in cells])
    if inspect.ismethod(value):
        return (id(value.__func__), snapshot(value.__self__, seen))
    held = getattr(value, "__dict__", None)
    return (type(value), id(value), snapshot(held, seen) if held else None)


def surroundings():
    return (
        torch.get_rng_state().tolist(), numpy.random.get_state()[1].tolist(),  # noqa: NPY002
        schedules.CALLS,
        torch.is_grad_enabled(), list(warnings.filters),
    )  # fmt: skip


def built(name):
    schedules.CALLS = 0
    torch.manual_seed(0)
    return MAKERS[name](schedules.sgd(0.1, 0.02))


def traced(scheduler, steps=STEPS):
    wants = isinstance(scheduler, lr_scheduler.ReduceLROnPlateau)
    return optim.trace_schedule(scheduler, steps, metric=schedules.metric(steps) if wants else None)


def test_every_scheduler_of_torch_is_among_them():
    known = {type(built(name)).__name__ for name in MAKERS}
    public = {
        name
        for name, cls in vars(lr_scheduler).items()
        if isinstance(cls, type)
        and issubclass(cls, lr_scheduler.LRScheduler)
        and not name.startswith("_")
        and cls is not lr_scheduler.LRScheduler
    }
    assert public
    assert public <= known


@pytest.mark.parametrize("name", MAKERS)
def test_the_rates_are_those_of_a_plain_loop(name):
    torch.manual_seed(0)
    curve = traced(built(name))
    expected = schedules.plain_loop(built(name), STEPS)
    assert [list(row) for row in zip(*curve.rates, strict=True)] == expected
    assert curve.stopped == ""


@pytest.mark.parametrize("name", MAKERS)
def test_nothing_is_changed(name, capsys):
    scheduler = built(name)
    for group in scheduler.optimizer.param_groups:
        group["params"][0].grad = torch.ones(2)  # so that the optimizer has a state
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schedules.plain_loop(scheduler, 3)  # in the middle of a training
    assert scheduler.optimizer.state
    capsys.readouterr()
    before, around = snapshot([scheduler, scheduler.optimizer]), surroundings()
    traced(scheduler)
    assert snapshot([scheduler, scheduler.optimizer]) == before
    assert surroundings() == around
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", MAKERS)
def test_it_goes_on_from_where_the_schedule_stands(name):
    if name in ("random",):
        torch.manual_seed(0)
    ahead = traced(built(name), 12)
    scheduler = built(name)
    first = schedules.plain_loop(scheduler, 5)
    if name in (
        "ReduceLROnPlateau",
        "ReduceLROnPlateau of tensors",
        "random",
        "own without a base",
    ):
        return  # what they do next depends on more than where they stand
    later = traced(scheduler, 7)
    whole = [*first, *map(list, zip(*later.rates, strict=True))]
    assert [list(row) for row in zip(*ahead.rates, strict=True)] == whole


@pytest.mark.parametrize("name", MAKERS)
def test_the_text_fits_and_is_the_same_each_time(name):
    text = str(traced(built(name)))
    assert text == str(traced(built(name)))
    assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_schedules_of_transformers():
    for name, make in schedules.of_transformers().items():
        scheduler = make(schedules.sgd(0.1, 0.02))
        before = snapshot([scheduler, scheduler.optimizer])
        curve = optim.trace_schedule(scheduler, STEPS)
        assert snapshot([scheduler, scheduler.optimizer]) == before, name
        expected = schedules.plain_loop(make(schedules.sgd(0.1, 0.02)), STEPS)
        assert [list(row) for row in zip(*curve.rates, strict=True)] == expected, name
        assert not curve.problems, (name, curve.problems)


def test_the_snapshot_can_fail():
    """The twin: a plain loop of step() is noticed by the comparison above."""
    for name in MAKERS:
        scheduler = built(name)
        before = snapshot([scheduler, scheduler.optimizer])
        schedules.plain_loop(scheduler, 3)
        assert snapshot([scheduler, scheduler.optimizer]) != before, name


def test_a_schedule_that_raises_leaves_nothing_behind():
    scheduler = lr_scheduler.OneCycleLR(schedules.sgd(0.1), 0.1, total_steps=6)
    before = snapshot([scheduler, scheduler.optimizer])
    curve = optim.trace_schedule(scheduler, 10)
    assert snapshot([scheduler, scheduler.optimizer]) == before
    assert len(curve.rates[0]) == 7
    assert curve.stopped.startswith("ValueError: Tried to step 7 times")
    assert curve.planned == 6
    assert [one.code for one in curve.problems] == ["longer"]


def test_a_group_that_the_schedule_adds_is_taken_away_again():
    optimizer = schedules.sgd(0.1)
    scheduler = schedules.Unfreezing(optimizer)
    before = snapshot([scheduler, optimizer])
    curve = optim.trace_schedule(scheduler, 5)
    assert snapshot([scheduler, optimizer]) == before
    assert len(optimizer.param_groups) == 1
    assert curve.rates[0][:3] == (0.1, 0.05, 0.1 / 3)


def test_the_wrapped_step_of_the_optimizer_is_the_same_and_still_works():
    optimizer = schedules.sgd(0.1)
    scheduler = lr_scheduler.StepLR(optimizer, 1)
    step = optimizer.step
    optim.trace_schedule(scheduler, 5)
    assert optimizer.step is step
    assert not hasattr(optimizer, "_opt_called")
    with pytest.warns(UserWarning, match=r"lr_scheduler.step\(\)` before `optimizer.step\(\)"):
        scheduler.step()  # torch's own warning still comes


def iterator_schedule():
    rates = (0.5**k for k in range(100))
    return lr_scheduler.LambdaLR(schedules.sgd(0.1), lambda _epoch: next(rates))


REFUSED = {
    "no scheduler": (lambda: (torch.nn.Linear(1, 1), 5), {}, "expected a scheduler with `step()`"),
    "an optimizer": (lambda: (schedules.sgd(0.1), 5), {}, "got the optimizer SGD"),
    "a class": (lambda: (lr_scheduler.StepLR, 5), {}, "got the class StepLR"),
    "no steps": (lambda: (built("StepLR"), 0), {}, "from 1 to 1,000,000, got 0"),
    "half a step": (lambda: (built("StepLR"), 2.5), {}, "got 2.5"),
    "no metric": (lambda: (built("ReduceLROnPlateau"), 5), {}, "expected `metric` for a ReduceLR"),
    "a short metric": (
        lambda: (built("ReduceLROnPlateau"), 5), {"metric": [1.0]}, "for each of 5 steps, got 1",
    ),
    "a metric too many": (lambda: (built("StepLR"), 5), {"metric": [1.0] * 5}, "expected no `me"),
    "a metric of words": (
        lambda: (built("ReduceLROnPlateau"), 1), {"metric": ["low"]}, "`metric` as numbers",
    ),
    "an iterator": (lambda: (iterator_schedule(), 5), {}, "the iterator `rates` (generator)"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "options", "says"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_traced_is_refused_in_a_sentence(make, options, says):
    with pytest.raises(UsageError, match=re.escape(says)):
        optim.trace_schedule(*make(), **options)
