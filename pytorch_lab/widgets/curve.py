"""Loss curves: where the lines and the labels stand, and the sentence that says what they show.

`plan` computes everything once; `piece.js` draws it in the notebook's colours, and `to_image` draws
the same for readers without JavaScript.
"""

import base64
import html
import math
from typing import Any

WIDTH, HEIGHT = 420, 210
LEFT, RIGHT, TOP, BOTTOM = 58, 408, 26, 166
MOST_POINTS = 240
LOOKS = [("#0072b2", ""), ("#a34700", "6 4")]  # blue and whole, vermilion and dashed

Curves = dict[str, tuple[float, ...]]


def plan(curves: Curves) -> dict[str, Any] | None:
    """Where everything stands, or None if there is no curve.

    Example:
        >>> plan({"loss": (2.0, 1.0, 0.5)})["alt"]
        'Loss over 3 steps: from 2 to 0.5.'

    Args:
        curves: name -> losses, step by step; not more than two. A single loss makes no line and
            is left out.
    """
    curves = {name: losses for name, losses in curves.items() if len(losses) > 1}
    if not curves:
        return None
    finite = [loss for losses in curves.values() for loss in losses if math.isfinite(loss)]
    scale = _Scale(finite or [0.0])
    steps = max(len(losses) for losses in curves.values())
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "box": [LEFT, TOP, RIGHT, BOTTOM],
        "x_label": "step",
        "y_label": "loss (log scale)" if scale.log else "loss",
        "x_ticks": [[_x(step, steps), str(step)] for step in _steps(steps)],
        "y_ticks": [[scale.y(value), _short(value)] for value in scale.ticks()],
        "series": [
            {"name": name, "path": _path(losses, steps, scale), "end": _end(losses, steps, scale)}
            for name, losses in curves.items()
        ],
        "alt": " ".join(_says(name, losses) for name, losses in curves.items()),
    }


def to_image(plan: dict[str, Any]) -> str:
    """An `<img>` of the plan, in presentation attributes only."""
    left, top, right, bottom = plan["box"]
    parts = [
        f"<title>{html.escape(plan['alt'])}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="#5f6368"/>',
    ]
    text = '<text x="{}" y="{}" text-anchor="{}" font-size="12" fill="#202124">{}</text>'
    for y, label in plan["y_ticks"]:
        parts.append(f'<path d="M{left} {y}H{right}" stroke="#e3e5e8"/>')
        parts.append(text.format(left - 6, y + 4, "end", html.escape(label)))
    for x, label in plan["x_ticks"]:
        parts.append(text.format(x, bottom + 17, "middle", label))
    parts.append(text.format((left + right) / 2, HEIGHT - 8, "middle", plan["x_label"]))
    parts.append(text.format(8, 15, "start", plan["y_label"]))
    for place, ((colour, dash), series) in enumerate(zip(LOOKS, plan["series"], strict=False)):
        line = f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash or "none"}"'
        parts.append(f'<path d="{series["path"]}" {line}/>')
        if series["end"]:
            x, y, label = series["end"]
            parts.append(text.format(x - 6, y, "end", html.escape(label)))
        if len(plan["series"]) > 1:
            x = legend_x(place)
            parts.append(f'<path d="M{x} 11h22" {line}/>')
            parts.append(text.format(x + 28, 15, "start", html.escape(series["name"])))
    size = f'width="{WIDTH}" height="{HEIGHT}"'
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif">{"".join(parts)}</svg>'
    )
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{html.escape(plan["alt"])}" {size} src="data:image/svg+xml;base64,{data}">'


def legend_x(place: int) -> int:
    """Where the name of a curve begins; piece.js has the same."""
    return 168 + 120 * place


class _Scale:
    """From a loss to a height; logarithmic when the losses span more than three powers of ten."""

    def __init__(self, finite: list[float]) -> None:
        low, high = min(finite), max(finite)
        self.log = low > 0 and high / low > 1e3
        if self.log:
            self.low, self.high = math.floor(math.log10(low)), math.ceil(math.log10(high))
            return
        low = min(low, 0.0) if low < 0.6 * high else low
        step = _nice((high - low) / 4 or abs(high) or 1.0)
        self.step = step
        self.low = math.floor(low / step + 1e-9) * step
        self.high = max(math.ceil(high / step - 1e-9) * step, self.low + step)

    def y(self, value: float) -> float:
        place = math.log10(value) if self.log else value
        share = (place - self.low) / (self.high - self.low)
        return round(BOTTOM - share * (BOTTOM - TOP), 1)

    def ticks(self) -> list[float]:
        if self.log:
            stride = max(1, math.ceil((self.high - self.low) / 5))
            return [10.0**power for power in range(int(self.low), int(self.high) + 1, stride)]
        count = round((self.high - self.low) / self.step)
        return [round(self.low + k * self.step, 12) for k in range(count + 1)]


def _nice(step: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step * (1 - 1e-9))


def _x(step: int, steps: int) -> float:
    return round(LEFT + (RIGHT - LEFT) * (step - 1) / max(steps - 1, 1), 1)


def _steps(steps: int) -> list[int]:
    """The steps that get a label: the first, the last, and one between."""
    return sorted({1, (steps + 1) // 2, steps})


def _path(losses: tuple[float, ...], steps: int, scale: _Scale) -> str:
    """The line, broken where a loss is not finite."""
    stride = max(1, math.ceil(len(losses) / MOST_POINTS))
    kept = sorted({*range(0, len(losses), stride), len(losses) - 1})
    words, pen = [], "M"
    for index in kept:
        if math.isfinite(losses[index]):
            words.append(f"{pen}{_x(index + 1, steps)} {scale.y(losses[index])}")
            pen = "L"
        else:
            pen = "M"
    return "".join(words)


def _end(losses: tuple[float, ...], steps: int, scale: _Scale) -> list[Any] | None:
    """A word where a curve leaves the picture: its first loss that is not finite."""
    broken = next((k for k, loss in enumerate(losses) if not math.isfinite(loss)), None)
    if broken is None:
        return None
    x = _x(max(broken, 1), steps)
    return [max(x, LEFT + 120), TOP + 14, f"{losses[broken]} from step {broken + 1}"]


def _short(value: float) -> str:
    return f"{value:.4g}"


def _says(name: str, losses: tuple[float, ...]) -> str:
    whole = f"{name[:1].upper()}{name[1:]} over {len(losses)} steps"
    return f"{whole}: from {_short(losses[0])} to {_short(losses[-1])}."
