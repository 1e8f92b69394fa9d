"""The picture of a loader's random numbers: a row for each worker and epoch, a column per sample.

    lab.show(dataloader.worker_randomness(loader))

Equal draws carry the same letter and colour; a column that is equal from top to bottom is lit.
"""

from typing import Any

from pytorch_lab import svg, words
from pytorch_lab.dataloader.drawn import Draw, WorkerRandomness
from pytorch_lab.dataloader.drawn_text import letters_of
from pytorch_lab.dataloader.timeline_text import worker_name
from pytorch_lab.widgets import prose
from pytorch_lab.widgets.piece import LessonPiece

NAME, CELL, ROW = 150, 62, 24  # of the still picture, in pixels
MOST_COLUMNS = 8
TONES = 4  # colours that take turns
FILLS = ["#fbece4", "#e0edf5", "#e2f1ec", "#f5eddc"]


class RandomnessPicture(LessonPiece, stem="randomness"):
    """The widget of a `WorkerRandomness`.

    Example:
        >>> draws = (Draw("torch", 0, 0, 0, "fetch", 0.5, True),)
        >>> seen = WorkerRandomness("DataLoader(...)", 1, 1, ("torch",), (), draws)
        >>> RandomnessPicture(seen).state["streams"][0]["rows"][0]["cells"][0]["value"]
        '0.500'

    Args:
        seen: what `worker_randomness` found.
    """

    kind = "Random numbers"

    def __init__(self, seen: WorkerRandomness) -> None:
        self.seen = seen
        letters = letters_of(seen)
        super().__init__(
            {
                "title": seen.loader,
                "verdict": seen.verdict,
                "good": not seen.problems,
                "streams": _streams(seen, letters),
                "remarks": [[o.level, o.text] for o in seen.remarks if o.text != seen.verdict],
                "unused": ", ".join(seen.unused),
            }
        )

    def to_html(self) -> str:
        """Every matrix, and the remarks."""
        lines = [self.seen.verdict, *(text for _, text in self.state["remarks"])]
        said = "".join(f"<p>{prose.to_html(line)}</p>" for line in lines)
        return self.framed(_still(self.state) + said)

    def __str__(self) -> str:
        return str(self.seen)


def _streams(seen: WorkerRandomness, letters: dict[int, str]) -> list[dict[str, Any]]:
    """Each generator's matrix; what collate_fn drew is one of its own."""
    found = []
    for stream in seen.streams:
        for part in ("fetch", "collate"):
            draws = [one for one in seen.draws if (one.stream, one.part) == (stream, part)]
            if draws:
                name = stream if part == "fetch" else f"{stream} in collate_fn"
                found.append({"name": name} | _matrix(draws, letters))
    # What is drawn twice comes first.
    return sorted(found, key=lambda one: not one["equal"])


def _matrix(draws: list[Draw], letters: dict[int, str]) -> dict[str, Any]:
    samples = sorted({one.sample for one in draws})[:MOST_COLUMNS]
    rows: dict[tuple[int, int | None], dict[int, Draw]] = {}
    for one in draws:
        rows.setdefault((one.epoch, one.worker), {})[one.sample] = one
    keys = sorted(rows, key=lambda row: (row[0], row[1] or 0))
    return {
        "columns": [
            {"name": f"sample {sample}", "lit": _is_lit([rows[key].get(sample) for key in keys])}
            for sample in samples
        ],
        "rows": [
            {
                "epoch": epoch,
                "name": "main process" if worker is None else worker_name(worker),
                "cells": [_cell(rows[epoch, worker].get(s), letters) for s in samples],
            }
            for epoch, worker in keys
        ],
        "equal": sum(one.same is not None for one in draws),
        "count": sum(one.drew for one in draws),
    }


def _is_lit(column: list[Draw | None]) -> bool:
    """Whether all draws of a column are the same."""
    found = {one.same for one in column if one is not None}
    return len(column) > 1 and None not in column and len(found) == 1 and None not in found


def _cell(draw: Draw | None, letters: dict[int, str]) -> dict[str, Any]:
    if draw is None or not draw.drew:
        return {"value": "", "letter": "", "tone": None, "says": "nothing drawn"}
    if draw.same is None:
        return {"value": f"{draw.value:.3f}", "letter": "", "tone": None, "says": ""}
    letter = letters[draw.same]
    tone = list(letters).index(draw.same) % TONES
    return {"value": f"{draw.value:.3f}", "letter": letter, "tone": tone, "says": ""}


def _still(state: dict[str, Any]) -> str:
    """The same as an `<img>`; nothing where nothing was drawn."""
    streams = state["streams"]
    if not streams:
        return ""
    width = NAME + CELL * max(len(one["columns"]) for one in streams) + 8
    height = sum(ROW * (len(one["rows"]) + 2) for one in streams) + 8
    picture = svg.Picture(width, height, f"{state['title']}. {state['verdict']}")
    y = 0.0
    for one in streams:
        y = _still_matrix(picture, one, y)
    return picture.img()


def _still_matrix(picture: svg.Picture, one: dict[str, Any], y: float) -> float:
    y += ROW
    picture.text(4, y, words.clip(one["name"], 60), size=13, fill=svg.INK)
    y += ROW
    lit = any(column["lit"] for column in one["columns"])
    picture.text(4, y - 4, "sample" + " (=: all the same)" * lit, fill=svg.QUIET)
    for place, column in enumerate(one["columns"]):
        name = column["name"].removeprefix("sample ")
        mark = "= " if column["lit"] else ""
        end = NAME + CELL * (place + 1) - 8
        picture.text(end, y - 4, mark + name, fill=svg.QUIET, text_anchor="end")
    for row in one["rows"]:
        picture.text(4, y + 16, f"epoch {row['epoch']}, {row['name']}")
        for place, cell in enumerate(row["cells"]):
            x = NAME + CELL * place
            if cell["tone"] is not None:
                picture.rect(x + 2, y + 1, CELL - 4, ROW - 2, fill=FILLS[cell["tone"]])
            said = f"{cell['letter']} {cell['value']}".strip() or "·"
            picture.text(x + CELL - 8, y + 16, said, size=11, text_anchor="end")
        y += ROW
    return y
