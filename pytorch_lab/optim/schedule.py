"""The learning rate of every step of a schedule, before a single step is trained.

    curve = optim.trace_schedule(scheduler, steps=100)
    print(curve)                 # the curve, where it turns, what is odd about it
    lab.show(curve)              # the picture

Takes any scheduler of torch, of transformers, or of one's own, in whatever state it is, and leaves
it and its optimizer as they were.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch.optim import Optimizer

from pytorch_lab.errors import UsageError
from pytorch_lab.optim import torch_private
from pytorch_lab.optim.ahead import Stepper, ahead
from pytorch_lab.optim.curve import LrCurve
from pytorch_lab.optim.family import (
    family,
    known_class,
    name_of_lambda,
    optimizers_of,
    settings_of,
    spell,
)
from pytorch_lab.optim.look import Look, Member
from pytorch_lab.optim.plans import plan_of
from pytorch_lab.optim.remarks import remarks
from pytorch_lab.words import message_of

MOST_STEPS = 1_000_000
USUAL_STEPS = 100


@dataclass(slots=True)
class Course:
    """What came of running ahead."""

    rates: list[list[float]]  # one row for each step, and the one after the last
    momenta: list[list[float]]
    stopped: str = ""


def trace_schedule(scheduler: Any, steps: int, *, metric: Iterable[float] | None = None) -> LrCurve:
    """The learning rates of the next steps, for each parameter group.

    Example:
        >>> import torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
        >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> curve = trace_schedule(scheduler, 5)
        >>> [round(rate, 4) for rate in curve.rates[0]]
        [0.1, 0.1, 0.01, 0.01, 0.001]
        >>> optimizer.param_groups[0]["lr"], scheduler.last_epoch
        (0.1, 0)

    Args:
        scheduler: any scheduler; it goes on from where it stands.
        steps: how many steps to look ahead, each of them `optimizer.step()` and then
            `scheduler.step()`.
        metric: what `ReduceLROnPlateau` is to be given, one number for each step.

    Raises:
        UsageError: `scheduler` is none, `steps` is no such number, the metric is missing or too
            short, or the schedule draws from an iterator.
    """
    check_scheduler(scheduler)
    if not isinstance(steps, int) or isinstance(steps, bool) or not 1 <= steps <= MOST_STEPS:
        raise UsageError(
            f"trace_schedule(scheduler, steps) expected `steps` as a whole number from 1 to "
            f"{MOST_STEPS:,}, got {steps!r:.60}."
        )
    numbers = None if metric is None else _numbers(metric)
    with ahead(scheduler) as stepper:
        _check_metric(scheduler, stepper, steps, numbers)
        before = Before(stepper)
        course = _run(stepper, steps, numbers if stepper.wants_metric else None)
        members = tuple(map(member, family(scheduler)))
    return _record(scheduler, steps, before, course, members, numbers or ())


class Before:
    """What can be seen of a schedule before it is run ahead."""

    def __init__(self, stepper: Stepper) -> None:
        scheduler, optimizer = stepper.scheduler, stepper.optimizer
        self.names = group_names(optimizer)
        self.initial = tuple(float(g.get("initial_lr", g["lr"])) for g in optimizer.param_groups)
        self.began = max(int(getattr(scheduler, "last_epoch", 0)), 0)
        self.known = len(getattr(scheduler, "base_lrs", self.names))
        self.early = torch_private.early_calls(scheduler, optimizer)
        pairs = zip(stepper.rates(), torch_private.rates_set_last(scheduler), strict=False)
        differ = [pair for pair in pairs if pair[0] != pair[1]]
        self.set_by_others = differ[0] if differ else None


def _run(stepper: Stepper, steps: int, metric: tuple[float, ...] | None) -> Course:
    course = Course([stepper.rates()], [stepper.momenta()])
    start = max(int(getattr(stepper.scheduler, "last_epoch", 0)), 0)
    for k in range(steps):
        try:
            stepper.step(start + k + 1, metric[k] if metric else None)
        except Exception as error:  # noqa: BLE001 - the schedule's own, whatever it is
            course.stopped = f"{type(error).__name__}: {message_of(error)}"
            break
        course.rates.append(stepper.rates())
        course.momenta.append(stepper.momenta())
    return course


def member(scheduler: Any) -> Member:
    """A scheduler as the finders of remarks see it."""
    settings = {
        name: float(value)
        for name, value in settings_of(scheduler).items()
        if isinstance(value, int | float)
    }
    return Member(known_class(scheduler), settings, int(getattr(scheduler, "last_epoch", 0)))


def _record(
    scheduler: Any,
    steps: int,
    before: Before,
    course: Course,
    members: tuple[Member, ...],
    metric: tuple[float, ...],
) -> LrCurve:
    rows = course.rates if course.stopped else course.rates[:-1]
    rates, momenta = columns(rows), columns(course.momenta[: len(rows)])
    moved = momenta if any(len(set(row)) > 1 for row in momenta) else ()
    plan = plan_of(scheduler)
    added = len(rates) - len(before.names)
    names = (*before.names, *(f"group {len(before.names) + i}" for i in range(added)))
    initial = (*before.initial, *course.rates[-1][len(before.names) :])
    kinds = alike(names, rates)
    look = Look(
        rows=tuple((name, rates[i]) for i, name in kinds.items()),
        initial=tuple(initial[i] for i in kinds),
        momenta=moved,
        members=members,
        steps=steps,
        began=before.began,
        plan=plan,
        stopped=course.stopped,
        groups=len(before.names),
        known=before.known,
        lambda_name=name_of_lambda(scheduler),
        metric=metric[: len(rows)],
        mode=str(getattr(scheduler, "mode", "")) if metric else "",
        reductions=reductions(rates) if metric else (),
        early=before.early,
        set_by_others=before.set_by_others,
    )
    return LrCurve(
        scheduler=spell(scheduler),
        steps=steps,
        names=names,
        rates=rates,
        following=() if course.stopped else tuple(course.rates[-1]),
        initial=initial,
        momenta=moved,
        metric=metric[: len(rows)],
        began=before.began,
        planned=plan.calls if plan else None,
        stopped=course.stopped,
        remarks=remarks(look),
    )


def columns(rows: list[list[float]]) -> tuple[tuple[float, ...], ...]:
    """One row for each group; 0 while there was no such group yet."""
    groups = max(map(len, rows))
    return tuple(
        tuple(row[group] if group < len(row) else 0.0 for row in rows) for group in range(groups)
    )


def alike(names: tuple[str, ...], rates: tuple[tuple[float, ...], ...]) -> dict[int, str]:
    """The groups with a curve of their own shape, and what to call them and those like them."""
    shapes: dict[tuple[float, ...], list[int]] = {}
    known: dict[tuple[float, ...], list[int]] = {}
    for i, row in enumerate(rates):
        if row in known:
            known[row].append(i)
            continue
        top = max(map(abs, row), default=0.0)
        scale = top if 0 < top < math.inf else 1.0
        shape = tuple(round(rate / scale, 9) for rate in row)
        known[row] = shapes.setdefault(shape, [])
        known[row].append(i)
    return {
        first: names[first] + (f" (and {len(more)} alike)" if more else "")
        for first, *more in shapes.values()
    }


def reductions(rates: tuple[tuple[float, ...], ...]) -> tuple[int, ...]:
    """The steps that use a lower rate than the one before."""
    row = rates[0]
    return tuple(k for k in range(1, len(row)) if row[k] < row[k - 1])


def steps_to_show(scheduler: Any) -> int:
    """How far to look where nobody says it: to the end of the plan, if there is one.

    Example:
        >>> import torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
        >>> steps_to_show(torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=300))
        300
    """
    plan = plan_of(scheduler)
    left = plan.calls - max(int(getattr(scheduler, "last_epoch", 0)), 0) if plan else 0
    return min(left, MOST_STEPS) if left > 1 else USUAL_STEPS


def group_names(optimizer: Optimizer) -> tuple[str, ...]:
    """What to call the groups: their `name`, if they have one."""
    groups = enumerate(optimizer.param_groups)
    return tuple(str(group.get("name", f"group {i}")) for i, group in groups)


def check_scheduler(scheduler: Any) -> None:
    """Refuse what is no scheduler, and say what to give instead."""
    if isinstance(scheduler, Optimizer):
        raise UsageError(
            "trace_schedule(scheduler, steps) expected a scheduler, got the optimizer "
            f"{type(scheduler).__name__}; give the scheduler that was made for it."
        )
    has_step = not isinstance(scheduler, type) and callable(getattr(scheduler, "step", None))
    if not has_step or not hasattr(scheduler, "__dict__") or not optimizers_of(family(scheduler)):
        got = f"the class {scheduler.__name__}" if isinstance(scheduler, type) else repr(scheduler)
        raise UsageError(
            "trace_schedule(scheduler, steps) expected a scheduler with `step()` and "
            f"`.optimizer`, got {got:.60}; give a scheduler object such as StepLR(optimizer, 30)."
        )


def _numbers(metric: Iterable[float]) -> tuple[float, ...]:
    try:
        return tuple(float(one) for one in metric)
    except (TypeError, ValueError) as error:
        raise UsageError(
            "trace_schedule(scheduler, steps) expected `metric` as numbers, one for each step, "
            f"got {metric!r:.60}."
        ) from error


def _check_metric(
    scheduler: Any, stepper: Stepper, steps: int, metric: tuple[float, ...] | None
) -> None:
    name = type(scheduler).__name__
    if metric is None and stepper.wants_metric:
        raise UsageError(
            f"trace_schedule(scheduler, steps) expected `metric` for a {name}, whose step needs "
            "the number that it watches, got none; give one for each step: metric=[0.9, 0.7, ...]."
        )
    if metric is not None and not stepper.wants_metric:
        raise UsageError(
            f"trace_schedule(scheduler, steps) expected no `metric` for a {name}, whose step takes "
            "none; leave it out."
        )
    if metric is not None and len(metric) < steps:
        raise UsageError(
            f"trace_schedule(scheduler, steps) expected a `metric` for each of {steps:,} steps, "
            f"got {len(metric):,}; give more of them or ask for fewer steps."
        )
