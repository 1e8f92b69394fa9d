"""Run a schedule ahead of time, and leave it and its optimizer as they were found.

    with ahead(scheduler) as stepper:
        rates = stepper.rates()      # of each group, now
        stepper.step(metric=0.3)     # one call of scheduler.step()

A scheduler often can't be copied: it holds lambdas, closures, and an optimizer with all its
weights. So the real one is run and put back: the attributes of all schedulers and optimizers
involved, the groups and every tensor in them, what the lambdas reach, random numbers and modes.
What can't be put back is refused: a generator or another iterator that the schedule draws from.
"""

import dis
import inspect
import io
import types
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from typing import Any

import torch
from torch.optim import Optimizer

from pytorch_lab.errors import UsageError
from pytorch_lab.modules.patient import left_as_found
from pytorch_lab.optim.family import family, optimizers_of

METRIC_NAMES = ("metrics", "metric")


class Stepper:
    """A schedule that may be run."""

    def __init__(self, scheduler: Any, optimizer: Optimizer) -> None:
        self.scheduler, self.optimizer = scheduler, optimizer
        self.needed = _needed(scheduler)

    @property
    def wants_metric(self) -> bool:
        """Whether `scheduler.step` can't be called without a metric."""
        return any(name in METRIC_NAMES for name in self.needed)

    def step(self, number: int, metric: float | None) -> None:
        """One call of `scheduler.step()`, with what it needs."""
        if not self.needed:
            self.scheduler.step()
            return
        self.scheduler.step(
            **{name: metric if name in METRIC_NAMES else number for name in self.needed}
        )

    def rates(self) -> list[float]:
        """The learning rate of each group, now."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def momenta(self) -> list[float]:
        """The momentum, or the first of the betas, of each group; 0 where there is none."""
        return [momentum_of(group) for group in self.optimizer.param_groups]


def momentum_of(group: dict[str, Any]) -> float:
    """A group's momentum, or the first of its betas.

    Example:
        >>> momentum_of({"momentum": 0.9}), momentum_of({"betas": (0.8, 0.99)}), momentum_of({})
        (0.9, 0.8, 0.0)
    """
    betas = group.get("betas")
    return float(betas[0] if betas else group.get("momentum", 0.0) or 0.0)


def _needed(scheduler: Any) -> tuple[str, ...]:
    """The names of what `step` must be given: a metric, or the number of the step."""
    parameters = inspect.signature(scheduler.step).parameters.values()
    return tuple(
        p.name
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    )


@contextmanager
def ahead(scheduler: Any) -> Iterator[Stepper]:
    """Whatever happens inside, the schedule is afterwards where it was.

    Example:
        >>> opt = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> halving = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
        >>> with ahead(halving) as stepper:
        ...     stepper.step(1, None)
        ...     later = stepper.rates()
        >>> later, opt.param_groups[0]["lr"], halving.last_epoch
        ([0.5], 1.0, 0)
    """
    schedulers = family(scheduler)
    optimizers = optimizers_of(schedulers)
    _refuse_iterators(schedulers)
    roots = [vars(one) for one in schedulers]
    with ExitStack() as stack:
        stack.enter_context(left_as_found(*roots, *_held(schedulers)))
        for optimizer in optimizers:
            stack.enter_context(_kept(optimizer))
        stack.enter_context(_globals_kept(schedulers))
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(redirect_stdout(io.StringIO()))
        warnings.simplefilter("ignore")
        yield Stepper(scheduler, optimizers[0])


def _held(schedulers: list[Any]) -> list[Any]:
    """The functions and objects that schedulers call, such as lambdas."""
    return [value for one in schedulers for value in vars(one).values() if callable(value)]


@contextmanager
def _kept(optimizer: Optimizer) -> Iterator[None]:
    """An optimizer's attributes, groups and state; not its weights, which no schedule touches.

    A rate that is a tensor is changed in place, so a copy of it takes its place meanwhile.
    """
    attributes, groups = dict(vars(optimizer)), list(optimizer.param_groups)
    content = [dict(group) for group in groups]
    lists = [(v, list(v)) for group in groups for v in group.values() if isinstance(v, list)]
    outer = [value for value in attributes.values() if isinstance(value, dict)]
    inner = [one for value in outer for one in value.values() if isinstance(one, dict)]
    dicts = [(one, dict(one)) for one in (*outer, *inner)]
    for group in groups:
        tensors = {k: v.clone() for k, v in group.items() if isinstance(v, torch.Tensor)}
        group.update(tensors)
    try:
        yield
    finally:
        vars(optimizer).clear()
        vars(optimizer).update(attributes)
        optimizer.param_groups[:] = groups
        for group, was in zip(groups, content, strict=True):
            group.clear()
            group.update(was)
        for held, items in lists:
            held[:] = items
        for held, items in dicts:
            held.clear()
            held.update(items)


@contextmanager
def _globals_kept(schedulers: list[Any]) -> Iterator[None]:
    """The global variables that the schedule's functions assign to."""
    kept = []
    for function in _functions(schedulers):
        code = dis.get_instructions(function)
        names = {one.argval for one in code if one.opname == "STORE_GLOBAL"}
        space = function.__globals__
        kept.extend((space, name, space[name]) for name in names if name in space)
    try:
        yield
    finally:
        for space, name, value in kept:
            space[name] = value


def _functions(schedulers: list[Any]) -> Iterator[types.FunctionType]:
    """The lambdas and functions that schedulers hold, also those in a list."""
    for scheduler in schedulers:
        for value in vars(scheduler).values():
            for item in value if isinstance(value, list | tuple) else (value,):
                inner = getattr(item, "func", item)  # of a functools.partial
                inner = getattr(inner, "__func__", inner)
                if isinstance(inner, types.FunctionType):
                    yield inner


def _refuse_iterators(schedulers: list[Any]) -> None:
    """A generator can't be wound back."""
    named = [(name, v) for one in schedulers for name, v in vars(one).items()]
    for function in _functions(schedulers):
        named += inspect.getclosurevars(function).nonlocals.items()
        named += inspect.getclosurevars(function).globals.items()
    for name, value in named:
        if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
            raise UsageError(
                f"trace_schedule(scheduler, steps) expected a schedule that can be run ahead, got "
                f"one that draws from the iterator `{name}` ({type(value).__name__}), which can't "
                f"be wound back; compute the rate from the step's number, or keep a list."
            )
