"""What a class got: one record that every report and file is made of."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from pytorch_lab.grading.assignment import Exercise
from pytorch_lab.grading.gradebook import Verdict
from pytorch_lab.grading.trouble import one_line

COLUMNS = ("student", "exercise", "points", "max_points", "status", "reason")


@dataclass(frozen=True)
class Row:
    """One line of `grades.csv`."""

    student: str
    exercise: str
    points: float
    max_points: float
    status: str
    reason: str


@dataclass
class GradedClass:
    """A class after the run: what the marks, the feedback and the instructor's page are made of."""

    assignment: Path
    exercises: list[Exercise]
    rows: list[Row]
    verdicts: dict[tuple[str, str], Verdict]  # by student and exercise
    notebooks: dict[str, NotebookNode] = field(default_factory=dict)  # as handed in, by student
    sandbox: bool = True
    seed: int = 0
    notes: list[str] = field(default_factory=list)  # about the class as a whole


def grades_csv(rows: Sequence[Row]) -> str:
    """The text of `grades.csv`; no cell of it is taken for a formula by a spreadsheet.

    Example:
        >>> print(grades_csv([Row("ada", "03.1", 2.0, 2.0, "passed", "")]))
        student,exercise,points,max_points,status,reason
        ada,03.1,2,2,passed,
        <BLANKLINE>
    """
    return table(COLUMNS, [[getattr(row, name) for name in COLUMNS] for row in rows])


def table(head: Sequence[str], lines: Sequence[Sequence[Any]]) -> str:
    r"""A CSV text in which no cell is a formula.

    Example:
        >>> table(["who", "points"], [["=cmd()", 1.50]])
        "who,points\n'=cmd(),1.5\n"
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([[safe(value) for value in line] for line in (head, *lines)])
    return text.getvalue()


def safe(value: Any) -> str:
    """A cell that a spreadsheet shows as it is."""
    if isinstance(value, float):
        return f"{value:g}"
    text = one_line(value)
    return f"'{text}" if re.match(r"[=+\-@]", text) else text
