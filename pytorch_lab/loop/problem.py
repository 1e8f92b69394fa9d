"""What a loop is run on: a small generated problem, or deep copies of the reader's own objects.

The generated one: 512 points of eight numbers in four overlapping clouds, and a net that tells the
clouds apart. The same seed gives the same numbers on every machine.
"""

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from pytorch_lab.errors import LabError, LoaderError, UsageError
from pytorch_lab.words import message_of, shortened

CLASSES, FEATURES, POINTS, BATCH = 4, 8, 512, 64
RATE = 0.5

MakeOptimizer = Callable[[Iterator[nn.Parameter]], Optimizer]
MakeScheduler = Callable[[Optimizer], Any]


@dataclass(slots=True)
class Problem:
    """What a run works on; nothing in it is the reader's own object."""

    model: nn.Module
    batches: list[tuple[Any, Any]]  # one for each turn
    loss_fn: Callable[..., Any]
    optimizer: Optimizer
    scheduler: Any

    def names(self) -> dict[str, Any]:
        """What the lines of a loop can use, besides x and y."""
        return {
            "torch": torch,
            "model": self.model,
            "loss_fn": self.loss_fn,
            "optimizer": self.optimizer,
            "scheduler": self.scheduler,
            "total": 0.0,
        }


def generated(turns: int) -> tuple[nn.Module, list[tuple[torch.Tensor, torch.Tensor]]]:
    """The net and its batches, from torch's global seed."""
    centres = torch.randn(CLASSES, FEATURES)
    labels = torch.arange(POINTS) % CLASSES
    points = centres[labels] + 1.2 * torch.randn(POINTS, FEATURES)  # (points, features)
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, CLASSES))
    batches: list[tuple[torch.Tensor, torch.Tensor]] = []
    while len(batches) < turns:
        shuffled = torch.randperm(POINTS).split(BATCH)
        batches += [(points[rows], labels[rows]) for rows in shuffled]
    return model, batches[:turns]


def prepared(
    turns: int, model: Any, batches: Any, loss_fn: Any, optimizer: Any, scheduler: Any
) -> Problem:
    """The problem of a run, copied where it is the reader's."""
    if model is None:
        _refuse_half(batches, optimizer)
        model, drawn = generated(turns)
    else:
        _check(model, batches, optimizer)
        drawn = _fetched(batches, turns)
    whole = optimizer if isinstance(optimizer, Optimizer) else None
    timed = None if _makes(scheduler) else scheduler
    net, loss, ready, schedule = _copied(model, loss_fn, whole, timed)
    if ready is None:
        ready = _made(optimizer or _plain, net)
    if _makes(scheduler):
        schedule = _called("scheduler", scheduler, ready)
    elif schedule is None:
        schedule = torch.optim.lr_scheduler.StepLR(ready, step_size=10, gamma=0.5)
    _same_optimizer(schedule, ready)
    _refuse_meta([*net.parameters(), *(p for group in ready.param_groups for p in group["params"])])
    return Problem(net, drawn, loss or nn.functional.cross_entropy, ready, schedule)


def held(batches: Any) -> list[Any]:
    """What of a loader is to be put back: what it draws from, and its generators."""
    if not isinstance(batches, DataLoader):
        return [batches]
    parts = [batches.dataset, batches.sampler, batches.batch_sampler, batches.generator]
    return [*parts, *(getattr(part, "generator", None) for part in parts)]


def _plain(parameters: Iterator[nn.Parameter]) -> Optimizer:
    return torch.optim.SGD(parameters, lr=RATE)


def _makes(thing: Any) -> bool:
    """Whether it is a function that makes what is wanted; a scheduler has `step`."""
    return callable(thing) and not (hasattr(thing, "step") and not isinstance(thing, type))


def _made(make: Any, model: nn.Module) -> Optimizer:
    made = _called("optimizer", make, model.parameters()) if callable(make) else make
    if not isinstance(made, Optimizer):
        raise UsageError(
            "loop.run(...) expected `optimizer` as an optimizer, or as a function that makes one "
            f"from parameters, such as lambda p: torch.optim.SGD(p, lr=0.1), got {made!r:.60}."
        )
    return made


def _called(name: str, make: Callable[..., Any], given: Any) -> Any:
    try:
        return make(given)
    except Exception as error:
        raise UsageError(
            f"loop.run(...) expected `{name}` as a function that makes one, got "
            f"{type(error).__name__}: {message_of(error)}."
        ) from error


def _copied(*things: Any) -> tuple[Any, ...]:
    """Copies that belong together as the originals do: one set of parameters."""
    try:
        return copy.deepcopy(things)
    except Exception as error:
        raise UsageError(
            "loop.run(model=...) expected a model, an optimizer and a loss that copy.deepcopy can "
            f"copy, got {type(error).__name__}: {message_of(error)}; give a function that makes "
            "the optimizer, or a model without tensors that were computed from others."
        ) from error


def _fetched(batches: Iterable[Any], turns: int) -> list[tuple[Any, Any]]:
    try:
        return list(_drawn(batches, turns))
    except LabError:
        raise
    except Exception as error:  # the reader's own dataset
        last = message_of(error).strip().rpartition("\n")[2]  # of a worker's whole traceback
        raise LoaderError(
            f"loop.run(batches=...) expected pairs (x, y), got {type(error).__name__}: "
            f"{shortened(last)}"
        ) from error


def _refuse_meta(parameters: Iterable[torch.Tensor]) -> None:
    if any(parameter.is_meta for parameter in parameters):
        raise UsageError(
            "loop.run(...) expected parameters that hold numbers, got some on the meta device; "
            'make the model on the CPU, or move it with to_empty(device="cpu") and fill it.'
        )


def _drawn(batches: Iterable[Any], turns: int) -> Iterator[tuple[Any, Any]]:
    """So many batches; the loader is gone through again when it ends."""
    count = 0
    while count < turns:
        before = count
        for batch in itertools.islice(iter(batches), turns - count):
            if not isinstance(batch, list | tuple) or len(batch) != 2:
                raise UsageError(
                    "loop.run(batches=...) expected each batch as a pair (x, y), got "
                    f"{type(batch).__name__}: {batch!r:.60}; give [(x, y), …] or a loader of pairs."
                )
            count += 1
            yield batch[0], batch[1]
        if count == before:
            raise UsageError("loop.run(batches=...) expected at least one batch, got none.")


def _check(model: Any, batches: Any, optimizer: Any) -> None:
    if not isinstance(model, nn.Module):
        raise UsageError(f"loop.run(...) expected `model` as an nn.Module, got {model!r:.60}.")
    if any(nn.parameter.is_lazy(parameter) for parameter in model.parameters()):
        raise UsageError(
            "loop.run(...) expected `model` with all its parameters, got a lazy module that has "
            "not run yet; send one batch through it first."
        )
    if optimizer is None or batches is None:
        missing = "optimizer" if optimizer is None else "batches"
        raise UsageError(
            f"loop.run(model=...) expected `{missing}` beside the model, got none; give "
            "model=, batches=, optimizer= and loss_fn= together."
        )
    if not isinstance(batches, Iterable) or isinstance(batches, Iterator):
        raise UsageError(
            "loop.run(...) expected `batches` as a loader or a list of pairs (x, y) that can be "
            f"gone through again, got {type(batches).__name__!r}; give list(…) of it."
        )


def _refuse_half(batches: Any, optimizer: Any) -> None:
    if batches is not None or isinstance(optimizer, Optimizer):
        given = "batches" if batches is not None else "optimizer"
        raise UsageError(
            f"loop.run(...) expected `model` beside `{given}`, got none; without a model it runs "
            "on its own small problem, for which `optimizer` may be a function of the parameters."
        )


def _same_optimizer(scheduler: Any, optimizer: Optimizer) -> None:
    if not hasattr(scheduler, "step"):
        raise UsageError(
            f"loop.run(...) expected `scheduler` as a scheduler, or as a function that makes one "
            f"from the optimizer, got {scheduler!r:.60}."
        )
    if getattr(scheduler, "optimizer", optimizer) is not optimizer:
        raise UsageError(
            "loop.run(...) expected a scheduler of the optimizer it was given, got one of another "
            "optimizer; make it anew from this one."
        )
