"""Each fact of the syllabus happens in a lesson, and is asked for in an exercise.

`docs/facts.md` names the cell and the exercise; here it is held against the notebooks.
"""

import ast
import re
from functools import cache
from typing import NamedTuple

import nbformat
import pytest

from pytorch_lab import course
from pytorch_lab.grading.notebooks import facts as facts_of
from pytorch_lab.grading.notebooks import read
from pytorch_lab.grading.unmarked.lessons import WIDGET_VIEW

ROOT = course.root()
# Which lessons the syllabus gives a fact to.
LESSONS = {
    ("01",): (1, 2),
    ("02",): (3, 4, 5, 6, 7, 8, 11, 12),
    ("03",): (13, 14, 15, 16, 17, 18),
    ("04",): (9, 10),
    ("05",): (19, 20, 21, 22, 23, 24),
    ("04", "06"): (25,),
    ("06",): (26, 27, 28, 29, 30),
    ("07",): (31, 32, 33, 34, 35, 36),
    ("08",): (37, 38, 39),
}
PIECES = {"card", "predict", "order", "clinic", "recall", "setup"}


class Fact(NamedTuple):
    """One row of the table."""

    number: int
    says: str
    cell: str
    exercise: str


def rows() -> list[Fact]:
    text = (ROOT / "docs/facts.md").read_text("utf-8")
    found = re.findall(r"^\| (\d+) \| (.+?) \| `([\w-]+)` \| ([\d.]+) \|$", text, re.MULTILINE)
    return [Fact(int(number), *rest) for number, *rest in found]


def lessons_of(number: int) -> tuple[str, ...]:
    return next(lessons for lessons, numbers in LESSONS.items() if number in numbers)


@cache
def lesson(number: str) -> dict[str, nbformat.NotebookNode]:
    """The cells of a lesson by their ids."""
    (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    return {cell.id: cell for cell in nbformat.read(path, 4).cells}


@cache
def graded(number: str) -> set[str]:
    """The exercises of a lesson that have a hidden check with points."""
    (path,) = (ROOT / "exercises/solutions").glob(f"{number}_*.ipynb")
    known = [found for cell in read(path).cells if (found := facts_of(cell))]
    return {found.exercise for found in known if found.is_check and found.points}


def test_every_fact_has_one_row_in_order():
    every = sorted(number for numbers in LESSONS.values() for number in numbers)
    assert [fact.number for fact in rows()] == every
    assert every == list(range(1, 40))


@pytest.mark.parametrize("fact", rows(), ids=lambda fact: f"{fact.number}")
def test_its_cell_makes_it_happen(fact: Fact):
    number = fact.cell[:2]
    assert number in lessons_of(fact.number)
    cell = lesson(number)[fact.cell]
    assert cell.cell_type == "code"
    last = ast.parse(cell.source).body[-1]
    called = ast.unparse(last.value.func) if _is_call(last) else ""
    assert called.removeprefix("lab.") not in PIECES, "a piece asks; it shows nothing by itself"
    shown = [output for output in cell.outputs if WIDGET_VIEW not in output.get("data", {})]
    assert shown, "nothing was kept of what it shows"


def _is_call(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


@pytest.mark.parametrize("fact", rows(), ids=lambda fact: f"{fact.number}")
def test_its_exercise_is_graded(fact: Fact):
    number = fact.exercise[:2]
    assert number in lessons_of(fact.number)
    assert fact.exercise in graded(number)
