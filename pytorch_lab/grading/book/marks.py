"""What a class got: one record that every report and file is made of.

    grades.csv     a line for each student and exercise
    summary.csv    a line for each student: the exercises, and the total
    class.csv      a line for each exercise: mean and median of the notebooks that could be read,
                   and how many had which status
    grades.json    all of it, for programs

The forms of Canvas, Moodle and Gradescope are written by `pytorch_lab.grading.book.lms`.
"""

import csv
import io
import json
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from pytorch_lab import __version__
from pytorch_lab.grading.authoring.assignment import Exercise
from pytorch_lab.grading.book.gradebook import Override, Person, Place, Standing, Verdict
from pytorch_lab.grading.book.late import LateRule
from pytorch_lab.grading.statuses import EVERY
from pytorch_lab.grading.trouble import joined, one_line

COLUMNS = ("student", "exercise", "points", "max_points", "status", "reason")


@dataclass(frozen=True)
class Row:
    """One line of `grades.csv`, and how its points came about."""

    student: str
    exercise: str
    points: float
    max_points: float
    status: str
    reason: str
    late: float = 0.0  # points that lateness took
    override: Override | None = None


@dataclass
class GradedClass:
    """A class after the run: what the marks, the feedback and the instructor's page are made of."""

    assignment: Path
    exercises: list[Exercise]
    rows: list[Row]
    verdicts: dict[Place, Verdict]
    notebooks: dict[str, NotebookNode] = field(default_factory=dict)  # as handed in, by student
    people: dict[str, Person] = field(default_factory=dict)
    sandbox: bool = True
    seed: int = 0
    late: str = ""  # the rule
    notes: list[str] = field(default_factory=list)  # about the class as a whole
    unstable: list[str] = field(default_factory=list)  # what a second run judged otherwise

    @property
    def max_points(self) -> float:
        """What a student can get in all."""
        return sum(exercise.points for exercise in self.exercises)

    def by_student(self) -> Iterator[tuple[str, list[Row]]]:
        """Each student with the rows of the exercises, in the order of the rows."""
        theirs: dict[str, list[Row]] = {}
        for row in self.rows:
            theirs.setdefault(row.student, []).append(row)
        yield from theirs.items()

    @property
    def read(self) -> set[str]:
        """The students whose notebook could be read."""
        students = {row.student for row in self.rows}
        return {s for s in students if s not in self.people or self.people[s].content}


def total(rows: Sequence[Row]) -> float:
    """The points of some rows together.

    Example:
        >>> total([Row("ada", "1", 0.1, 1, "passed", ""), Row("ada", "2", 0.2, 1, "passed", "")])
        0.3
    """
    return round(sum(row.points for row in rows), 4)


def rows_of(
    standing: Standing, exercises: Sequence[Exercise], students: Sequence[str]
) -> list[Row]:
    """The rows of some students: verdicts, the rule for lateness, and what was given by hand.

    Args:
        standing: what the gradebook holds.
        exercises: what can be earned.
        students: whose rows, in their order.
    """
    rule = LateRule.parse(standing.late)
    made = []
    for student in students:
        person = standing.people.get(student, Person())
        share = rule.lost(person.submitted_at, person.late) if rule else 0.0
        made += [
            _row(student, exercise, standing, share)
            for exercise in exercises
            if (student, exercise.id) in standing.verdicts
        ]
    return made


def _row(student: str, exercise: Exercise, standing: Standing, share: float) -> Row:
    """What an exercise earns; lateness takes a share of it, a person has the last word."""
    place = student, exercise.id
    said, given = standing.verdicts[place], standing.overrides.get(place)
    earned = exercise.points if said.status == "passed" else _part(said.points, exercise.points)
    lost = round(earned * share, 4)
    points, reasons = round(earned - lost, 4), [said.reason]
    if given is not None and given.points is not None:
        points, lost = given.points, 0.0
        reasons.insert(0, f"set to {given.points:g} by {given.author}: {given.comment}")
    elif lost:
        reasons.append(f"handed in late, which took {lost:g} of {earned:g} points")
    return Row(
        student, exercise.id, points, exercise.points, said.status, joined(*reasons), lost, given
    )


def _part(points: float | None, most: float) -> float:
    """A part of the points; none for what is no number between."""
    return points if points is not None and 0 <= points <= most else 0.0


def files(graded: GradedClass) -> dict[str, str]:
    """The texts of the marks, by the names of their files.

    Example:
        >>> exercise = Exercise("03.1", ("03-1",), "03-1-hidden", 2.0)
        >>> row = Row("ada", "03.1", 2.0, 2.0, "passed", "")
        >>> made = files(GradedClass(Path("03.ipynb"), [exercise], [row], {}))
        >>> print(made["grades.csv"], made["summary.csv"], sep="")
        student,exercise,points,max_points,status,reason
        ada,03.1,2,2,passed,
        student,03.1,total,max_points
        ada,2,2,2
        <BLANKLINE>
    """
    lines = [[getattr(row, name) for name in COLUMNS] for row in graded.rows]
    return {
        "grades.csv": table(COLUMNS, lines),
        "summary.csv": _summary(graded),
        "class.csv": _class(graded),
        "grades.json": as_json(_everything(graded)),
    }


def _summary(graded: GradedClass) -> str:
    ids = [exercise.id for exercise in graded.exercises]
    lines = []
    for student, rows in graded.by_student():
        points = {row.exercise: row.points for row in rows}
        theirs = [points.get(exercise, "") for exercise in ids]
        lines.append([student, *theirs, total(rows), graded.max_points])
    return table(["student", *ids, "total", "max_points"], lines)


def _class(graded: GradedClass) -> str:
    head = ["exercise", "max_points", "students", "read", "mean", "median", *EVERY]
    read = graded.read
    lines: list[list[Any]] = []
    for exercise in graded.exercises:
        rows = [row for row in graded.rows if row.exercise == exercise.id]
        counts = [sum(row.status == status for row in rows) for status in EVERY]
        points = [row.points for row in rows if row.student in read]
        lines.append([exercise.id, exercise.points, len(rows), *_middle(points), *counts])
    totals = [(student, total(rows)) for student, rows in graded.by_student()]
    points = [points for student, points in totals if student in read]
    counts = [sum(row.status == status for row in graded.rows) for status in EVERY]
    lines.append(["total", graded.max_points, len(totals), *_middle(points), *counts])
    return table(head, lines)


def _middle(points: list[float]) -> list[Any]:
    if not points:
        return [0, "", ""]
    return [len(points), statistics.fmean(points), float(statistics.median(points))]


def _everything(graded: GradedClass) -> dict[str, Any]:
    return {
        "assignment": graded.assignment.stem,
        "version": __version__,
        "seed": graded.seed,
        "sandbox": graded.sandbox,
        "late": graded.late,
        "notes": graded.notes,
        "exercises": [{"exercise": e.id, "max_points": e.points} for e in graded.exercises],
        "students": [
            {
                "student": student,
                **graded.people.get(student, Person())._asdict(),
                "total": total(rows),
                "max_points": graded.max_points,
                "exercises": [_of_one(graded, row) for row in rows],
            }
            for student, rows in graded.by_student()
        ],
    }


def _of_one(graded: GradedClass, row: Row) -> dict[str, Any]:
    said = graded.verdicts.get((row.student, row.exercise), Verdict(row.status, row.reason))
    known = {name: getattr(row, name) for name in COLUMNS[1:]}
    given = row.override._asdict() if row.override else None
    more = {name: getattr(said, name) for name in Verdict._fields[2:]}
    return {**more, **known, "late": row.late, "override": given}


def as_json(content: Any) -> str:
    """A JSON text that every program reads: no NaN, moments in ISO 8601.

    Example:
        >>> print(as_json({"points": 1.5}), end="")
        {
          "points": 1.5
        }
    """
    text = json.dumps(
        content, indent=2, ensure_ascii=False, allow_nan=False, default=lambda at: at.isoformat()
    )
    return text.encode(errors="replace").decode() + "\n"


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
    """A cell of one line that a spreadsheet shows as it is.

    Example:
        >>> safe(2.50), safe("-1+1"), safe("ada")
        ('2.5', "'-1+1", 'ada')
    """
    return number(value) if isinstance(value, float | int) else guarded(one_line(value))


def number(points: float) -> str:
    """Points as people write them.

    Example:
        >>> number(2.50), number(1 / 3), number(1234567.0)
        ('2.5', '0.3333', '1234567')
    """
    return f"{round(points, 4):.12g}"


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula.

    Example:
        >>> guarded("=1+1"), guarded("ada")
        ("'=1+1", 'ada')
    """
    return f"'{text}" if re.match(r"\s*[=+\-@＝＋－＠]", text) else text
