"""Everything of torch without a promise that this room reads, and what happens without it.

`PRIVATE` lists the names; a test says which one a new torch has lost. Each is read here and nowhere
else in the room, with a stand-in, so a torch that lacks one loses a remark and not the picture.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.optim import Optimizer


class Private(NamedTuple):
    """One private name."""

    holder: str  # whose attribute it is
    name: str
    why: str  # what it tells
    instead: str  # what happens without it


PRIVATE = [
    Private(
        "Optimizer", "_opt_called", "whether optimizer.step() has run since a scheduler was made",
        "a scheduler that is stepped too early is said to be so only while it is watched",
    ),
    Private(
        "Optimizer.step", "_wrapped_by_lr_sched", "whether a scheduler watches for steps",
        "nothing is said of the order of calls made before",
    ),
    Private(
        "LRScheduler", "_step_count", "how many times scheduler.step() has run",
        "nothing is said of the order of calls made before",
    ),
    Private(
        "LRScheduler", "_last_lr", "the rates that the scheduler set last",
        "a rate that somebody else has set is not noticed",
    ),
    Private(
        "SequentialLR", "_schedulers", "the schedules that follow each other",
        "a sequence has no planned length",
    ),
    Private(
        "SequentialLR", "_milestones", "when one schedule takes over from the other",
        "a sequence has no planned length",
    ),
    Private(
        "ChainedScheduler", "_schedulers", "the schedules that are multiplied",
        "a chain has no planned length",
    ),
    Private(
        "Tensor", "_backward_hooks", "whether a gradient passes through a hook",
        "weight decay that undoes a hook is not noticed",
    ),
]  # fmt: skip


def has_stepped(optimizer: Optimizer) -> bool:
    """Whether `optimizer.step()` has run since a scheduler was made for it.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
        >>> has_stepped(optimizer)
        False
    """
    return bool(getattr(optimizer, "_opt_called", False))


def early_calls(scheduler: Any, optimizer: Optimizer) -> int:
    """How many times `scheduler.step()` has run before any `optimizer.step()`; 0 if unknown."""
    if not hasattr(optimizer.step, "_wrapped_by_lr_sched") or has_stepped(optimizer):
        return 0
    return max(int(getattr(scheduler, "_step_count", 1)) - 1, 0)


def rates_set_last(scheduler: Any) -> list[float]:
    """What the scheduler wrote into the groups when it was stepped last; empty if unknown."""
    return [float(rate) for rate in getattr(scheduler, "_last_lr", [])]


def parts(scheduler: Any) -> Sequence[Any]:
    """The schedulers that a sequence or a chain consists of; empty if unknown."""
    return getattr(scheduler, "_schedulers", ())


def milestones(scheduler: Any) -> Sequence[int]:
    """The calls at which a sequence goes on to its next scheduler; empty if unknown."""
    return getattr(scheduler, "_milestones", ())


def is_hooked(tensor: torch.Tensor) -> bool:
    """Whether a hook of the reader's may change the tensor's gradient.

    Example:
        >>> weight = torch.zeros(1, requires_grad=True)
        >>> handle = weight.register_hook(lambda grad: 0 * grad)
        >>> is_hooked(weight), is_hooked(torch.zeros(1))
        (True, False)
    """
    return bool(getattr(tensor, "_backward_hooks", None))
