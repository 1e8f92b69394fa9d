"""The race of optimizers: play it, stop it anywhere, and tilt the valley under it.

    path = optim.trace_optimizer({"SGD": ..., "Adam": ...}, "ravine")
    lab.show(path)
    lab.show(path, target="SGD")       # with a target: let SGD arrive in time

The sliders run the real optimizers anew in the kernel: another conditioning, every lr multiplied by
the same number, another momentum for those that have one.
"""

from typing import Any

from pytorch_lab.errors import UsageError
from pytorch_lab.optim.path import StepPath
from pytorch_lab.optim.surfaces import SURFACES, Surface, surface
from pytorch_lab.widgets.piece import LessonPiece
from pytorch_lab.widgets.race_picture import legend_html, state_of, still

# What the sliders offer.
STOPS = {
    "conditioning": (1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 14.0, 20.0, 30.0, 50.0, 80.0, 100.0),
    "rate": (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0),
    "momentum": (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99),
}
LABELS = {"conditioning": "conditioning", "rate": "every lr ×", "momentum": "momentum"}


class Race(LessonPiece, stem="race"):
    """The widget of a `StepPath`.

    Example:
        >>> import torch
        >>> from pytorch_lab import optim
        >>> path = optim.trace_optimizer({"SGD": lambda p: torch.optim.SGD(p, 0.1)}, "ravine")
        >>> race = Race(path)
        >>> race.on_tune(conditioning=5.0)
        >>> race.path.conditioning
        5.0

    Args:
        path: what `trace_optimizer` found.
        target: the name of a racer that should arrive in time.
    """

    kind = "Race"

    def __init__(self, path: StepPath, target: str | None = None) -> None:
        names = [racer.name for racer in path.racers]
        if target is not None and target not in names:
            raise UsageError(
                f"show(path, target=...) expected one of {', '.join(names)}, got {target!r}."
            )
        self.path, self._first, self._target = path, path, target
        super().__init__({"sliders": self._sliders(), **self._drawn()})

    def on_tune(self, conditioning: Any = None, rate: Any = 1.0, momentum: Any = None) -> None:
        """Race anew."""
        if self._first.again is None:
            raise UsageError(
                "the sliders expected a race that can be run anew, got one from a file; make it "
                "again with trace_optimizer(...)."
            )
        given = {"conditioning": conditioning, "rate": rate, "momentum": momentum}
        for name, value in given.items():
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | float)
            ):
                raise UsageError(f"the sliders expected `{name}` as a number, got {value!r:.60}.")
        self.path = self._first.again(conditioning=conditioning, rate=rate, momentum=momentum)
        self.update(trouble=None, **self._drawn())

    def _drawn(self) -> dict[str, Any]:
        path, target = self.path, self._target
        goal = None
        if target is not None:
            (racer,) = (one for one in path.racers if one.name == target)
            goal = {
                "says": f"Let {target} arrive within {path.steps} steps.",
                "reached": racer.arrived is not None,
            }
        return {"goal": goal, **state_of(path, self._surface())}

    def _surface(self) -> Surface:
        """The surface of the path, for its level lines."""
        path = self.path
        if path.place is not None:
            return path.place
        known = SURFACES.get(path.surface)
        return surface(known, conditioning=path.conditioning) if known else _flat(path)

    def _sliders(self) -> list[dict[str, Any]]:
        """Those that change something."""
        path = self._first
        if path.again is None:
            return []
        current = {"rate": 1.0}
        if path.surface in SURFACES:
            current["conditioning"] = path.conditioning
        momenta = [racer.momentum for racer in path.racers if racer.momentum]
        if momenta:
            current["momentum"] = momenta[0]
        return [
            {
                "name": name,
                "label": LABELS[name],
                "stops": (stops := sorted({*STOPS[name], current[name]})),
                "at": stops.index(current[name]),
            }
            for name in LABELS
            if name in current
        ]

    def to_html(self) -> str:
        """The picture of the whole race, and the remarks."""
        return self.framed(still(self.path, self._surface()) + legend_html(self.path))

    def __str__(self) -> str:
        return str(self.path)


def _flat(path: StepPath) -> Surface:
    """A surface of which nothing is known any more: no level lines."""
    return Surface(path.surface, lambda x, _y, _c: x * float("nan"), path.box, path.start)
