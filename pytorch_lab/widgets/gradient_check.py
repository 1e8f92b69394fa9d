"""The picture of a gradient check: the Jacobian, a row for each output and a column for each input.

    lab.show(customop.check(MyFunction, x, weight))

What backward gives wrongly is coloured by how far it is off, and carries a sign too. A large
Jacobian is cut down to the rows and columns in which something is wrong.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from pytorch_lab import svg, words
from pytorch_lab.customop import Argument, GradientCheck
from pytorch_lab.customop.record import KINK, RIGHT, UNSURE, WRONG
from pytorch_lab.customop.text import headline, short
from pytorch_lab.widgets import prose
from pytorch_lab.widgets.piece import LessonPiece

MOST_ROWS, MOST_COLUMNS = 16, 16
NAME, ROW = 96, 24  # of the still picture, in pixels
LEAST_CELL, MOST_CELL = 56, 96
LETTER = 11 * svg.MONO_WIDTH  # of a name
SIGNS = {RIGHT: "", WRONG: "✗", KINK: "^", UNSURE: "?"}
SAYS = {
    RIGHT: "both agree",
    WRONG: "wrong",
    KINK: "at a kink: a fair answer",
    UNSURE: "can't be judged",
}
FILLS = {"right": "#e2f1ec", "zero": "#f3f4f5", "kink": "#f5eddc", "unsure": "#f5eddc"}
WRONG_FILLS = ["#fbece4", "#f6cdb5", "#eda57a"]  # off a little, off by half and more, all of it


class GradientPicture(LessonPiece, stem="gradient_check"):
    """The widget of a `GradientCheck`.

    Example:
        >>> import torch
        >>> from pytorch_lab.customop import check
        >>> GradientPicture(check(torch.sin, torch.zeros(1))).state["pages"][0]["cells"]
        [[{'sign': '', 'tone': 'right', 'shown': ['0', '1', '1'], 'says': 'd out[0] ...'}]]

    Args:
        found: what `check` found.
    """

    kind = "Gradient check"

    def __init__(self, found: GradientCheck) -> None:
        self.found = found
        pages = [_page("gradient", found)]
        if found.second:
            pages.append(_page("the gradient of the gradient", found.second))
        super().__init__({"pages": pages})

    def to_html(self) -> str:
        """Each matrix, and the remarks."""
        return self.framed("".join(_still(page) for page in self.state["pages"]))

    def __str__(self) -> str:
        return str(self.found)


def _page(name: str, found: GradientCheck) -> dict[str, Any]:
    """One Jacobian: of the function, or of its gradient."""
    rows = _places(found.outputs)
    columns = _places(found.inputs)
    blocks = {(one.output.name, one.input.name): one for one in found.blocks}
    states = {
        (r, c): blocks[out.name, arg.name].states[i][j]
        for r, (out, i) in enumerate(rows)
        for c, (arg, j) in enumerate(columns)
        if (out.name, arg.name) in blocks
    }
    wrong = [place for place, state in states.items() if state == WRONG]
    shown_rows = _chosen(len(rows), {r for r, _ in wrong}, MOST_ROWS)
    shown_columns = _chosen(len(columns), {c for _, c in wrong}, MOST_COLUMNS)
    return {
        "name": name,
        "verdict": headline(found),
        "tone": found.own_verdict,
        "columns": [arg.element(j) for arg, j in (columns[c] for c in shown_columns)],
        "rows": [out.element(i) for out, i in (rows[r] for r in shown_rows)],
        "cells": [
            [_cell(found, blocks, rows[r], columns[c]) for c in shown_columns] for r in shown_rows
        ]
        if blocks
        else [],
        "left_out": _left_out(len(rows), len(columns), len(shown_rows), len(shown_columns)),
        "remarks": [[remark.level, remark.text] for remark in found.remarks],
    }


def _places(arguments: Sequence[Argument]) -> list[tuple[Argument, int]]:
    sizes = [math.prod(argument.shape) for argument in arguments]
    return [(one, i) for one, size in zip(arguments, sizes, strict=True) for i in range(size)]


def _chosen(many: int, wanted: set[int], most: int) -> list[int]:
    """Which rows or columns are drawn: first those that are wanted, then from the start."""
    order = sorted(range(many), key=lambda place: (place not in wanted, place))
    return sorted(order[:most])


def _cell(
    found: GradientCheck, blocks: Any, row: tuple[Argument, int], column: tuple[Argument, int]
) -> dict[str, Any]:
    (out, i), (arg, j) = row, column
    block = blocks[out.name, arg.name]
    analytic, numeric, state = block.analytic[i][j], block.numeric[i][j], block.states[i][j]
    off = "0" if state == RIGHT else short(analytic - numeric, found.atol)
    back, slope = short(analytic, found.atol), short(numeric, found.atol)
    return {
        "sign": SIGNS[state],
        "tone": _tone(state, analytic, numeric, found.atol),
        "shown": [off, back, slope],
        "says": f"d {out.element(i)} / d {arg.element(j)}: backward gives {back}, a difference of "
        f"forward {slope}; {SAYS[state]}" + (f", off by {off}." if state == WRONG else "."),
    }


def _tone(state: str, analytic: float, numeric: float, zero: float) -> str:
    if state == WRONG:
        share = abs(analytic - numeric) / max(abs(analytic), abs(numeric), zero)
        return f"wrong-{2 if not share < 0.9 else 1 if share >= 0.4 else 0}"
    if state == RIGHT:
        return "zero" if abs(numeric) < zero else "right"
    return "kink" if state == KINK else "unsure"


def _left_out(rows: int, columns: int, shown_rows: int, shown_columns: int) -> str:
    parts = [
        f"{shown} of {all_of:,} {name}"
        for all_of, shown, name in ((rows, shown_rows, "rows"), (columns, shown_columns, "columns"))
        if shown < all_of
    ]
    return f"Shown are {' and '.join(parts)}, first those with a wrong derivative." if parts else ""


def _still(page: dict[str, Any]) -> str:
    """The same as an `<img>`, with the sentences below it."""
    lines = [page["verdict"], page["left_out"], *(text for _, text in page["remarks"])]
    said = "".join(f"<p>{prose.to_html(line)}</p>" for line in lines if line)
    if not (page["cells"] and page["columns"]):
        return said
    widths = [min(max(LETTER * len(one) + 10, LEAST_CELL), MOST_CELL) for one in page["columns"]]
    starts = list(itertools.accumulate(widths, initial=NAME))
    picture = svg.Picture(starts[-1] + 8, ROW * (len(page["rows"]) + 1) + 12, page["verdict"])
    for c, name in enumerate(page["columns"]):
        shown = svg.clip(name, widths[c] - 6, 11)
        picture.text(starts[c + 1] - 6, ROW - 8, shown, size=11, fill=svg.QUIET, text_anchor="end")
    for r, (name, cells) in enumerate(zip(page["rows"], page["cells"], strict=True)):
        y = ROW * (r + 1)
        picture.text(4, y + 16, svg.clip(name, NAME - 8, 11), size=11, fill=svg.QUIET)
        for c, cell in enumerate(cells):
            _still_cell(picture, starts[c], y, widths[c], cell)
    return picture.img() + said


def _still_cell(
    picture: svg.Picture, x: float, y: float, width: float, cell: dict[str, Any]
) -> None:
    tone = cell["tone"]
    fill = WRONG_FILLS[int(tone[-1])] if tone.startswith("wrong") else FILLS[tone]
    picture.rect(x + 1, y + 1, width - 2, ROW - 2, fill=fill)
    said = words.clip(f"{cell['sign']}{cell['shown'][0]}", 8)
    picture.text(x + width - 6, y + 16, said, size=11, text_anchor="end")
