"""`vjp(...)`: choose the vector that goes back, and see what arrives.

A function of two numbers with two results has a Jacobian of two rows. Backward never builds it: it
takes a vector `v` and gives `v @ J`. Here two sliders choose `v`, each choice really goes back
through the live graph, and the arrow that arrives is drawn as what it is: so much of the first row,
then so much of the second. A target wants to be reached.
"""

import math
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

from pytorch_lab import svg
from pytorch_lab.errors import UsageError
from pytorch_lab.widgets.piece import LessonPiece

if TYPE_CHECKING:
    import torch

Pair = tuple[float, float]

REACH, STEP = 2.0, 0.5  # what the sliders offer: -2 to 2
SIZE, MARGIN = 320, 24  # of the picture, in pixels
CLOSE = 1e-3  # of the longest arrow: so near the target counts as reached
HEAD = 9  # of an arrow, in pixels


class Vjp(LessonPiece, stem="vjp"):
    """The widget of one function at one point."""

    kind = "Choose v"

    def __init__(self, y: "torch.Tensor", x: "torch.Tensor", v: Pair, target: Pair) -> None:
        self._y, self._x, self._target = y, x, target
        self._rows = (self._back((1.0, 0.0)), self._back((0.0, 1.0)))
        ends = (-REACH, 0.0, REACH)
        corners = product(ends, ends)  # the longest arrow ends at one of them
        lengths = [math.hypot(*self._back(corner)) for corner in corners]
        self._longest = max(*lengths, math.hypot(*target)) or 1.0
        super().__init__(
            {
                "x": [_short(number) for number in x.tolist()],
                "y": [_short(number) for number in y.tolist()],
                "rows": [_words(row) for row in self._rows],
                "target": {"words": _words(target), "at": self._place(target)},
                "reach": REACH,
                "step": STEP,
                "size": SIZE,
                **self._chosen(v),
            }
        )

    def on_choose(self, v: list[float]) -> None:
        """Go back once more, with another v."""
        self.update(trouble=None, **self._chosen(_pair("v", v)))

    def can_reach(self) -> bool:
        """Whether some choice of the sliders arrives at the target."""
        count = round(2 * REACH / STEP) + 1
        steps = [-REACH + STEP * k for k in range(count)]
        return any(self._is_reached(self._back(v)) for v in product(steps, steps))

    def _back(self, v: Pair) -> Pair:
        """`v @ J`, by a real way back."""
        import torch

        given = torch.tensor(v, dtype=self._y.dtype, device=self._y.device)
        (back,) = torch.autograd.grad(
            self._y, self._x, given, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        first, second = back.tolist()
        return first, second

    def _is_reached(self, back: Pair) -> bool:
        return math.dist(back, self._target) <= CLOSE * self._longest

    def _place(self, point: Pair) -> list[float]:
        """Where a point stands in the picture: the second number goes up."""
        scale = (SIZE / 2 - MARGIN) / self._longest
        middle = SIZE / 2
        return [round(middle + scale * point[0], 1), round(middle - scale * point[1], 1)]

    def _chosen(self, v: Pair) -> dict[str, Any]:
        back = self._back(v)
        first = (v[0] * self._rows[0][0], v[0] * self._rows[0][1])
        arrows = [((0.0, 0.0), first), (first, back), ((0.0, 0.0), back)]
        says = f"{_short(v[0])} × row 0 + {_short(v[1])} × row 1 = {_words(back)}"
        return {
            "v": list(v),
            "back": _words(back),
            "says": says,
            "arrows": [_arrow(self._place(tail), self._place(tip)) for tail, tip in arrows],
            "reached": self._is_reached(back),
        }

    def to_html(self) -> str:
        """The picture of the first choice, and the rows."""
        state = self.state
        picture = svg.Picture(SIZE, SIZE, f"v @ J: {state['says']}")
        middle = SIZE / 2
        for ends in ((0, middle, SIZE, middle), (middle, 0, middle, SIZE)):
            picture.line(*ends, stroke=svg.LINE)
        first, second, whole = state["arrows"]
        paint: dict[str, str | float] = {"fill": "none", "stroke_width": 2}
        picture.path(first, stroke=svg.BLUE, stroke_dasharray="5 4", **paint)
        picture.path(second, stroke=svg.BAD, stroke_dasharray="5 4", **paint)
        picture.path(whole, stroke=svg.INK, fill="none", stroke_width=3)
        x, y = state["target"]["at"]
        ring = f"M{x - 8} {y}a8 8 0 1 0 16 0a8 8 0 1 0 -16 0"
        picture.path(ring, stroke=svg.GOOD, **paint)
        lines = "".join(f"<p><code>{line}</code></p>" for line in self._lines())
        return self.framed(f"{picture.img()}{lines}")

    def _lines(self) -> list[str]:
        state = self.state
        return [
            f"x = [{', '.join(state['x'])}], y = [{', '.join(state['y'])}]",
            f"row 0 of J = {state['rows'][0]}",
            f"row 1 of J = {state['rows'][1]}",
            f"v = {_words(state['v'])}: v @ J = {state['says']}",
            f"target: v @ J = {state['target']['words']}",
        ]

    def __str__(self) -> str:
        return "\n".join([f"{self.kind}:", *(f"  {line}" for line in self._lines())])


def _arrow(tail: list[float], tip: list[float]) -> str:
    """The outline of an arrow; a dot where it has no length."""
    x, y = tip
    back_x, back_y = tail[0] - x, tail[1] - y
    length = math.hypot(back_x, back_y)
    if length < 1:
        return f"M{x} {y}h0.1"
    parts = [f"M{tail[0]} {tail[1]}L{x} {y}"]
    for turn in (0.45, -0.45):
        angle = math.atan2(back_y, back_x) + turn
        side = (x + HEAD * math.cos(angle), y + HEAD * math.sin(angle))
        parts.append(f"M{round(side[0], 1)} {round(side[1], 1)}L{x} {y}")
    return "".join(parts)


def _short(number: float) -> str:
    return f"{number + 0.0:.4g}"  # -0.0 becomes 0


def _words(pair: Any) -> str:
    return f"[{', '.join(_short(number) for number in pair)}]"


def _pair(name: str, pair: Any) -> Pair:
    """Two finite numbers, or a message."""
    numbers = [n for n in pair if isinstance(n, int | float)] if _is_row(pair) else []
    if len(numbers) != 2 or not all(math.isfinite(n) for n in numbers):
        raise UsageError(f"vjp(...) expected `{name}` as two numbers, got {pair!r:.60}.")
    return float(numbers[0]), float(numbers[1])


def _is_row(pair: Any) -> bool:
    return isinstance(pair, list | tuple) and len(pair) == 2


def vjp(
    function: Callable[["torch.Tensor"], "torch.Tensor"],
    x: "torch.Tensor",
    *,
    target: Pair,
    v: Pair = (1.0, 0.0),
) -> Vjp:
    """A vector-Jacobian product to play with.

    Example:
        >>> import torch
        >>> import pytorch_lab as lab
        >>> double = lab.vjp(lambda x: 2 * x, torch.tensor([1.0, 3.0]), target=(0.0, 4.0))
        >>> print(double)
        Choose v:
          x = [1, 3], y = [2, 6]
          row 0 of J = [2, 0]
          row 1 of J = [0, 2]
          v = [1, 0]: v @ J = 1 × row 0 + 0 × row 1 = [2, 0]
          target: v @ J = [0, 4]
        >>> double.on_choose([0.0, 2.0])
        >>> double.state["back"], double.state["reached"]
        ('[0, 4]', True)

    Args:
        function: takes a tensor of shape (2,) and returns one of shape (2,).
        x: where, of shape (2,); it is not changed.
        target: the `v @ J` that the learner should reach.
        v: the vector chosen first.

    Raises:
        UsageError: the shapes are others, the result has no graph, no choice reaches the target.
    """
    import torch

    if not isinstance(x, torch.Tensor) or x.shape != (2,) or not x.is_floating_point():
        got = f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else repr(x)
        raise UsageError(f"vjp(function, x) expected `x` as two real numbers, got {got:.60}.")
    first, wanted = _pair("v", v), _pair("target", target)
    with torch.enable_grad():
        leaf = x.detach().clone().requires_grad_()
        y = function(leaf)
    if not isinstance(y, torch.Tensor) or y.shape != (2,) or not y.requires_grad:
        got = f"shape {tuple(y.shape)}" if isinstance(y, torch.Tensor) else type(y).__name__
        graph = "" if getattr(y, "requires_grad", False) else " without a graph"
        raise UsageError(
            f"vjp(function, x) expected a result of shape (2,) that depends on x, got {got}{graph};"
            " return torch.stack([...]) of two numbers made from x."
        )
    widget = Vjp(y, leaf, first, wanted)
    if widget.state["reached"] or not widget.can_reach():
        why = "is where it starts" if widget.state["reached"] else "no position of them reaches"
        raise UsageError(
            f"vjp(...) expected a `target` for the sliders to reach, got {wanted}, which {why}; "
            f"its rows are {' and '.join(widget.state['rows'])}."
        )
    return widget
