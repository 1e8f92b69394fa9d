"""The record of a loop: what each turn did to the loss, the gradients and the parameters.

A *turn* is one passage through the order, with one batch. Turns are counted from 1, as people do.
"""

from dataclasses import asdict, dataclass
from typing import Any

from pytorch_lab.remark import Remark, problems
from pytorch_lab.words import count


@dataclass(frozen=True, slots=True)
class Failure:
    """The error that ended a run."""

    turn: int
    place: int  # which step of the order, from 1
    step: str  # its name
    type: str  # of the error
    message: str  # torch's or Python's own
    says: str  # why, in a sentence; "" where nobody knows

    def __str__(self) -> str:
        first = self.message.partition(". ")[0].rstrip(".")  # of torch's several sentences
        why = f" {self.says}" if self.says else ""
        said = f"{self.type}: {first}" if first else self.type
        return f"turn {self.turn}, {self.step}: {said}.{why}"


@dataclass(frozen=True, slots=True)
class LoopRun:
    """What came of an order."""

    order: tuple[str, ...]  # the names of the steps
    lines: tuple[str, ...]  # what ran, as code
    turns: int  # how many were asked for
    done: int  # how many came to their end
    losses: tuple[float, ...]  # the first loss of each turn
    grad_norms: tuple[float | None, ...]  # of each turn: what the optimizer found; None: nothing
    motions: tuple[float, ...]  # of each turn: how far all parameters moved together
    rates: tuple[float, ...]  # of each turn: the learning rate of the first group at its end
    nodes: tuple[int, ...]  # of each turn: operations whose graph hangs on `total` at its end
    held_bytes: tuple[int, ...]  # of each turn: what those keep for a backward
    failure: Failure | None = None
    remarks: tuple[Remark, ...] = ()

    @property
    def problems(self) -> tuple[Remark, ...]:
        """The remarks that are most likely mistakes."""
        return problems(self.remarks)

    @property
    def summary(self) -> str:
        """The losses in a few words."""
        if not self.losses:
            return "no loss was computed"
        return f"loss {self.losses[0]:.3g} to {self.losses[-1]:.3g} in {count(self.done, 'turn')}"

    @property
    def outcome(self) -> tuple[Any, ...]:
        """What two orders that do the same have in common."""
        error = self.failure and (self.failure.turn, self.failure.type)
        return self.losses, self.motions, error

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, numbers and strings."""
        return asdict(self)

    def __str__(self) -> str:
        from pytorch_lab.loop.text import render

        return render(self)


@dataclass(frozen=True, slots=True)
class LoopRuns:
    """Several orders on the same problem; `runs["right"]` is one of them."""

    runs: tuple[tuple[str, LoopRun], ...]

    def __getitem__(self, name: str) -> LoopRun:
        return dict(self.runs)[name]

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def names(self) -> tuple[str, ...]:
        """What the orders are called."""
        return tuple(name for name, _ in self.runs)

    def to_dict(self) -> dict[str, Any]:
        """The records as plain dicts, lists, numbers and strings."""
        return {name: run.to_dict() for name, run in self.runs}

    def __str__(self) -> str:
        from pytorch_lab.loop.text import render_all

        return render_all(self)
