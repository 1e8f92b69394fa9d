"""The ways to resume a run: the loss each of them goes on with, and how far it ends from the truth.

    lab.show(checkpoints.resume_gap(make_run))

Choose a way: its losses are laid over those of the run that was never interrupted.
"""

import math
from html import escape
from typing import Any

from pytorch_lab import svg
from pytorch_lab.checkpoints.resume import ResumeGap, Way
from pytorch_lab.checkpoints.resume_text import began, farthest, short
from pytorch_lab.widgets.axes import Axis
from pytorch_lab.widgets.piece import LessonPiece
from pytorch_lab.words import count

WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 56, 628, 22, 200
ROW, BAR, NAME = 24, 200, 190  # of the still picture's table


class Resume(LessonPiece, stem="resume"):
    """The widget of a `ResumeGap`.

    Example:
        >>> way = Way("nothing", (), (2.0,), 0.5, 0)
        >>> Resume(ResumeGap((3.0,), (1.0,), (way,), (), 0.0, "model")).state["rows"][0]["distance"]
        '0.5'

    Args:
        gap: what `checkpoints.resume_gap` found.
    """

    kind = "Resuming"

    def __init__(self, gap: ResumeGap) -> None:
        self.gap = gap
        super().__init__(_state(gap))

    def to_html(self) -> str:
        """The curve of the chosen way and the bars of all."""
        return self.framed(_picture(self.state) + f"<p>{escape(self.state['finding'])}</p>")

    def __str__(self) -> str:
        return str(self.gap)


def _state(gap: ResumeGap) -> dict[str, Any]:
    before, after = len(gap.before), len(gap.uninterrupted)
    ways = (*gap.ways, *gap.without)
    losses = [gap.before, gap.uninterrupted, *(way.losses for way in ways)]
    finite = [loss for row in losses for loss in row if math.isfinite(loss)] or [0.0]
    x = Axis(1, max(before + after, 2), LEFT, RIGHT, round_ends=False)
    y = _height(finite)
    top = farthest(gap)
    return {
        "title": f"Interrupted after {count(before, 'step')}, resumed for {after:,}",
        "finding": gap.verdict,
        "good": gap.exact,
        "size": [WIDTH, HEIGHT],
        "box": [LEFT, TOP, RIGHT, BOTTOM],
        "x_ticks": [[x.at(step), f"{step:,.0f}"] for step in x.ticks() if step == int(step)],
        "y_ticks": [[y.at(value), short(value)] for value in y.ticks()],
        "cut": x.at(before + 0.5) if before else None,
        "truth": _path((*gap.before, *gap.uninterrupted), 0, x, y),
        "rows": [_row(gap, way, top, before, x, y) for way in ways],
        "without": len(gap.ways),  # the first row of those that leave one piece out
        "selected": min(1, len(ways) - 1),
    }


def _height(finite: list[float]) -> Axis:
    """The axis of the losses; logarithmic when they span more than three powers of ten."""
    low, high = min(finite), max(finite)
    if low > 0 and high / low > 1e3:
        return Axis(low, high, BOTTOM, TOP, log=True)
    return Axis(min(low, 0.0) if low < 0.6 * high else low, high, BOTTOM, TOP)


def _row(gap: ResumeGap, way: Way, top: float, before: int, x: Axis, y: Axis) -> dict[str, Any]:
    share = way.distance / top if top and math.isfinite(way.distance) else float(top > 0)
    return {
        "name": way.name,
        "distance": short(way.distance),
        "exact": way.distance == 0.0,
        "share": round(share, 4),
        "began": began(gap, way),
        "path": _path(way.losses, before, x, y),
        "says": f"{way.name}: distance {short(way.distance)}. {began(gap, way)}".strip(),
    }


def _path(losses: tuple[float, ...], start: int, x: Axis, y: Axis) -> str:
    """A line that breaks where a loss is no number; a single loss is a dot."""
    said, pen = [], "M"
    for step, loss in enumerate(losses, start + 1):
        if math.isfinite(loss):
            said.append(f"{pen}{x.at(step):g} {y.at(loss):g}")
            pen = "L"
        else:
            pen = "M"
    return "".join(said) + ("h0.1" if len(said) == 1 else "")


def _picture(state: dict[str, Any]) -> str:
    """The same as an `<img>`: the curve of one way, then a bar for each."""
    rows = state["rows"]
    chosen = rows[state["selected"]]
    drawing = svg.Picture(WIDTH, HEIGHT + ROW * (len(rows) + 1) + 14, state["title"])
    for y, label in state["y_ticks"]:
        drawing.line(LEFT, y, RIGHT, y, stroke=svg.LINE)
        drawing.text(LEFT - 8, y + 4, label, text_anchor="end")
    for x, label in state["x_ticks"]:
        drawing.text(x, BOTTOM + 18, label, text_anchor="middle")
    drawing.text((LEFT + RIGHT) / 2, HEIGHT - 6, "step", fill=svg.QUIET, text_anchor="middle")
    drawing.text(LEFT, 13, "loss", fill=svg.QUIET)
    drawing.path(f"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}", fill="none", stroke=svg.QUIET)
    if state["cut"] is not None:
        cut = {"stroke": svg.QUIET, "stroke-dasharray": "2 3"}
        drawing.line(state["cut"], TOP, state["cut"], BOTTOM, **cut)
    line = {"fill": "none", "stroke-width": 2}
    drawing.path(state["truth"], stroke=svg.BLUE, **line)
    drawing.path(chosen["path"], stroke=svg.BAD, **line, stroke_dasharray="7 4")
    drawing.text(RIGHT, 13, f"blue: uninterrupted; dashed: {chosen['name']}", text_anchor="end")
    for place, row in enumerate(rows):
        top = HEIGHT + 8 + ROW * (place + (place >= state["without"]))
        _bar(drawing, row, top)
    return drawing.img(f"{state['title']}. {state['finding']}")


def _bar(drawing: svg.Picture, row: dict[str, Any], top: float) -> None:
    colour = svg.GOOD if row["exact"] else svg.BAD
    drawing.text(LEFT, top + 15, svg.clip(row["name"], NAME - 8, 12))
    drawing.text(LEFT + NAME + 50, top + 15, row["distance"], fill=colour, text_anchor="end")
    drawing.rect(LEFT + NAME + 60, top + 5, max(BAR * row["share"], 1), 12, fill=colour)
    drawing.text(LEFT + NAME + 70 + BAR * row["share"], top + 15, row["began"], fill=svg.QUIET)
