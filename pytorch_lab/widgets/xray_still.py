"""The X-ray without a kernel: the rows of the default view as a picture."""

from typing import Any

from pytorch_lab import svg
from pytorch_lab.widgets.xray_rows import Row

WIDTH, ROW, INDENT, TOP = 860, 24, 16, 84
STATUS, SHAPE, END = 470, 606, 844  # where the columns begin; the numbers end at END


def picture(state: dict[str, Any], root: Row, is_open: set[int]) -> str:
    """An `<img>` with the finding, the totals and all rows that are unfolded."""
    shown = list(root.levels(is_open))
    height = TOP + ROW * len(shown) + 16
    name = f"X-ray of {state['type']}: {state['finding']}"
    drawing = svg.Picture(WIDTH, height, name)
    _head(drawing, state, height)
    lens = state.get("lens", 0)
    for place, (row, level) in enumerate(shown):
        folded = bool(row.kids) and id(row) not in is_open
        _row(drawing, row, level - 1, TOP + ROW * place, folded=folded, lens=lens)
    return drawing.img(f"{name}. {', '.join(state['totals'])}.")


def _head(drawing: svg.Picture, state: dict[str, Any], height: float) -> None:
    drawing.rect(0.5, 0.5, WIDTH - 1, height - 1, fill="none", stroke=svg.LINE, rx=6)
    colour = svg.GOOD if state["good"] else svg.BAD
    _mark(drawing, 22, 24, good=state["good"], size=8)
    given = {"font-family": svg.SANS, "font-weight": "600", "fill": colour}
    drawing.text(40, 29, state["finding"], size=16, **given)
    totals = "  ·  ".join(state["totals"])
    drawing.text(16, 52, totals, size=12, **{"font-family": svg.SANS, "fill": svg.QUIET})
    quiet = {"font-family": svg.SANS, "fill": svg.QUIET}
    for x, words in ((16, "Name"), (STATUS, "Status"), (SHAPE, "Shape")):
        drawing.text(x, TOP - 10, words, size=11, **quiet)
    drawing.text(
        END,
        TOP - 10,
        state.get("says", {}).get("count", "Parameters"),
        size=11,
        **quiet,
        **{"text-anchor": "end"},
    )
    drawing.line(16, TOP - 3, WIDTH - 16, TOP - 3, stroke=svg.LINE)


def _mark(drawing: svg.Picture, x: float, y: float, *, good: bool, size: float) -> None:
    """A tick or a cross around (x, y)."""
    s = size / 2
    if good:
        d = f"M{x - s:g} {y:g}L{x - s / 4:g} {y + s * 0.8:g}L{x + s:g} {y - s * 0.8:g}"
    else:
        d = f"M{x - s:g} {y - s:g}L{x + s:g} {y + s:g}M{x - s:g} {y + s:g}L{x + s:g} {y - s:g}"
    drawing.path(d, fill="none", stroke=svg.GOOD if good else svg.BAD, **{"stroke-width": 2})


def _row(
    drawing: svg.Picture, row: Row, level: int, top: float, *, folded: bool, lens: int
) -> None:
    base = top + 16
    if row.status[lens].startswith("-") if lens else not row.registered:
        drawing.rect(8, top, WIDTH - 16, ROW, fill=svg.BAD_WASH)
    x = 16 + INDENT * level
    if row.kids:
        d = f"M{x} {top + 8}l5 4l-5 4z" if folded else f"M{x - 1.5} {top + 9.5}l8 0l-4 5z"
        drawing.path(d, fill=svg.QUIET)
    x += 12
    room = STATUS - 12 - x
    name = svg.clip(row.name, room, 12.5)
    weight = {"font-weight": "600"} if row.kind in ("root", "module", "repeat") else {}
    drawing.text(x, base, name, size=12.5, **weight)
    x += len(name) * 12.5 * svg.MONO_WIDTH + 9
    rest = "  ".join([row.type, *(f"[{badge}]" for badge in row.badges if folded or "inside" not in
                                  badge)]).strip()  # fmt: skip
    if STATUS - 12 - x > 24:
        drawing.text(x, base, svg.clip(rest, STATUS - 12 - x, 11), size=11, fill=svg.QUIET)
    sign, word = row.status[lens][0], row.status[lens][1:]
    if sign != " ":
        _mark(drawing, STATUS + 5, top + 12, good=sign == "+", size=8)
        colour = svg.GOOD if sign == "+" else svg.BAD
        drawing.text(STATUS + 16, base, word, size=11.5, fill=colour)
    shape = row.cells.get("shape", "")
    drawing.text(SHAPE, base, svg.clip(shape, 140, 11.5), size=11.5)
    number = f"{row.n_parameters:,}" if row.n_parameters else ""
    drawing.text(END, base, number, size=11.5, **{"text-anchor": "end"})
