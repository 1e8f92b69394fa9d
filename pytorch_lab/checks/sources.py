"""What the course's own notebooks say about an exercise: title, points, stub, solution.

Read as plain JSON: the learner's kernel has no nbformat. Cells are found by nbgrader's `grade_id`,
"03-2" for the answer of exercise 03.2, "03-2-task" and "03-2-hidden" for its other cells.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytorch_lab import course
from pytorch_lab.checks.regions import lines, solution_text, student_text
from pytorch_lab.errors import CourseError, NotebookError


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
    stub, solution = _stub_and_solution(answer)
    points = cells.get(f"{name}-hidden", ("", {}))[1].get("points")
    return Source(
        title=_title(cells.get(f"{name}-task", ("", {}))[0], exercise),
        points=points if isinstance(points, int | float) else None,
        stub=stub,
        solution=solution,
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


def _stub_and_solution(answer: str) -> tuple[str | None, str | None]:
    try:
        if not any(line.region == "SOLUTION" for line in lines(answer, "the answer")):
            return None, None
        return student_text(answer), solution_text(answer)
    except NotebookError:  # its markers do not match
        return None, None
