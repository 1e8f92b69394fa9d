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
from nbformat.v3.rwbase import rejoin_lines as rejoin_old_lines
from nbformat.v4.rwbase import rejoin_lines

from pytorch_lab import writing
from pytorch_lab.errors import CourseError, NotebookError

MAX_BYTES = 50_000_000
MAX_DEPTH = 100  # of lists and objects in each other; a notebook has about ten
MAX_PARTS = 5_000_000  # values in the JSON; each costs up to 64 bytes of memory
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
    task: bool = False

    @property
    def is_answer(self) -> bool:
        """Whether the student writes here."""
        return self.solution and not self.locked

    @property
    def is_check(self) -> bool:
        """Whether points hang on this cell alone."""
        return self.grade and not self.solution

    @property
    def needs_person(self) -> bool:
        """Whether points hang on it that only a person can give."""
        return self.task or (self.grade and self.solution)

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
    task = known.get("task") is True
    return Facts(
        grade_id=known["grade_id"],
        solution=solution,
        grade=grade,
        # Schema 1 may leave `locked` out: a cell is locked unless the student writes there.
        locked=known.get("locked", not solution) is True,
        points=_points(known.get("points")) if grade or task else None,
        task=task,
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
        NotebookError: there is no such file, or no notebook of format 3 or 4 in it.

    Example:
        >>> read(Path("no_such.ipynb"))
        Traceback (most recent call last):
        pytorch_lab.errors.NotebookError: expected a notebook at no_such.ipynb, but there is no ...
    """
    try:
        size = path.stat().st_size
        content = b"" if size > MAX_BYTES else path.read_bytes()
    except FileNotFoundError:
        raise NotebookError(
            f"expected a notebook at {path}, but there is no such file; check the name."
        ) from None
    except OSError as error:
        raise NotebookError(
            f"expected to read the notebook {path}, but got {why_not(error)}; "
            "give the path of an .ipynb file that you may read."
        ) from None
    if size > MAX_BYTES:
        raise _not_one(path, f"{size / 1e6:.0f} MB")
    return parse(content, path)


def parse(content: bytes, name: Path | str) -> NotebookNode:
    """The notebook in the bytes of a file; one of format 3 is taken over into format 4.

    Args:
        content: what the file holds.
        name: what the file is called, for the message.

    Raises:
        NotebookError: the bytes are no notebook of format 3 or 4.

    Example:
        >>> parse(b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": ["a", "b"]}]}',
        ...       "a.ipynb").cells[0].source
        'ab'
    """
    if len(content) > MAX_BYTES:
        raise _not_one(name, f"{len(content) / 1e6:.0f} MB")
    found = _json(content, name)
    if not isinstance(found, dict) or type(found.get("nbformat")) is not int:
        raise _not_one(name, "JSON without an 'nbformat' number")
    if found["nbformat"] == 3:
        found = _converted(found, name)
    if found["nbformat"] != 4:
        raise NotebookError(
            f"expected {name} in notebook format 4, got format {found['nbformat']}; "
            "open it in JupyterLab and save it."
        )
    if found.get("metadata") is None:
        found["metadata"] = {}
    fault = _fault_of_metadata(found["metadata"]) or _fault(found.get("cells"))
    if fault:
        raise _not_one(name, fault)
    found.setdefault("nbformat_minor", 0)
    try:
        made: Any = nbformat.from_dict(_rejoined(found))
    except (RecursionError, TypeError) as error:
        raise _not_one(name, f"JSON that is none ({error})") from None
    with suppress(AttributeError, KeyError, TypeError):  # odd outputs are nobody's fault
        rejoin_lines(made)
    return made


def _json(content: bytes, name: Path | str) -> Any:
    """What a file says, if it is JSON as large and as deep as a notebook is."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        utf_16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        raise _not_one(
            name, "UTF-16 where UTF-8 is needed" if utf_16 else "bytes that are no UTF-8 text"
        ) from None
    if sum(map(text.count, ",[{")) > MAX_PARTS:
        raise _not_one(name, f"JSON of more than {MAX_PARTS} parts")
    try:
        found = json.loads(text)
        if "\\ud" in text.lower():  # half a character, which no file and no kernel takes
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _not_one(name, "half a character (a lone surrogate) in its text") from None
    except json.JSONDecodeError as error:
        raise _not_one(name, f"broken JSON in line {error.lineno} ({error.msg})") from None
    except (RecursionError, ValueError):
        raise _not_one(name, "JSON that cannot be read (too deep, or a number too long)") from None
    if _deeper_than(found, MAX_DEPTH):
        raise _not_one(name, f"JSON nested more than {MAX_DEPTH} deep")
    return found


def _deeper_than(found: Any, limit: int) -> bool:
    """Whether lists and objects stand within each other too often to be copied and written."""
    level = [[found]]
    for _ in range(limit + 1):
        level = [
            part
            for each in level
            for part in (each.values() if isinstance(each, dict) else each)
            if isinstance(part, dict | list)
        ]
        if not level:
            return False
    return True


def _converted(found: dict[str, Any], name: Path | str) -> dict[str, Any]:
    """A notebook of format 3 in format 4, without the random ids that each cell would get."""
    try:
        made = nbformat.convert(rejoin_old_lines(nbformat.from_dict(found)), 4)
    except (
        AttributeError,
        IndexError,
        KeyError,
        RecursionError,
        TypeError,
        ValueError,
        nbformat.ValidationError,
    ) as error:
        raise _not_one(
            name, f"a notebook of format 3 that is none ({type(error).__name__})"
        ) from None
    for cell in made["cells"]:
        cell.pop("id", None)
    return {**made, "nbformat_minor": 4}


def _not_one(path: Path | str, came: str) -> NotebookError:
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
