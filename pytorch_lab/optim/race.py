"""The race: real optimizers on a surface of two numbers, step by step.

    path = optim.trace_optimizer(
        {"SGD": lambda p: SGD(p, lr=0.05), "mine": lambda p: MyOptimizer(p, lr=0.1)},
        "ravine", start=(-4.0, 1.0), steps=60,
    )
    lab.show(path)

Each optimizer is made anew for a parameter of shape (2,) and runs its own `step()`. One that takes
matrices only, as Muon does, gets the same two numbers as a matrix of one row, which is said.
"""

import inspect
import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.optim import Optimizer

from pytorch_lab import surroundings
from pytorch_lab.errors import UsageError
from pytorch_lab.optim.ahead import momentum_of
from pytorch_lab.optim.path import Pair, Racer, StepPath, arrival
from pytorch_lab.optim.race_remarks import remarks
from pytorch_lab.optim.surfaces import Surface, surface
from pytorch_lab.words import message_of

Factory = Callable[[list[torch.nn.Parameter]], Optimizer]
MOST_STEPS, MOST_RACERS = 10_000, 12
FAR = 1e6  # times the width of the picture: nobody comes back from there
SPELLED = ("lr", "momentum", "nesterov", "betas", "alpha", "weight_decay", "dampening")


@dataclass(slots=True)
class Tuning:
    """What the sliders change before the first step; 1 and None leave it as it is."""

    rate: float = 1.0  # every lr is multiplied by it
    momentum: float | None = None  # of those that have one


def trace_optimizer(
    optimizers: Mapping[str, Factory] | Iterable[Factory],
    surface: str | Surface | Callable[[torch.Tensor], torch.Tensor],
    start: Pair | None = None,
    steps: int = 60,
    *,
    conditioning: float | None = None,
    seed: int = 0,
) -> StepPath:
    """Let optimizers race from one point.

    Example:
        >>> from torch.optim import SGD
        >>> path = trace_optimizer({"SGD": lambda p: SGD(p, lr=0.5)}, "ravine", (1.0, 0.0), 2)
        >>> path.racers[0].points
        ((1.0, 0.0), (0.5, 0.0), (0.25, 0.0))

    Args:
        optimizers: name -> a callable that takes the list of parameters and makes an optimizer;
            or just such callables, such as classes.
        surface: a name ("ravine", "bowl", "saddle", "rosenbrock"), a `Surface`, or a function of
            one's own that takes a tensor of shape (2,) and returns a height of shape ().
        start: x and y; the surface's own if it is left out.
        steps: how many.
        conditioning: how much steeper the surface is one way than the other.
        seed: of the noise, which is the same for every optimizer, and of the optimizers' own.

    Raises:
        UsageError: the optimizers, the surface, the start or the steps are none.
    """
    named = _named(optimizers)
    place = make_surface(surface, conditioning)
    begin = place.start if start is None else _pair(start)
    if not isinstance(steps, int) or isinstance(steps, bool) or not 1 <= steps <= MOST_STEPS:
        raise UsageError(
            f"trace_optimizer(...) expected `steps` as a whole number from 1 to {MOST_STEPS:,}, "
            f"got {steps!r:.60}."
        )
    return race(named, place, begin, steps, seed=seed, tuning=Tuning())


def make_surface(which: Any, conditioning: float | None) -> Surface:
    """The surface; apart, because the argument of `trace_optimizer` hides the function."""
    return surface(which, conditioning=conditioning)


def race(
    named: Mapping[str, Factory], place: Surface, start: Pair, steps: int, *, seed: int,
    tuning: Tuning,
) -> StepPath:  # fmt: skip
    """The record of a race whose arguments are checked."""

    def again(
        conditioning: float | None = None, rate: float = 1.0, momentum: float | None = None
    ) -> StepPath:
        other = make_surface(place, conditioning)
        return race(named, other, start, steps, seed=seed, tuning=Tuning(rate, momentum))

    noise = _noise(place, steps, seed)
    shapes: dict[str, tuple[int, ...]] = {}
    with surroundings.kept():
        racers = tuple(
            _Run(name, make, place, start, tuning, seed, shapes).to_end(steps, noise)
            for name, make in named.items()
        )
    return StepPath(
        surface=place.name,
        conditioning=place.conditioning,
        noise=place.noise,
        lowest=place.lowest,
        box=place.box,
        start=start,
        steps=steps,
        racers=racers,
        remarks=remarks(racers, place, shapes),
        again=again,
        place=place,
    )


def _noise(place: Surface, steps: int, seed: int) -> list[Pair]:
    """What is added to the gradient of each step; the same for every optimizer."""
    if not place.noise:
        return [(0.0, 0.0)] * steps
    draw = random.Random(seed)
    return [(draw.gauss(0, place.noise), draw.gauss(0, place.noise)) for _ in range(steps)]


class _Run:
    """One optimizer on its way."""

    def __init__(
        self, name: str, make: Factory, place: Surface, start: Pair, tuning: Tuning, seed: int,
        shapes: dict[str, tuple[int, ...]],
    ) -> None:  # fmt: skip
        self.name, self.place, self.start = name, place, start
        self.kind, self.settings, self.stopped, self.momentum = "", "", "", 0.0
        self.parameter, self.optimizer = torch.nn.Parameter(torch.zeros(2, device="cpu")), None
        surroundings.seed(seed)
        try:
            with torch.enable_grad():
                self.parameter, self.optimizer = self._made(make)
            _tune(self.optimizer, tuning)
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - the learner's own optimizer
            self.stopped = f"not made: {type(error).__name__}: {message_of(error)}"
            return
        shapes[name] = tuple(self.parameter.shape)
        self.kind = type(self.optimizer).__name__
        self.settings = _settings(self.optimizer)
        self.momentum = momentum_of(self.optimizer.param_groups[0])
        needed = inspect.signature(self.optimizer.step).parameters.get("closure")
        self.wants_closure = needed is not None and needed.default is needed.empty

    def _made(self, make: Factory) -> tuple[torch.nn.Parameter, Optimizer]:
        """The optimizer, with two numbers as a vector or, if it takes none, as a matrix."""
        numbers = torch.tensor(self.start, dtype=torch.float64, device="cpu")
        for shaped in (numbers, numbers.view(1, 2)):
            parameter = torch.nn.Parameter(shaped.clone())
            try:
                optimizer = make([parameter])
            except ValueError as error:
                if shaped.dim() == 1 and "2D" in str(error):
                    continue
                raise
            if not isinstance(optimizer, Optimizer):
                raise UsageError(
                    f"trace_optimizer(...) expected `{self.name}` to make a torch.optim.Optimizer, "
                    f"got {type(optimizer).__name__!r}; return the optimizer."
                )
            return parameter, optimizer
        raise AssertionError("a matrix was refused as no matrix")

    def _arrival(self, heights: tuple[float, ...]) -> int | None:
        return arrival(heights, self.place.lowest, stays=not self.place.noise)

    def _at(self) -> Pair:
        x, y = self.parameter.detach().flatten().tolist()
        return x, y

    def to_end(self, steps: int, noise: list[Pair]) -> Racer:
        """All steps, or as many as go well."""
        points, heights = [self.start], [float(self.place.height(*self._tensors(self.start)))]
        far = FAR * (self.place.box[1] - self.place.box[0])
        for number in range(steps):
            if self.stopped or self.optimizer is None:
                break
            try:
                self._step(noise[number])
            except Exception as error:  # noqa: BLE001 - the learner's own optimizer
                self.stopped = f"{type(error).__name__}: {message_of(error)}"
                break
            x, y = self._at()
            if not (math.isfinite(x) and math.isfinite(y)) or max(abs(x), abs(y)) > far:
                self.stopped = f"diverged at step {number + 1:,}"
                break
            points.append((x, y))
            heights.append(float(self.place.height(*self._tensors((x, y)))))
        return Racer(
            name=self.name,
            optimizer=self.kind,
            settings=self.settings,
            points=tuple(points),
            heights=tuple(heights),
            arrived=None if self.stopped else self._arrival(tuple(heights)),
            stopped=self.stopped,
            momentum=self.momentum,
        )

    def _tensors(self, point: Pair) -> tuple[Any, Any]:
        """Plain numbers where the surface takes them, as ours do; else tensors."""
        if self.place.slope is not None:
            return point
        x, y = torch.tensor(point, dtype=torch.float64, device="cpu")
        return x, y

    def _step(self, noise: Pair) -> None:
        def closure() -> torch.Tensor:
            x, y = self._grade(noise)
            height = float(self.place.height(*self._tensors((x, y))))
            return torch.tensor(height + noise[0] * x + noise[1] * y)

        assert self.optimizer is not None  # noqa: S101 - for the type checker
        with torch.enable_grad():  # as in a training loop, where a step that forgets it raises
            if self.wants_closure:
                self.optimizer.step(cast(Any, closure))
            else:
                self._grade(noise)
                self.optimizer.step()

    def _grade(self, noise: Pair) -> Pair:
        """Set the gradient of the point where it stands; the point."""
        x, y = self._at()
        dx, dy = self.place.gradient(x, y)
        slope = torch.tensor((dx + noise[0], dy + noise[1]), dtype=torch.float64, device="cpu")
        self.parameter.grad = slope.view_as(self.parameter)
        return x, y


def _tune(optimizer: Optimizer, tuning: Tuning) -> None:
    """Set the groups as the sliders want them."""
    for group in optimizer.param_groups:
        if tuning.rate != 1.0:
            group["lr"] = group["lr"] * tuning.rate
        if tuning.momentum is None:
            continue
        if group.get("momentum"):
            group["momentum"] = tuning.momentum
        elif group.get("betas"):
            group["betas"] = (tuning.momentum, *group["betas"][1:])


def _settings(optimizer: Optimizer) -> str:
    group = optimizer.param_groups[0]
    said = []
    for key in SPELLED:
        value = group.get(key)
        if value is None or value is False or (value == 0 and key != "lr"):
            continue
        if isinstance(value, tuple):
            said.append(f"{key}=({', '.join(f'{float(one):g}' for one in value)})")
        else:
            said.append(f"{key}=True" if value is True else f"{key}={float(value):g}")
    return ", ".join(said)


def _named(optimizers: Any) -> dict[str, Factory]:
    """Name -> factory."""
    if isinstance(optimizers, Mapping):
        named = {str(name): make for name, make in optimizers.items()}
    elif isinstance(optimizers, list | tuple):
        names = [getattr(make, "__name__", type(make).__name__) for make in optimizers]
        named = {f"{n} {i + 1}" if names.count(n) > 1 else n: make
                 for i, (n, make) in enumerate(zip(names, optimizers, strict=True))}  # fmt: skip
    else:
        named = {}
    wrong = next((make for make in named.values() if not callable(make)), None)
    if not 1 <= len(named) <= MOST_RACERS or wrong is not None:
        got = optimizers if wrong is None else wrong
        raise UsageError(
            "trace_optimizer(optimizers, surface) expected a dict of 1 to "
            f"{MOST_RACERS} names with callables that make an optimizer from a list of parameters, "
            f'such as {{"SGD": lambda p: SGD(p, lr=0.1)}}, got {got!r:.60}.'
        )
    return named


def _pair(start: Any) -> Pair:
    numbers = list(start) if isinstance(start, list | tuple | torch.Tensor) else []
    try:
        x, y = map(float, numbers)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"trace_optimizer(...) expected `start` as two numbers, got {start!r:.60}."
        ) from error
    if not (math.isfinite(x) and math.isfinite(y)):
        raise UsageError(f"trace_optimizer(...) expected `start` as finite numbers, got {start}.")
    return x, y
