"""What is measured while a loop runs: where gradients come from, who clears them, what moves.

Nothing here reads the order. Hooks of torch tell when a gradient arrives, when the model runs and
when the optimizer steps; after each step of the loop the gradients are looked at again.
"""

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pytorch_lab.loop.problem import Problem
from pytorch_lab.loop.torch_private import versions
from pytorch_lab.words import listed

MOODY = (  # do other things in training than in evaluation
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm,
    nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Use:
    """One call of `optimizer.step()`."""

    turn: int
    sources: tuple[int, ...]  # the turns whose backward passes make up the gradients it found
    norm: float | None  # of all gradients together; None: there were none
    rate: float
    again: bool  # nothing has changed the gradients since the use before
    forwarded: bool  # whether the model had already run in this turn


@dataclass(frozen=True, slots=True)
class Change:
    """A step of the loop changed the gradients, other than by a backward pass."""

    turn: int
    step: str
    sources: tuple[int, ...]  # what was in them
    before: float
    after: float  # 0: it cleared them


@dataclass(frozen=True, slots=True)
class Forward:
    """The model ran."""

    turn: int
    training: bool  # whether the model was in training mode
    recorded: bool  # whether autograd was on


class Watch:
    """Everything that was seen, in the order in which it happened."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        groups = problem.optimizer.param_groups
        both = [*problem.model.parameters(), *(p for g in groups for p in g["params"])]
        self.parameters = list(dict.fromkeys(both))  # each once
        self.turn, self.step = 0, ""
        self.rate = rate_of(problem.optimizer)  # before the first turn
        self.kept_bytes = 0  # by the graph of the last loss, when all is over
        self.early = 0  # calls of scheduler.step() before the first optimizer.step()
        self.uses: list[Use] = []
        self.changes: list[Change] = []
        self.events: list[Use | Change] = []  # both, in the order in which they happened
        self.forwards: list[Forward] = []
        self.trained: list[Forward] = []  # those before a backward pass
        self._sources: list[int] = []
        self._norm: float | None = None
        self._mark: Any = None  # of the gradients; changes when they do
        self._held: dict[int, Any] = {}  # the gradient of each parameter when last looked at
        self._arrived: set[int] = set()  # parameters that the backward pass has come to
        self._used = False

    @property
    def left(self) -> tuple[int, ...]:
        """The turns whose gradients are there now."""
        return tuple(self._sources)

    def vector(self) -> torch.Tensor:
        """All parameters as one vector."""
        home = self.parameters[0].device
        with torch.no_grad():
            return torch.cat([p.reshape(-1).to(home) for p in self.parameters])

    def look(self) -> None:
        """See what the step that ran did to the gradients."""
        grads = [p.grad for p in self.parameters]
        mark = [id(grad) for grad in grads], versions(grads)
        passed = bool(self._arrived)
        self._arrived.clear()
        if mark == self._mark:
            return
        both = zip(self.parameters, grads, strict=True)
        self._held = {id(p): weakref.ref(grad) for p, grad in both if grad is not None}
        before, after = self._norm, _norm([grad for grad in grads if grad is not None])
        if not passed:
            change = Change(self.turn, self.step, tuple(self._sources), before or 0.0, after or 0.0)
            self.changes.append(change)
            self.events.append(change)
        if not after:
            self._sources.clear()
        self._norm, self._mark, self._used = after, mark, False

    def behaving(self) -> str:
        """The kinds of modules that do other things in training than in evaluation."""
        kinds = {
            type(one).__name__ for one in self.problem.model.modules() if isinstance(one, MOODY)
        }
        return listed(sorted(kinds))

    # ------------------------------------------------------------------- called by torch's hooks

    def arrives(self, parameter: nn.Parameter) -> None:
        """A gradient came to a parameter; the first to come twice belongs to another pass."""
        if not self._arrived or id(parameter) in self._arrived:
            held = self._held.get(id(parameter), _nothing)()
            if not self._arrived and held is not parameter.grad:  # cleared since: a new tensor
                self._sources.clear()
            self._arrived.clear()
            self._sources.append(self.turn)
            self.trained += self.forwards[-1:]
        self._arrived.add(id(parameter))

    def ran(self, *_: Any) -> None:
        """The model's forward ended."""
        training = self.problem.model.training
        self.forwards.append(Forward(self.turn, training, torch.is_grad_enabled()))

    def begins(self, *_: Any) -> None:
        """`optimizer.step()` begins."""
        self.look()

    def ended(self, optimizer: Any, *_: Any) -> None:
        """`optimizer.step()` ended."""
        rate = rate_of(optimizer)
        forwarded = bool(self.forwards) and self.forwards[-1].turn == self.turn
        sources = tuple(self._sources)
        use = Use(self.turn, sources, self._norm, rate, self._used, forwarded)
        self.uses.append(use)
        self.events.append(use)
        self._used = self._norm is not None

    def schedule(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The scheduler's own step, heard."""

        def heard(*args: Any, **kwargs: Any) -> Any:
            self.early += not self.uses
            return step(*args, **kwargs)

        return heard


def rate_of(optimizer: Any) -> float:
    """The learning rate of the first group; nan where a step of the loop has broken it."""
    try:
        return float(optimizer.param_groups[0]["lr"])
    except (IndexError, KeyError, TypeError, ValueError):
        return math.nan


def _nothing() -> None:
    return None


def _norm(grads: list[torch.Tensor]) -> float | None:
    """Of all of them together; as `get_total_norm` has it, in half its time."""
    if not grads:
        return None
    dense = [grad.coalesce().values() if grad.is_sparse else grad for grad in grads]
    norms = [torch.linalg.vector_norm(grad) for grad in dense]
    return math.sqrt(sum(float(norm) ** 2 for norm in norms))


def watching(problem: Problem) -> Watch:
    """Watch a problem; the hooks stay, since its model and its optimizer are the run's own."""
    watch = Watch(problem)
    watch.look()
    for parameter in watch.parameters:
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(watch.arrives)
    problem.model.register_forward_hook(watch.ran)
    problem.optimizer.register_step_pre_hook(watch.begins)
    problem.optimizer.register_step_post_hook(watch.ended)
    problem.scheduler.step = watch.schedule(problem.scheduler.step)
    return watch
