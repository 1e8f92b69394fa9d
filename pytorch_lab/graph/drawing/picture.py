"""The graph as a still picture: for a saved notebook, a slide, a page that runs no scripts.

Frames are modules, loops and their steps, white boxes are ops, blue ones are folded frames (with
sheets behind them where they stand for several), round ones are inputs, ochre labels are
parameters. A dashed border says that no graph was recorded there, a cross that the run ended there
in an error.
"""

import difflib
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from pytorch_lab import svg
from pytorch_lab.errors import UsageError
from pytorch_lab.graph.drawing.layout import Box, Layout, layout
from pytorch_lab.graph.drawing.routes import Point
from pytorch_lab.graph.drawing.scene import CHIP, SMALL, TITLE, Look, Scene, chip_width, scene_of
from pytorch_lab.words import count

TOP, LEAST = 58, 420
EDGE = "#6f7983"
FRAME, FRAME_LINE = ("#f3f6f9", "#ffffff"), "#aab6c2"
BOX_LINE, FOLDED, FOLDED_LINE = "#59636d", "#e1edf7", "#2f76a8"
INPUT, INPUT_LINE = "#e4f3ed", "#007a58"
LABEL, LABEL_LINE, LABEL_INK = "#fdf2da", "#c58b14", "#4f3a05"
SHEETS = ("repeat", "loop", "range")
FOLDS = {"call": "module", "function": "function", "step": "step"}


def to_svg(
    record: Any, *, view: str = "ops", open: Iterable[str] | None = None, title: str | None = None
) -> str:
    """Draw a record as SVG: no script, no style sheet, the same bytes for the same record.

    Args:
        record: what `record(...)` or `of(...)` returned.
        view: "ops" or "autograd", see `scene_of`.
        open: paths of modules to unfold, such as "transformer.h.0"; what lies around them is
            unfolded too. By default as many as give about forty boxes.
        title: stands above; by default the name of what was recorded.

    Raises:
        UsageError: no module of a path in `open` was called.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph import record
        >>> text = to_svg(record(torch.nn.Linear(2, 1), torch.ones(3, 2)), title="A layer")
        >>> text.startswith("<svg"), "<title>A layer</title>" in text
        (True, True)
    """
    scene = scene_of(record, view)
    unfolded = scene.open if open is None else _unfolded(record, scene, open)
    return draw(scene, unfolded, title or record.function, _summary(record), record.error or "")


def _unfolded(record: Any, scene: Scene, paths: Iterable[str]) -> set[int]:
    """The frames of these modules, and all frames around them."""
    wanted = dict.fromkeys([paths] if isinstance(paths, str) else paths)
    known = {call.path for call in record.calls}
    lost = [path for path in wanted if path not in known]
    if lost:
        near = difflib.get_close_matches(str(lost[0]), known, 1)
        raise UsageError(
            f"to_svg(open=...) expected paths of modules that were called, got {lost[0]!r}"
            + (f"; did you mean {near[0]!r}?" if near else "; see the paths in `record.calls`.")
        )
    found: set[int] = {0}
    around: list[int] = []
    for item, end in enumerate(scene.ends):
        while around and scene.ends[around[-1]] <= item:
            around.pop()
        if end > item + 1:
            around.append(item)
            kind = scene.looks[scene.look[item]].kind
            if kind == "call" and record.calls[scene.refs[item]].path in wanted:
                found.update(around)
    return found


def draw(scene: Scene, unfolded: Iterable[int], title: str, summary: str, error: str = "") -> str:
    """Draw a scene with these frames unfolded."""
    placed = layout(scene.diagram, unfolded)
    error = svg.clip(" ".join(error.split()), 640, 12)
    wide = max(
        placed.width, LEAST, 24 + 8 * len(title), 24 + 7 * len(summary), 24 + 7.3 * len(error)
    )
    top = TOP + (18 if error else 0)
    legend = _legend_rows(_legend(scene, placed), wide)
    picture = svg.Picture(wide, top + placed.height + 18 * len(legend) + 16, title)
    sans = {"font-family": svg.SANS}
    picture.text(14, 26, title, size=15, **sans, **{"font-weight": 600})
    picture.text(14, 45, summary, size=12, **sans, fill=svg.QUIET)
    picture.text(14, 64, error, size=12, fill=svg.BAD)
    _Drawing(picture, scene, placed, ((wide - placed.width) / 2, top)).draw()
    for place, row in enumerate(legend):
        _draw_legend(picture, row, top + placed.height + 20 + 18 * place)
    return picture.svg()


class _Drawing:
    """One layout on one picture, its left upper corner at `corner`."""

    def __init__(self, picture: svg.Picture, scene: Scene, placed: Layout, corner: Point) -> None:
        self.picture, self.scene, self.placed = picture, scene, placed
        self.left, self.top = round(corner[0], 1), corner[1]

    def draw(self) -> None:
        frames = [box for box in self.placed.boxes if box.is_open]
        depth: list[int] = []  # the ends of the frames around the one at hand
        for box in frames:
            while depth and depth[-1] <= box.item:
                depth.pop()
            self._frame(box, len(depth))
            depth.append(self.scene.ends[box.item])
        self._edges()
        for box in frames:
            self._name(box)
        for box in self.placed.boxes:
            if not box.is_open:
                self._box(box)

    def _look(self, item: int) -> Look:
        return self.scene.looks[self.scene.look[item]]

    def _corner(self, box: Box) -> Point:
        return box.x + self.left, box.y + self.top

    def _frame(self, box: Box, depth: int) -> None:
        x, y = self._corner(box)
        paint = _border(self._look(box.item), FRAME_LINE) | {"fill": FRAME[depth % 2]}
        self.picture.rect(x, y, box.width, box.height, rx=8, **paint)

    def _name(self, box: Box) -> None:
        """The name of an open frame, on ground of its own: edges pass behind it."""
        look = self._look(box.item)
        x, y = self._corner(box)
        name = svg.clip(look.title, box.width - 16, TITLE)
        at = x + 10 + len(name) * TITLE * svg.MONO_WIDTH
        self.picture.text(x + 10, y + 17, name, size=TITLE, fill="#2b4257", **_bold(), **_halo())
        rest = " ".join([look.sub, *_words(look)]).strip()
        if x + box.width - at > 40:
            words = svg.clip(rest, x + box.width - at - 16, SMALL)
            self.picture.text(at + 8, y + 17, words, size=SMALL, fill=svg.QUIET, **_halo())

    def _edges(self) -> None:
        solid: dict[str, None] = {}
        dashed: dict[str, None] = {}
        heads = []
        for route in self.placed.routes:
            points = [(x + self.left, y + self.top) for x, y in route.points]
            quiet = {"no_grad", "inference", "detach"} & set(self._look(route.source).marks)
            for part in _strokes(points):
                (dashed if quiet else solid)[part] = None
            heads.append(_head(points))
        paint = {"fill": "none", "stroke": EDGE, "stroke-width": 1.3}
        if solid:
            self.picture.path("".join(solid), **paint)
        if dashed:
            self.picture.path("".join(dashed), **paint, **{"stroke-dasharray": "4 3"})
        if heads:
            self.picture.path("".join(heads), fill=EDGE)

    def _box(self, box: Box) -> None:
        look = self._look(box.item)
        x, y = self._corner(box)
        width, height = box.width, box.height
        fill, line, rx = _paint(look)
        if look.kind in SHEETS:
            width, height = width - 6, height - 6
            for by in (6, 3):
                self.picture.rect(x + by, y + by, width, height, rx=rx, fill=fill, stroke=line)
        paint = _border(look, line) | {"fill": fill}
        self.picture.rect(x, y, width, height, rx=min(rx, height / 2), **paint)
        middle, at = x + width / 2, y + 17
        centred = {"text-anchor": "middle"}
        if "error" in look.marks:
            self._cross(x + 9, y + 9)
        room = width - 12
        colour = svg.BAD if "error" in look.marks else svg.INK
        name = svg.clip(look.title, room, TITLE)
        self.picture.text(middle, at, name, size=TITLE, fill=colour, **_bold(), **centred)
        for words, ink in ((look.sub, svg.QUIET), (look.shape, svg.INK)):
            if words:
                at += 14
                words = svg.clip(words, room, SMALL)
                self.picture.text(middle, at, words, size=SMALL, fill=ink, **centred)
        if look.chips:
            self._chips(look.chips, middle, at + 8)
        if "output" in look.marks:
            bottom = y + height
            self.picture.path(f"M{middle - 6:.1f} {bottom:.1f}h12l-6 7z", fill=svg.INK)

    def _chips(self, chips: tuple[str, ...], middle: float, y: float) -> None:
        x = middle - (sum(chip_width(chip) + 4 for chip in chips) - 4) / 2
        for chip in chips:
            width = chip_width(chip)
            paint = {"fill": LABEL, "stroke": LABEL_LINE, "stroke-width": 0.8}
            self.picture.rect(x, y, width, 14, rx=7, **paint)
            words = svg.clip(chip, width - 9, CHIP)
            anchor = {"text-anchor": "middle", "fill": LABEL_INK}
            self.picture.text(x + width / 2, y + 10.3, words, size=CHIP, **anchor)
            x += width + 4

    def _cross(self, x: float, y: float) -> None:
        d = f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
        self.picture.path(d, fill="none", stroke=svg.BAD, **{"stroke-width": 2})


def _bold() -> dict[str, str | float]:
    return {"font-weight": 600}


def _halo() -> dict[str, str | float]:
    return {"stroke": "#ffffff", "stroke-width": 4, "stroke-linejoin": "round"} | {
        "paint-order": "stroke"
    }


def _paint(look: Look) -> tuple[str, str, float]:
    """What fills a box, what goes round it, and how round its corners are."""
    if "error" in look.marks:
        return svg.BAD_WASH, svg.BAD, 4
    if look.kind == "input":
        return INPUT, INPUT_LINE, 14
    if "leaf" in look.marks:
        return LABEL, LABEL_LINE, 14
    if look.kind in ("op", "node"):
        return "#ffffff", BOX_LINE, 4
    return FOLDED, FOLDED_LINE, 7


def _border(look: Look, line: str) -> dict[str, str | float]:
    strong = "error" in look.marks
    paint: dict[str, str | float] = {"stroke": svg.BAD if strong else line}
    paint["stroke-width"] = 2 if strong else 1.2
    if {"no_grad", "inference", "detach"} & set(look.marks):
        paint["stroke-dasharray"] = "5 3"
    return paint


def _words(look: Look) -> list[str]:
    """What an open frame's marks are called."""
    return [mark for mark in ("no_grad", "inference", "error") if mark in look.marks]


def _strokes(points: list[Point]) -> list[str]:
    """The path of a route, piece by piece: straight in a lane, an S from one lane to the next."""
    parts = []
    for (x0, y0), (x1, y1) in pairwise(points):
        start = f"M{x0:.6g} {y0:.6g}"
        if x0 == x1:
            parts.append(f"{start}V{y1:.6g}")
        elif y0 == y1:
            parts.append(f"{start}H{x1:.6g}")
        else:
            half = f"{(y0 + y1) / 2:.6g}"
            parts.append(f"{start}C{x0:.6g} {half} {x1:.6g} {half} {x1:.6g} {y1:.6g}")
    return parts


def _head(points: list[Point]) -> str:
    (_, above), (x, y) = points[-2:]
    return f"M{x:.6g} {y:.6g}l-3.5 -7h7z" if y >= above else f"M{x:.6g} {y:.6g}l-3.5 7h7z"


def _summary(record: Any) -> str:
    n_ops, n_nodes = len(record.ops), len(record.nodes)
    parts = [count(n_ops, "op")] if n_ops else []
    parts.append(f"{count(n_nodes, 'node')} in the autograd graph")
    return "  ·  ".join(parts)


def _legend(scene: Scene, placed: Layout) -> list[tuple[str, str]]:
    """What the picture has to explain: a kind of box and its word."""
    looks = [scene.looks[scene.look[box.item]] for box in placed.boxes]
    closed = [look for look, box in zip(looks, placed.boxes, strict=True) if not box.is_open]
    kinds = {look.kind for look in closed}
    marks = {mark for look in looks for mark in look.marks}
    entries = [
        ("input", "input", "input" in kinds),
        ("op", "op", "op" in kinds),
        ("node", "node of autograd", "node" in kinds),
        ("call", _folded(kinds), bool(FOLDS.keys() & kinds)),
        ("repeat", "folded series", bool(set(SHEETS) & kinds)),
        (
            "leaf",
            "parameter or shared tensor",
            "leaf" in marks or any(look.chips for look in closed),
        ),
        ("dashed", "not recorded by autograd", bool({"no_grad", "inference", "detach"} & marks)),
        ("output", "returned", "output" in marks),
        ("error", "error", "error" in marks),
    ]
    return [(kind, word) for kind, word, is_there in entries if is_there]


def _folded(kinds: set[str]) -> str:
    """What the blue boxes of a picture hold: "folded module or step"."""
    return "folded " + " or ".join(word for kind, word in FOLDS.items() if kind in kinds)


def _legend_rows(legend: list[tuple[str, str]], wide: float) -> list[list[tuple[str, str]]]:
    rows: list[list[tuple[str, str]]] = [[]]
    x = 0.0
    for entry in legend:
        width = 36 + 6 * len(entry[1])
        if rows[-1] and x + width > wide - 14:
            rows.append([])
            x = 0.0
        rows[-1].append(entry)
        x += width
    return rows


def _draw_legend(picture: svg.Picture, legend: list[tuple[str, str]], y: float) -> None:
    x = 14.0
    for kind, word in legend:
        marks = (kind,) if kind in ("leaf", "error") else ("no_grad",) if kind == "dashed" else ()
        shown = "op" if kind in ("leaf", "error", "dashed") else kind
        look = Look(shown, "", "", "", (), 0, 0, marks)
        if kind == "output":
            picture.path(f"M{x + 2:.1f} {y - 6:.1f}h12l-6 7z", fill=svg.INK)
        else:
            fill, line, rx = _paint(look)
            paint = _border(look, line) | {"fill": fill}
            if kind == "repeat":
                picture.rect(x + 3, y - 7, 16, 11, rx=3, **paint)
            picture.rect(x, y - 10, 16, 11, rx=min(rx, 5.5), **paint)
        picture.text(x + 22, y, word, size=10.5, fill=svg.QUIET, **{"font-family": svg.SANS})
        x += 36 + 6 * len(word)
