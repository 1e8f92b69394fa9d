"""Run a training loop in any order of its steps, and measure what that order does.

    loop.run(["forward", "loss", "backward", "step"])        # nothing clears the gradients
    loop.run(order, model=net, batches=loader, loss_fn=f, optimizer=opt)

The first runs on a small generated problem, the second on copies of the reader's own objects.
"""

import contextlib
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from pytorch_lab import surroundings
from pytorch_lab.errors import UsageError
from pytorch_lab.loop.failing import explained
from pytorch_lab.loop.hanging import Hanging
from pytorch_lab.loop.problem import MakeOptimizer, MakeScheduler, Problem, held, prepared
from pytorch_lab.loop.record import Failure, LoopRun, LoopRuns
from pytorch_lab.loop.remarks import remarks
from pytorch_lab.loop.steps import NO_GRAD, RIGHT, Given, Step, indented, parse
from pytorch_lab.loop.watching import Watch, rate_of, watching
from pytorch_lab.modules.patient import left_as_found

TURNS, MOST_TURNS = 40, 100_000


def run(
    order: Iterable[Given] = RIGHT,
    *,
    turns: int = TURNS,
    seed: int = 0,
    model: nn.Module | None = None,
    batches: Iterable[Any] | None = None,
    loss_fn: Callable[..., Any] | None = None,
    optimizer: Optimizer | MakeOptimizer | None = None,
    scheduler: Any | MakeScheduler = None,
) -> LoopRun:
    """Go through an order of steps, once for each batch.

    Example:
        >>> run(turns=20).problems
        ()
        >>> missing = run(["forward", "loss", "backward", "step"], turns=20)
        >>> missing.problems[0].code
        'adds up'
        >>> str(run(["zero_grad", "backward", "step"]).failure)[:47]
        "turn 1, backward: NameError: name 'loss' is not"

    Without a model it runs on a small generated problem. With one, it works on deep copies of the
    model, the loss, the optimizer and the scheduler: yours stay as they are. Gradients that a
    parameter already has are not copied; a run begins without any.

    Args:
        order: names of `loop.STEPS`, lines of Python, or functions that take what is at hand
            (`here.loss`); what comes after "no_grad" in a turn runs without recording.
        turns: how often the order is gone through.
        seed: of everything random in the run.
        model: yours; then `batches` and `optimizer` are needed too.
        batches: a loader or a list of pairs (x, y), begun anew when it ends.
        loss_fn: of the model's output and y; cross entropy if left out.
        optimizer: of the model's parameters, or a function that makes one from parameters.
        scheduler: of that optimizer, or a function that makes one from an optimizer.

    Raises:
        UsageError: an argument is none of these. An error in the loop itself is not raised: it is
            the `failure` of the record.
    """
    steps = parse(order)
    if not isinstance(turns, int) or isinstance(turns, bool) or not 1 <= turns <= MOST_TURNS:
        raise UsageError(
            f"loop.run(...) expected `turns` as a whole number from 1 to {MOST_TURNS:,}, "
            f"got {turns!r:.60}."
        )
    theirs = (model, loss_fn, optimizer, scheduler)  # their hooks and closures aren't copied
    with left_as_found(*theirs, *held(batches)), torch.inference_mode(False):
        surroundings.seed(seed)
        torch.set_grad_enabled(True)
        problem = prepared(turns, model, batches, loss_fn, optimizer, scheduler)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            return _Turns(steps, problem, watching(problem), heard).record()


def compare(orders: Mapping[str, Iterable[Given] | LoopRun], **options: Any) -> LoopRuns:
    """Run several orders on the same problem, from the same start.

    Example:
        >>> both = compare({"right": RIGHT, "no zero_grad": RIGHT[1:]}, turns=20)
        >>> both["right"].losses[-1] < both["no zero_grad"].losses[-1]
        True

    Args:
        orders: name -> order, or a run that was made before.
        options: what `run` takes: turns, seed, model, …

    Raises:
        UsageError: `orders` is no such dict.
    """
    if not isinstance(orders, Mapping) or not orders:
        raise UsageError(
            "loop.compare(orders) expected a dict from a name to an order, such as "
            f'{{"right": loop.RIGHT}}, got {orders!r:.60}.'
        )
    return LoopRuns(
        tuple(
            (str(name), order if isinstance(order, LoopRun) else run(order, **options))
            for name, order in orders.items()
        )
    )


class _Turns:
    """The run itself, and what it gave turn by turn."""

    def __init__(
        self, steps: Sequence[Step], problem: Problem, watch: Watch, heard: list[Any]
    ) -> None:
        self.steps, self.problem, self.watch, self.heard = steps, problem, watch, heard
        self.names = problem.names()
        self.own = {p.untyped_storage().data_ptr() for p in watch.parameters}
        self.hanging = Hanging(self.own)
        self.losses: list[float] = []
        self.motions: list[float] = []
        self.rates: list[float] = []
        self.hung: list[tuple[int, int]] = []

    def record(self) -> LoopRun:
        """Go through all turns, or up to the first error."""
        failure = None
        at = self.watch.vector()
        for turn, (x, y) in enumerate(self.problem.batches, 1):
            self.names.update(x=x, y=y, turn=turn)
            self.watch.turn = turn
            failure = self._turn(turn)
            if failure:
                break
            before, at = at, self.watch.vector()
            self.motions.append(_distance(at, before))
            self.rates.append(rate_of(self.problem.optimizer))
            self.hung.append(self.hanging.on(self.names.get("total")))
        _, self.watch.kept_bytes = Hanging(self.own).on(self.names.get("loss"))
        return self._recorded(failure)

    def _turn(self, turn: int) -> Failure | None:
        """One batch; what failed."""
        earlier = self.names.get("loss")
        noted = False
        torch.set_grad_enabled(True)
        for place, step in enumerate(self.steps, 1):
            self.watch.step = step.name
            try:
                step.run(self.names)
            except Exception as error:  # noqa: BLE001 - the reader's own order, shown to them
                return explained(error, turn, place, step, self.watch)
            if step.line == NO_GRAD:
                torch.set_grad_enabled(False)
            if not step.computes:
                self.watch.look()
            if not noted and self.names.get("loss") is not earlier:
                noted = True
                self.losses.extend(_numbers(self.names.get("loss")))
        return None

    def _recorded(self, failure: Failure | None) -> LoopRun:
        norms = {use.turn: use.norm for use in self.watch.uses}
        run = LoopRun(
            order=tuple(step.name for step in self.steps),
            lines=tuple(indented(self.steps)),
            turns=len(self.problem.batches),
            done=len(self.motions),
            losses=tuple(self.losses),
            grad_norms=tuple(norms.get(turn) for turn in range(1, len(self.motions) + 1)),
            motions=tuple(self.motions),
            rates=tuple(self.rates),
            nodes=tuple(nodes for nodes, _ in self.hung),
            held_bytes=tuple(held for _, held in self.hung),
            failure=failure,
        )
        return remarks(run, self.watch, self.heard)


def _numbers(loss: Any) -> Iterator[float]:
    """A loss of more than one number, on which backward will fail, counts by its mean.

    What is no number counts for nothing: a later step says why it can't go on.
    """
    with contextlib.suppress(TypeError, ValueError, OverflowError, RuntimeError):
        if isinstance(loss, torch.Tensor):
            loss = loss.item() if loss.numel() == 1 else loss.detach().double().mean()
        yield float(loss)


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """How far two vectors are apart; of other sizes, after a step that reshaped a weight, nan."""
    return float(torch.dist(one, other)) if one.shape == other.shape else math.nan
