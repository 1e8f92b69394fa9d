"""Hills and valleys of two numbers, on which optimizers can be seen to walk.

    optim.surface("ravine", conditioning=50)

| name         | what it is                                                                 |
| ------------ | -------------------------------------------------------------------------- |
| `ravine`     | a long valley, `conditioning` times as steep across as along                |
| `bowl`       | the same, with the same noise in everybody's gradient, as from small batches |
| `saddle`     | flat between two valleys; across it is `conditioning` times as steep        |
| `rosenbrock` | a bent valley with a flat floor; its walls are `conditioning` high          |
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from pytorch_lab.errors import ModelError, UsageError
from pytorch_lab.words import message_of

Pair = tuple[float, float]
LARGE = 1e100  # no picture has numbers beyond
Box = tuple[float, float, float, float]  # left, right, bottom, top


@dataclass(frozen=True, slots=True)
class Surface:
    """A function of two numbers, and what is known of it."""

    name: str
    function: Callable[[Any, Any, float], Any]  # (x, y, conditioning) -> height; tensors or arrays
    box: Box  # what a picture shows
    start: Pair
    conditioning: float = 1.0
    lowest: float | None = None  # the height of its lowest point, if it is known
    noise: float = 0.0  # the spread of what is added to each number of the gradient
    goals: tuple[Pair, ...] = ()  # where it is lowest
    slope: Callable[[float, float, float], Pair] | None = None  # the gradient; else autograd's

    def height(self, x: Any, y: Any) -> Any:
        """The height at a point, or at many: numbers, arrays or tensors."""
        return self.function(x, y, self.conditioning)

    def gradient(self, x: float, y: float) -> Pair:
        """The gradient at a point, without noise.

        Example:
            >>> surface("ravine", conditioning=10).gradient(1.0, 2.0)
            (1.0, 20.0)
        """
        if self.slope is not None:
            return self.slope(x, y, self.conditioning)
        with torch.enable_grad():
            point = torch.tensor([x, y], dtype=torch.float64, requires_grad=True)
            height = self.height(point[0], point[1])
            (found,) = torch.autograd.grad(height, point)
        return float(found[0]), float(found[1])


def _ravine(x: Any, y: Any, conditioning: float) -> Any:
    return (x * x + conditioning * (y * y)) / 2


def _ravine_slope(x: float, y: float, conditioning: float) -> Pair:
    return x, conditioning * y


def _saddle(x: Any, y: Any, conditioning: float) -> Any:
    squared = x * x
    return conditioning * (y * y) / 2 - squared / 2 + squared * squared / 4


def _saddle_slope(x: float, y: float, conditioning: float) -> Pair:
    return x * x * x - x, conditioning * y


def _rosenbrock(x: Any, y: Any, conditioning: float) -> Any:
    far = 1 - x
    off = y - x * x
    return far * far + conditioning * (off * off)


def _rosenbrock_slope(x: float, y: float, conditioning: float) -> Pair:
    off = y - x * x
    return -2 * (1 - x) - 4 * conditioning * x * off, 2 * conditioning * off


SURFACES = {
    "ravine": Surface(
        "ravine", _ravine, (-4.4, 4.4, -1.6, 1.6), (-4.0, 1.0), 20.0, 0.0,
        goals=((0.0, 0.0),), slope=_ravine_slope,
    ),
    "bowl": Surface(
        "bowl", _ravine, (-4.4, 4.4, -1.6, 1.6), (-4.0, 1.0), 4.0, 0.0, 0.6,
        goals=((0.0, 0.0),), slope=_ravine_slope,
    ),
    "saddle": Surface(
        "saddle", _saddle, (-1.8, 1.8, -0.7, 0.7), (-0.02, 0.5), 10.0, -0.25,
        goals=((-1.0, 0.0), (1.0, 0.0)), slope=_saddle_slope,
    ),
    "rosenbrock": Surface(
        "rosenbrock", _rosenbrock, (-1.8, 1.8, -0.6, 2.2), (-1.2, 1.0), 10.0, 0.0,
        goals=((1.0, 1.0),),        slope=_rosenbrock_slope,
    ),
}  # fmt: skip


def surface(
    which: str | Surface | Callable[[torch.Tensor], torch.Tensor],
    *,
    conditioning: float | None = None,
    box: Box | None = None,
) -> Surface:
    """A surface by its name, or from a function of one's own.

    Example:
        >>> surface("saddle").lowest
        -0.25
        >>> surface(lambda p: (p ** 2).sum()).gradient(1.0, -2.0)
        (2.0, -4.0)

    Args:
        which: a name of the table above, or a function that takes a tensor of shape (2,) and
            returns its height, of shape ().
        conditioning: how much steeper one way is than the other; of a named surface only.
        box: left, right, bottom and top of the picture.

    Raises:
        UsageError: an unknown name, or a conditioning that is not above 0.
    """
    if isinstance(which, Surface):
        found = which
    elif isinstance(which, str):
        if which not in SURFACES:
            raise UsageError(
                f"surface(which) expected one of {', '.join(SURFACES)}, got {which!r}."
            )
        found = SURFACES[which]
    elif callable(which):
        found = _own(which)
    else:
        raise UsageError(
            "surface(which) expected a name or a function of a tensor of shape (2,), got "
            f"{which!r:.60}."
        )
    if conditioning is not None:
        if not isinstance(conditioning, int | float) or not 0 < conditioning < float("inf"):
            raise UsageError(
                f"surface(which) expected `conditioning` above 0, got {conditioning!r:.60}."
            )
        found = replace(found, conditioning=float(conditioning))
    return found if box is None else replace(found, box=_checked(box))


def _checked(box: Any) -> Box:
    try:
        left, right, bottom, top = map(float, box)
    except (TypeError, ValueError):
        left = right = bottom = top = 0.0
    if not (-LARGE < left < right < LARGE and -LARGE < bottom < top < LARGE):
        raise UsageError(
            "surface(which) expected `box` as four numbers, left < right and bottom < top, "
            f"got {box!r:.60}."
        )
    return left, right, bottom, top


def _own(function: Callable[[torch.Tensor], torch.Tensor]) -> Surface:
    def height(x: Any, y: Any, _conditioning: float) -> Any:
        if isinstance(x, torch.Tensor):
            return _height_of(function, torch.stack([x, y]))
        points = zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
        with torch.no_grad():
            tensors = (torch.tensor(p, dtype=torch.float64) for p in points)
            heights = [float(_height_of(function, one)) for one in tensors]
        return type_like(x, heights)

    name = getattr(function, "__name__", type(function).__name__)
    return Surface(
        "own surface" if name == "<lambda>" else name, height, (-3.0, 3.0, -3.0, 3.0), (-2.0, 1.0)
    )


def _height_of(function: Callable[[torch.Tensor], Any], point: torch.Tensor) -> torch.Tensor:
    try:
        height = function(point)
    except Exception as error:
        raise ModelError(
            f"the surface raised {type(error).__name__}: {message_of(error)}; it was given a "
            "tensor of shape (2,)."
        ) from error
    is_one = isinstance(height, torch.Tensor) and height.numel() == 1
    if not is_one or height.is_complex() or height.is_meta:
        got = tuple(height.shape) if isinstance(height, torch.Tensor) else f"{height!r:.40}"
        raise UsageError(
            "surface(function) expected a function that returns its height as a tensor of one real "
            f"number, got {got}."
        )
    return height


def type_like(array: Any, heights: list[float]) -> Any:
    """Numbers as a numpy array of the given one's shape."""
    import numpy

    return numpy.array(heights).reshape(array.shape)
