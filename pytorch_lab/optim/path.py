"""The record of a race: where each optimizer stood after each step, and who came how far."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from pytorch_lab import words
from pytorch_lab.optim.curve import Remark
from pytorch_lab.optim.curve_text import remark_lines, short
from pytorch_lab.optim.surfaces import Surface
from pytorch_lab.remark import problems

Pair = tuple[float, float]
LIVE = ("again", "place")  # fields that hold functions
NEAR = 0.01  # of the first height above the lowest: so near counts as arrived


@dataclass(frozen=True, slots=True)
class Racer:
    """One optimizer's way."""

    name: str  # as it was given
    optimizer: str  # class name
    settings: str  # "lr=0.02, momentum=0.9"
    points: tuple[Pair, ...]  # the start, then where it stood after each step
    heights: tuple[float, ...]  # of the points
    arrived: int | None  # the first step near the lowest point (to stay, where there is no noise)
    stopped: str = ""  # why there are fewer points than steps
    momentum: float = 0.0  # of its first group, or the first of its betas

    @property
    def diverged(self) -> bool:
        """Whether it flew out of the numbers."""
        return self.stopped.startswith("diverged")


@dataclass(frozen=True, slots=True)
class StepPath:
    """A race of optimizers over a surface.

    `again(conditioning=..., rate=..., momentum=...)` runs it anew: with another conditioning, every
    lr multiplied by `rate`, every momentum replaced. A copy from a file has no `again`.
    """

    surface: str
    conditioning: float
    noise: float
    lowest: float | None
    box: tuple[float, float, float, float]
    start: Pair
    steps: int
    racers: tuple[Racer, ...]
    remarks: tuple[Remark, ...] = ()
    # Not part of what is compared, copied or written to a file: what runs the race anew.
    again: Callable[..., "StepPath"] | None = field(default=None, repr=False, compare=False)
    place: Surface | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy can't be raced again: factories are lambdas, which can't be pickled."""
        return StepPath, tuple(
            None if one.name in LIVE else getattr(self, one.name) for one in fields(self)
        )

    @property
    def winner(self) -> str | None:
        """Who arrived first; None if nobody did."""
        there = [racer for racer in self.racers if racer.arrived is not None]
        return min(there, key=lambda racer: racer.arrived or 0).name if there else None

    @property
    def problems(self) -> tuple[Remark, ...]:
        """The remarks that are most likely mistakes."""
        return problems(self.remarks)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, numbers and strings."""
        plain = asdict(replace(self, again=None, place=None))
        return {key: value for key, value in plain.items() if key not in LIVE}

    def __str__(self) -> str:
        return _render(self)


def headline(path: StepPath) -> str:
    """Where and how far the race goes.

    Example:
        >>> headline(StepPath("ravine", 20.0, 0.0, 0.0, (-1, 1, -1, 1), (1.0, 2.0), 50, ()))
        'ravine with conditioning 20: 50 steps from (1, 2)'
    """
    hard = "" if path.conditioning == 1 else f" with conditioning {path.conditioning:g}"
    noise = f" and noise {path.noise:g}" if path.noise else ""
    x, y = path.start
    steps = words.count(path.steps, "step")
    return f"{path.surface}{hard}{noise}: {steps} from ({x:g}, {y:g})"


def result(racer: Racer) -> str:
    """How far a racer came, in two words."""
    if racer.stopped:
        return racer.stopped.partition(":")[0]
    return "still on its way" if racer.arrived is None else f"there at step {racer.arrived:,}"


def _render(path: StepPath) -> str:
    wide = min(max((words.columns(r.name) for r in path.racers), default=0), 20) + 2
    lines = [headline(path), ""]
    lines.append(words.pad("", wide) + f"{'ends at':>20}{'height':>12}  ")
    for racer in path.racers:
        x, y = racer.points[-1]
        name = words.pad(words.clip(racer.name, wide - 2), wide)
        place = f"({_place(x)}, {_place(y)})"
        lines.append(f"{name}{place:>20}{short(racer.heights[-1]):>12}  {result(racer)}"[:80])
        if racer.optimizer:
            made = f"{racer.optimizer}({racer.settings})"
            lines.extend(words.wrap(made, head="  ", indent="    "))
    lines.extend(remark_lines(path.remarks))
    return "\n".join(line.rstrip() for line in lines)


def _place(number: float) -> str:
    return f"{number + 0.0:.3g}" if math.isfinite(number) else str(number)


def arrival(heights: tuple[float, ...], lowest: float | None, *, stays: bool = True) -> int | None:
    """The first step that is near the lowest height, and all after it too if it must stay.

    Example:
        >>> arrival((1.0, 0.5, 0.005, 0.001), 0.0), arrival((1.0, 0.5), 0.0)
        (2, None)
    """
    if lowest is None or not heights:
        return None
    bar = lowest + NEAR * (heights[0] - lowest)
    if not stays:
        return next((step for step, height in enumerate(heights) if height <= bar), None)
    step = len(heights)
    while step and heights[step - 1] <= bar:
        step -= 1
    return step if step < len(heights) else None
