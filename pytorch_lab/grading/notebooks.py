"""Reading and writing notebooks, and what nbgrader's metadata says about a cell.

A notebook arrives from strangers: it may be broken JSON, another format, or hold cells without
ids. `read` either returns one whose cells can be relied on or says in one sentence what is wrong.
`write` replaces the file in one step, byte for byte the same for the same notebook.

The metadata is nbgrader's, schema 1 to 3. Exercises are called "03.2" by people and "03-2" by
nbgrader, whose ids may hold no dot.
"""

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4.rwbase import rejoin_lines

from pytorch_lab import writing
from pytorch_lab.errors import CourseError, NotebookError

MAX_BYTES = 50_000_000
_NUMBERED = re.compile(r"(\d+)-(\d+)(?:-.*)?")
_SUFFIX = re.compile(r"-(?:task|check|hidden)$")


@dataclass(frozen=True)
class Facts:
    """What nbgrader's metadata says about one cell."""

    grade_id: str
    solution: bool
    grade: bool
    locked: bool
    points: float | None

    @property
    def is_answer(self) -> bool:
        """Whether the student writes here."""
        return self.solution and not self.locked

    @property
    def is_check(self) -> bool:
        """Whether points hang on this cell alone."""
        return self.grade and not self.solution

    @property
    def exercise(self) -> str:
        """The exercise that the cell belongs to."""
        return exercise_id(self.grade_id)


def exercise_id(grade_id: str) -> str:
    """The exercise, as people say it, that a cell belongs to.

    Example:
        >>> exercise_id("03-2"), exercise_id("03-2-hidden"), exercise_id("warmup-check")
        ('03.2', '03.2', 'warmup')
    """
    found = _NUMBERED.fullmatch(grade_id)
    return f"{found[1]}.{found[2]}" if found else _SUFFIX.sub("", grade_id)


def grade_id(exercise: str) -> str:
    """The id of an exercise's answer cell.

    Example:
        >>> grade_id("03.2")
        '03-2'
    """
    return exercise.replace(".", "-")


def facts(cell: NotebookNode) -> Facts | None:
    """What nbgrader's metadata says about a cell; None for a cell it says nothing about.

    Example:
        >>> cell = nbformat.v4.new_code_cell(metadata={"nbgrader": {
        ...     "grade_id": "03-2-hidden", "grade": True, "points": 2, "schema_version": 3}})
        >>> facts(cell).exercise, facts(cell).points, facts(cell).is_check
        ('03.2', 2.0, True)
    """
    known = cell.metadata.get("nbgrader")
    if not isinstance(known, dict) or not isinstance(known.get("grade_id"), str):
        return None
    solution, grade = known.get("solution") is True, known.get("grade") is True
    return Facts(
        grade_id=known["grade_id"],
        solution=solution,
        grade=grade,
        # Schema 1 may leave `locked` out: a cell is locked unless the student writes there.
        locked=known.get("locked", not solution) is True,
        points=_points(known.get("points")) if grade else None,
    )


def _points(said: Any) -> float | None:
    try:
        points = float(said)
    except (TypeError, ValueError):
        return None
    return points if 0 <= points < float("inf") else None


def read(path: Path) -> NotebookNode:
    """The notebook in a file, with every cell's source, metadata and type in place.

    Raises:
        NotebookError: there is no such file, or it is not a notebook of format 4.

    Example:
        >>> read(Path("no_such.ipynb"))
        Traceback (most recent call last):
        pytorch_lab.errors.NotebookError: expected a notebook at no_such.ipynb, but there is no ...
    """
    found = _json(path)
    if not isinstance(found, dict) or not isinstance(found.get("nbformat"), int):
        raise _not_one(path, "JSON without an 'nbformat' number")
    if found["nbformat"] != 4:
        raise NotebookError(
            f"expected {path} in notebook format 4, got format {found['nbformat']}; "
            "open it in JupyterLab and save it."
        )
    if found.get("metadata") is None:
        found["metadata"] = {}
    fault = _fault_of_metadata(found["metadata"]) or _fault(found.get("cells"))
    if fault:
        raise _not_one(path, fault)
    found.setdefault("nbformat_minor", 0)
    try:
        made: Any = nbformat.from_dict(_rejoined(found))
    except (RecursionError, TypeError) as error:
        raise _not_one(path, f"JSON that is none ({error})") from None
    with suppress(AttributeError, KeyError, TypeError):  # odd outputs are nobody's fault
        rejoin_lines(made)
    return made


def _json(path: Path) -> Any:
    """What a file says, if it is JSON of a size that a notebook has."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise _not_one(path, f"{path.stat().st_size / 1e6:.0f} MB")
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise NotebookError(
            f"expected a notebook at {path}, but there is no such file; check the name."
        ) from None
    except OSError as error:
        raise NotebookError(
            f"expected to read the notebook {path}, but got {why_not(error)}; "
            "give the path of an .ipynb file that you may read."
        ) from None
    except UnicodeDecodeError:
        raise _not_one(path, "bytes that are no UTF-8 text") from None
    try:
        found = json.loads(text)
        if "\\ud" in text.lower():  # half a character, which no file and no kernel takes
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _not_one(path, "half a character (a lone surrogate) in its text") from None
    except json.JSONDecodeError as error:
        raise _not_one(path, f"broken JSON in line {error.lineno} ({error.msg})") from None
    except (RecursionError, ValueError):
        raise _not_one(path, "JSON that cannot be read (too deep, or a number too long)") from None
    return found


def _not_one(path: Path, came: str) -> NotebookError:
    return NotebookError(
        f"expected a Jupyter notebook in {path}, got {came}; save it again from JupyterLab."
    )


def _fault_of_metadata(metadata: Any) -> str:
    """What is wrong with what a notebook says about itself, or nothing."""
    if not isinstance(metadata, dict):
        return "a notebook whose metadata is no object"
    if not isinstance(metadata.get("kernelspec", {}), dict):
        return "a notebook whose kernelspec is no object"
    return ""


def _fault(cells: Any) -> str:
    """What is wrong with a notebook's list of cells, or nothing."""
    if not isinstance(cells, list):
        return "a notebook without a list of cells"
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict):
            return f"a cell {number} that is no cell"
        if cell.get("cell_type") not in ("code", "markdown", "raw"):
            return f"a cell {number} of the unknown type {str(cell.get('cell_type'))[:40]!r}"
        if not isinstance(cell.get("metadata", {}), dict):
            return f"a cell {number} whose metadata is no object"
        source = cell.get("source", "")
        lines = source if isinstance(source, list) else [source]
        if not all(isinstance(line, str) for line in lines):
            return f"a cell {number} whose source is no text"
    return ""


def _rejoined(found: dict[str, Any]) -> dict[str, Any]:
    """The notebook with every source as one string, and nothing that a cell needs left out."""
    for cell in found["cells"]:
        source = cell.get("source", "")
        cell["source"] = source if isinstance(source, str) else "".join(source)
        cell.setdefault("metadata", {})
        if cell["cell_type"] == "code":
            cell.setdefault("outputs", [])
            cell.setdefault("execution_count", None)
    return found


def text(notebook: NotebookNode) -> str:
    r"""A notebook as the text of its file; the same notebook always gives the same text.

    Example:
        >>> text(nbformat.v4.new_notebook())[:14]
        '{\n "cells": []'
    """
    return nbformat.v4.writes(notebook).rstrip("\n") + "\n"


def write(path: Path, notebook: NotebookNode) -> None:
    """Write a notebook beside its place, then put it there in one step."""
    replace(path, text(notebook))


def replace(path: Path, content: str) -> None:
    """Write a text file beside its place, then put it there in one step.

    Raises:
        CourseError: the folder cannot be made or written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writing.replace(path, content.encode())
    except OSError as error:
        raise CourseError(
            f"expected to write {path}, but got {why_not(error)}; "
            "give a folder that exists, or can be made, and that you may write to."
        ) from None


def why_not(error: OSError) -> str:
    """What the system says about a file, in words that fit into a sentence.

    Example:
        >>> why_not(PermissionError(13, "Permission denied"))
        "'Permission denied'"
    """
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "a file where a folder should be"
    return repr(error.strerror)
