"""Where everything of a race stands: level lines of the surface, ways, and the place of the lowest.

One scale for both axes, so that a valley looks as steep as it is.
"""

import functools
import itertools
from typing import Any

import contourpy
import numpy

from pytorch_lab import svg
from pytorch_lab.optim.path import Racer, StepPath, headline, result
from pytorch_lab.optim.surfaces import Surface
from pytorch_lab.widgets import prose

WIDEST, TALLEST = 640, 380
GRID = 110  # points of the longer side
LEVELS = 11
COLOURS = (
    "#0072b2", "#b84a00", "#007a58", "#8a6400", "#8b4a7a", "#1c1e21", "#00659e", "#5f6368",
    "#a34700", "#4f6b00", "#7a3b3b", "#3b4f7a",
)  # fmt: skip


class Frame:
    """The picture's pixels."""

    def __init__(self, box: tuple[float, float, float, float]) -> None:
        self.left, right, self.bottom, self.top = box
        self.scale = min(WIDEST / (right - self.left), TALLEST / (self.top - self.bottom))
        self.width = round((right - self.left) * self.scale)
        self.height = round((self.top - self.bottom) * self.scale)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The pixel of a point; what lies far outside stays within twenty pictures."""
        reach = 20 * WIDEST
        across = (x - self.left) * self.scale
        down = (self.top - y) * self.scale
        return (
            round(max(-reach, min(reach, across)), 1),
            round(max(-reach, min(reach, down)), 1),
        )

    def all_at(self, points: numpy.ndarray) -> list[list[float]]:
        """The pixels of many points that lie inside, of shape (points, 2)."""
        moved = (points - (self.left, self.top)) * (self.scale, -self.scale)
        return moved.round(1).tolist()


@functools.lru_cache(maxsize=64)
def levels(place: Surface, width: int, height: int) -> tuple[str, ...]:
    """The level lines as paths; each height above the lowest is half of the next."""
    left, right, bottom, top = place.box
    across = GRID if width >= height else round(GRID * width / height)
    down = GRID if height >= width else round(GRID * height / width)
    x, y = numpy.meshgrid(numpy.linspace(left, right, across), numpy.linspace(bottom, top, down))
    heights = numpy.asarray(place.height(x, y), dtype=float)
    finite = heights[numpy.isfinite(heights)]
    if not finite.size:
        return ()
    low = float(finite.min()) if place.lowest is None else place.lowest
    span = float(finite.max()) - low
    lines = contourpy.contour_generator(x, y, heights)
    frame = Frame(place.box)
    found = []
    for k in range(1, LEVELS):
        pieces: Any = lines.lines(low + span * 0.5**k)
        path = "".join(_path(frame.all_at(piece)) for piece in pieces)
        if path:
            found.append(path)
    return tuple(found)


def _path(points: list[list[float]]) -> str:
    return "M" + "L".join([f"{x:g} {y:g}" for x, y in points]) if len(points) > 1 else ""


def way(racer: Racer, frame: Frame) -> tuple[list[list[float]], list[list[float]]]:
    """After each step the racer's place, kept at the edge if it is outside, and the line to it.

    A line is cut to what lies inside the picture: x and y of both ends, or nothing.
    """
    points = [frame.at(x, y) for x, y in racer.points]
    width, height = frame.width, frame.height
    places = [[max(0.0, min(x, width)), max(0.0, min(y, height))] for x, y in points]
    lines = [clipped(*pair, width, height) for pair in itertools.pairwise(points)]
    return places, [[], *lines]


def still(path: StepPath, place: Surface) -> str:
    """The whole race as an `<img>`."""
    frame = Frame(path.box)
    rows = len(path.racers)
    drawing = svg.Picture(frame.width, frame.height + 12 + 20 * rows, headline(path))
    for line in levels(place, frame.width, frame.height):
        drawing.path(line, fill="none", stroke=svg.LINE)
    for goal in place.goals:
        drawing.path(_cross(*frame.at(*goal)), fill="none", stroke=svg.INK, stroke_width=1.5)
    ways = [way(racer, frame) for racer in path.racers]
    for (_, lines), colour in zip(ways, COLOURS, strict=False):
        drawing.path(_drawn(lines), fill="none", stroke=colour, stroke_width=1.8)
    for number, racer in enumerate(path.racers):
        colour = COLOURS[number]
        x, y = ways[number][0][-1]
        drawing.path(_dot(x, y), fill=colour)
        drawing.text(x + 7, y - 5, str(number + 1), fill=colour, font_weight="600")
        base = frame.height + 22 + 20 * number
        drawing.path(_dot(14, base - 4), fill=colour)
        drawing.text(28, base, f"{number + 1} {racer.name}: {result(racer)}")
    return drawing.img(f"{headline(path)}. {_results(path)}")


def _results(path: StepPath) -> str:
    return "; ".join(f"{racer.name} {result(racer)}" for racer in path.racers) + "."


def _cross(x: float, y: float) -> str:
    return f"M{x - 6:g} {y - 6:g}l12 12m0 -12l-12 12"


def _dot(x: float, y: float) -> str:
    return f"M{x - 4:g} {y:g}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0"


def _drawn(lines: list[list[float]]) -> str:
    """The lines of a way as one path."""
    return "".join(f"M{a:g} {b:g}L{c:g} {d:g}" for a, b, c, d in filter(None, lines)) or "M0 0"


def clipped(
    one: tuple[float, float], other: tuple[float, float], width: float, height: float
) -> list[float]:
    """The part of a line inside the picture, after Liang and Barsky; empty if there is none.

    Example:
        >>> clipped((-10.0, 5.0), (10.0, 5.0), 100, 50), clipped((-9.0, 1.0), (-1.0, 1.0), 100, 50)
        ([0.0, 5.0, 10.0, 5.0], [])
    """
    dx, dy = other[0] - one[0], other[1] - one[1]
    enter, leave = 0.0, 1.0
    for step, room in ((-dx, one[0]), (dx, width - one[0]), (-dy, one[1]), (dy, height - one[1])):
        if step == 0 and room < 0:
            return []
        if step < 0:
            enter = max(enter, room / step)
        elif step > 0:
            leave = min(leave, room / step)
    if enter > leave:
        return []
    return [round(v, 1) for s in (enter, leave) for v in (one[0] + s * dx, one[1] + s * dy)]


def legend_html(path: StepPath) -> str:
    """The remarks as a list."""
    items = "".join(f"<li>{prose.to_html(one.text)}</li>" for one in path.remarks)
    return f"<ul>{items}</ul>" if items else ""


def state_of(path: StepPath, place: Surface) -> dict[str, Any]:
    """What the page draws of one race."""
    frame = Frame(path.box)
    return {
        "title": headline(path),
        "size": [frame.width, frame.height],
        "levels": list(levels(place, frame.width, frame.height)),
        "goals": [_cross(*frame.at(*goal)) for goal in place.goals],
        "steps": path.steps,
        "racers": [
            {
                "name": racer.name,
                "settings": f"{racer.optimizer}({racer.settings})" if racer.optimizer else "",
                **dict(zip(("places", "lines"), way(racer, frame), strict=True)),
                "heights": [f"{height:.3g}" for height in racer.heights],
                "arrived": racer.arrived,
                "result": result(racer),
                "stopped": bool(racer.stopped),
            }
            for racer in path.racers
        ],
        "remarks": [[one.level, one.text] for one in path.remarks],
    }
