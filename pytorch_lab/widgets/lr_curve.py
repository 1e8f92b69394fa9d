"""The picture of a schedule: the learning rate of every step, and what is odd about it.

    lab.show(scheduler, 100)                              # looks ahead, changes nothing
    lab.show(optim.trace_schedule(scheduler, 100))        # the same

Move along the steps to read the rates; what is odd is shaded where it happens.
"""

import math
from typing import Any

from pytorch_lab import svg, words
from pytorch_lab.optim.curve import LrCurve, Remark
from pytorch_lab.optim.curve_text import headline, short
from pytorch_lab.remark import problems_first
from pytorch_lab.widgets import prose
from pytorch_lab.widgets.axes import Axis
from pytorch_lab.widgets.piece import LessonPiece

WIDTH, HEIGHT = 640, 250
LEFT, RIGHT, TOP, BOTTOM = 76, 628, 14, 212
MOST_POINTS = 600  # of a line
MOST_STOPS = 400  # where the pointer can stand
MOST_LINES = 6
LOOKS = [
    ("#0072b2", "none"), ("#a34700", "7 4"), ("#007a58", "2 3"),
    ("#8a6400", "9 3 2 3"), ("#8b4a7a", "4 2"), ("#1c1e21", "1 2"),
]  # fmt: skip


class LrPicture(LessonPiece, stem="lr_curve"):
    """The widget of an `LrCurve`.

    Example:
        >>> curve = LrCurve("StepLR()", 2, ("group 0",), ((0.1, 0.01),), (0.01,), (0.1,))
        >>> LrPicture(curve).state["lines"][0]["values"]
        ['0.1', '0.01']

    Args:
        curve: what `trace_schedule` or `watch_schedule` found.
    """

    kind = "Learning rate"

    def __init__(self, curve: LrCurve) -> None:
        self.curve = curve
        super().__init__(_state(curve))

    def to_html(self) -> str:
        """The linear picture and the remarks."""
        return self.framed(_picture(self.state) + _list(self.curve.remarks))

    def __str__(self) -> str:
        return str(self.curve)


def _state(curve: LrCurve) -> dict[str, Any]:
    lines = _lines(curve)
    finite = [rate for line in lines for rate in line["rates"] if math.isfinite(rate)] or [0.0]
    came = max((len(line["rates"]) for line in lines), default=1)
    x = Axis(0, max(came - 1, 1), LEFT, RIGHT, round_ends=False)
    positive = [rate for rate in finite if rate > 0]
    scales = {"linear": Axis(min(0.0, *finite, 0.0), max(0.0, *finite, 0.0), BOTTOM, TOP)}
    if positive and min(finite) >= 0:
        low = max(min(positive), max(positive) * 1e-12)
        scales["log"] = Axis(low, max(positive), BOTTOM, TOP, log=True)
    stops = _thinned(came, MOST_STOPS)
    finding, good = _finding(curve)
    return {
        "title": headline(curve),
        "finding": finding,
        "good": good,
        "remarks": [[one.level, one.text] for one in problems_first(curve.remarks)],
        "size": [WIDTH, HEIGHT],
        "box": [LEFT, TOP, RIGHT, BOTTOM],
        "x_ticks": [[x.at(step), f"{step:,.0f}"] for step in x.ticks() if step == int(step)],
        "scales": {
            name: {
                "ticks": [[y.at(value), short(value)] for value in y.ticks()],
                "paths": [_path(line["rates"], x, y) for line in lines],
            }
            for name, y in scales.items()
        },
        "shades": [[x.at(a), x.at(b)] for a, b in _spans(curve)],
        "stops": stops,
        "places": [x.at(step) for step in stops],
        "lines": [
            {"name": line["name"], "values": [short(line["rates"][step]) for step in stops]}
            for line in lines
        ],
        "left_out": max(len(_lines(curve, most=10**9)) - MOST_LINES, 0),
    }


def _lines(curve: LrCurve, most: int = MOST_LINES) -> list[dict[str, Any]]:
    """The different curves; groups that share one are named together. Momentum comes last."""
    rows: dict[tuple[float, ...], list[str]] = {}
    for name, rates in zip(curve.names, curve.rates, strict=True):
        rows.setdefault(rates, []).append(name)
    return [{"name": _together(names), "rates": rates} for rates, names in rows.items()][:most]


def _together(names: list[str]) -> str:
    if len(names) > 3:
        return f"{names[0]} and {words.count(len(names) - 1, 'group')} alike"
    return ", ".join(names)


def _finding(curve: LrCurve) -> tuple[str, bool]:
    problems = len(curve.problems)
    if problems:
        return f"{words.count(problems, 'thing')} to look at", False
    return "Nothing odd about this curve", True


def _spans(curve: LrCurve) -> list[tuple[int, int]]:
    return [one.span for one in curve.problems if one.span is not None]


def _thinned(count: int, most: int) -> list[int]:
    """At most so many of the steps, evenly, with the first and the last."""
    if count <= most:
        return list(range(count))
    return [round(k * (count - 1) / (most - 1)) for k in range(most)]


def _path(rates: tuple[float, ...], x: Axis, y: Axis) -> str:
    """A line that breaks where a rate is no number; turns are kept where steps are left out."""
    said, pen = [], "M"
    for step in _kept(rates):
        if math.isfinite(rates[step]):
            said.append(f"{pen}{x.at(step):g} {y.at(rates[step]):g}")
            pen = "L"
        else:
            pen = "M"
    if len(said) == 1:
        said.append("h0.1")
    return "".join(said)


def _kept(rates: tuple[float, ...]) -> list[int]:
    """Of each stretch of steps its first, lowest and highest."""
    stretch = max(1, math.ceil(len(rates) * 3 / MOST_POINTS))
    if stretch == 1:
        return list(range(len(rates)))
    kept = {len(rates) - 1}
    for start in range(0, len(rates), stretch):
        part = range(start, min(start + stretch, len(rates)))
        kept |= {start, min(part, key=rates.__getitem__), max(part, key=rates.__getitem__)}
    return sorted(kept)


def _picture(state: dict[str, Any]) -> str:
    """The same as an `<img>`."""
    scale = state["scales"]["linear"]
    legend = 18 * len(state["lines"]) if len(state["lines"]) > 1 else 0
    drawing = svg.Picture(WIDTH, HEIGHT + legend, f"{state['title']}. {state['finding']}")
    for start, end in state["shades"]:
        drawing.rect(start, TOP, max(end - start, 2), BOTTOM - TOP, fill=svg.BAD_WASH)
    for y, label in scale["ticks"]:
        drawing.line(LEFT, y, RIGHT, y, stroke=svg.LINE)
        drawing.text(LEFT - 8, y + 4, label, text_anchor="end")
    for x, label in state["x_ticks"]:
        drawing.text(x, BOTTOM + 18, label, text_anchor="middle")
    drawing.text((LEFT + RIGHT) / 2, HEIGHT - 4, "step", fill=svg.QUIET, text_anchor="middle")
    drawing.path(f"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}", fill="none", stroke=svg.QUIET)
    for place, (path, line) in enumerate(zip(scale["paths"], state["lines"], strict=True)):
        colour, dash = LOOKS[place]
        paint = {"fill": "none", "stroke": colour, "stroke-width": 2, "stroke-dasharray": dash}
        if path:
            drawing.path(path, **paint)
        if legend:
            y = HEIGHT + 18 * place + 8
            drawing.line(LEFT, y, LEFT + 28, y, **paint)
            drawing.text(LEFT + 36, y + 4, line["name"])
    return drawing.img()


def _list(remarks: tuple[Remark, ...]) -> str:
    items = "".join(f"<li>{prose.to_html(one.text)}</li>" for one in problems_first(remarks))
    return f"<ul>{items}</ul>" if items else ""
