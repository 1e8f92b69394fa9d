"""The record of a schedule: the learning rate of every step, and what a person should know of it.

`trace_schedule` and `watch_schedule` fill these classes; the text and the picture read nothing
else. A step is counted from 0: `rates[group][k]` is the rate after `k` calls of `scheduler.step()`,
which the optimizer uses in its step number `k`.
"""

from dataclasses import asdict, dataclass
from typing import Any

from pytorch_lab import remark


@dataclass(frozen=True, slots=True)
class Remark(remark.Remark):
    """One thing that a person should know about a curve, or about an optimizer's groups."""

    span: tuple[int, int] | None = None  # the first and last step that it is about


@dataclass(frozen=True, slots=True)
class LrCurve:
    """What a schedule does to each parameter group."""

    scheduler: str  # "StepLR(step_size=30, gamma=0.1)"
    steps: int  # how many were asked for
    names: tuple[str, ...]  # of the parameter groups
    rates: tuple[tuple[float, ...], ...]  # one row for each group, one number for each step
    following: tuple[float, ...]  # of each group: what the step after the last would use
    initial: tuple[float, ...]  # of each group: the rate that the schedule starts from
    momenta: tuple[tuple[float, ...], ...] = ()  # like rates; empty where momentum stays as it is
    metric: tuple[float, ...] = ()  # what the schedule was given to watch
    began: int = 0  # calls of scheduler.step() before the first of these steps
    planned: int | None = None  # calls of scheduler.step() that the schedule is made for
    stopped: str = ""  # why there are fewer rates than steps: the error of scheduler.step()
    remarks: tuple[Remark, ...] = ()

    @property
    def problems(self) -> tuple[Remark, ...]:
        """The remarks that are most likely mistakes."""
        return remark.problems(self.remarks)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, numbers and strings."""
        return asdict(self)

    def __str__(self) -> str:
        from pytorch_lab.optim.curve_text import render

        return render(self)
