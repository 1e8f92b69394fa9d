"""What the course's own notebooks say about an exercise: title, points, stub, solution.

Read as plain JSON: the learner's kernel has no nbformat. Cells are found by nbgrader's `grade_id`,
"03-2" for the answer of exercise 03.2, "03-2-task" and "03-2-hidden" for its other cells.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytorch_lab import course
from pytorch_lab.errors import CourseError

_BEGIN, _END = "### BEGIN SOLUTION", "### END SOLUTION"
_MARKER = re.compile(r"### (BEGIN|END) (SOLUTION|STUB)")
# What nbgrader puts in a solution's place.
_STUB = ["# YOUR CODE HERE", "raise NotImplementedError()"]


@dataclass(frozen=True, slots=True)
class Source:
    """What is known; None or "" where the course does not say."""

    title: str = ""
    points: float | None = None
    stub: str | None = None
    solution: str | None = None


def find(exercise: str) -> Source:
    """What the course says about an exercise; nothing at all when its notebook is missing."""
    try:
        file = course.solution_notebook(exercise)
    except CourseError:
        return Source()
    return read(file, exercise) if file else Source()


def read(file: Path, exercise: str) -> Source:
    """What a solution notebook says about an exercise; a broken notebook says nothing."""
    cells = _cells(file)
    name = exercise.replace(".", "-")
    answer = cells.get(name, ("", {}))[0]
    marked = _BEGIN in answer and _END in answer
    points = cells.get(f"{name}-hidden", ("", {}))[1].get("points")
    return Source(
        title=_title(cells.get(f"{name}-task", ("", {}))[0], exercise),
        points=points if isinstance(points, int | float) else None,
        stub=_stub(answer) if marked else None,
        solution=_solution(answer) if marked else None,
    )


def _cells(file: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Source and nbgrader metadata of each graded cell, by `grade_id`."""
    try:
        cells = json.loads(file.read_text("utf-8"))["cells"]
        found = [(c.get("metadata", {}).get("nbgrader", {}), c["source"]) for c in cells]
        return {
            about["grade_id"]: (source if isinstance(source, str) else "".join(source), about)
            for about, source in found
            if "grade_id" in about
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _title(task: str, exercise: str) -> str:
    """The task's first heading, without the words that the panel says itself."""
    heading = re.search(r"^#+\s+(.+)$", task, re.MULTILINE)
    if not heading:
        return ""
    return re.sub(rf"^(Exercise\s+)?{re.escape(exercise)}\s*[:.·–—-]*\s*", "", heading[1]).strip()


def _solution(answer: str) -> str:
    """The answer cell without markers and without the stub, so that a copy of it runs."""
    lines = [line for region, part in _parts(answer) if region != "STUB" for line in part]
    return "\n".join(lines).strip("\n")


def _stub(answer: str) -> str:
    """The answer cell as it is released: with nbgrader's stub, or with the author's own."""
    lines: list[str] = []
    parts = [(region, part) for region, part in _parts(answer) if region or "".join(part).strip()]
    for (region, part), (next_region, _) in zip(parts, [*parts[1:], ("", [])], strict=True):
        if region == "STUB":
            lines += [line.replace("# ", "", 1) for line in part]
        elif region == "SOLUTION" and next_region != "STUB":
            indent = part[0][: len(part[0]) - len(part[0].lstrip())] if part else ""
            lines += [indent + text for text in _STUB]
        elif not region:
            lines += part
    return "\n".join(lines).strip("\n")


def _parts(answer: str) -> Iterator[tuple[str, list[str]]]:
    """The cell cut at its markers: ("", lines), ("SOLUTION", lines), ("STUB", lines), ..."""
    region, part = "", []
    for line in answer.splitlines():
        marker = _MARKER.fullmatch(line.strip())
        if marker is None:
            part.append(line)
            continue
        if region or part:
            yield region, part
        region, part = (marker[2] if marker[1] == "BEGIN" else ""), []
    yield region, part
