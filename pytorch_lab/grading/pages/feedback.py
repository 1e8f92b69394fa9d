"""A page for each student: their notebook as handed in, with a verdict below each answer.

`OUT/feedback/<student>.html` is one file for any browser, without a network. It says what was
earned, what the visible check shows, and the hint of a known mistake; of hidden checks it tells no
input and no value (`book.telling`), and of the notebook it shows what cannot act
(`harmless`). Formulas stay as they were typed, in TeX.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from pytorch_lab.checks import sources
from pytorch_lab.errors import NotebookError
from pytorch_lab.grading.authoring.assignment import Exercise
from pytorch_lab.grading.book.gradebook import Verdict
from pytorch_lab.grading.book.marks import GradedClass, Row, total
from pytorch_lab.grading.book.telling import STATUS_WORDS, TONES, tell
from pytorch_lab.grading.notebooks import facts, read, replace
from pytorch_lab.grading.pages import shell
from pytorch_lab.grading.pages.exporter import exporter
from pytorch_lab.grading.pages.handed_in import handed_in
from pytorch_lab.grading.pages.renewing import FOLDER

_NOTHING_NEW = ("passed", "not_attempted", "missing", "unreadable", "needs_person")


@dataclass(frozen=True)
class Card:
    """What a student reads of one exercise."""

    exercise: str
    title: str
    anchor: str
    sign: str
    word: str
    tone: str  # "good", "bad" or "open"
    points: str
    max_points: str
    said: tuple[str, ...] = ()
    shown: str = ""  # what the visible check showed
    hint: str = ""


def write_feedback(graded: GradedClass, out: Path) -> list[Path]:
    """Write a page for each student into `OUT/feedback`.

    Args:
        graded: the class.
        out: the folder of the marks.

    Returns:
        The pages, in the order of the students.

    Raises:
        CourseError: the folder cannot be written to.

    Example:
        >>> write_feedback(GradedClass(Path("no_such.ipynb"), [], [], {}), Path("out"))
        []
    """
    written = []
    for name, page in feedback(graded):
        written.append(out / FOLDER / name)
        replace(written[-1], page)
    return written


def feedback(graded: GradedClass) -> Iterator[tuple[str, str]]:
    """Each student's page, as the name of its file and its text."""
    names = shell.file_names(row.student for row in graded.rows)
    about = _About(graded)
    for student, rows in graded.by_student():
        yield names[student], _page(about, student, rows)


class _About:
    """What all pages of a class share."""

    def __init__(self, graded: GradedClass) -> None:
        self.graded = graded
        self.shell = shell.shell("feedback.css")
        self.exercises = {exercise.id: exercise for exercise in graded.exercises}
        self.titles = {
            exercise: sources.read(graded.assignment, exercise).title for exercise in self.exercises
        }
        self.checks: dict[str, str] = {}  # grade_id -> source
        try:
            cells = read(graded.assignment).cells
        except NotebookError:
            cells = []
        for cell in cells:
            if (known := facts(cell)) and known.is_check:
                self.checks[known.grade_id] = cell.source


def _page(about: _About, student: str, rows: Sequence[Row]) -> str:
    graded = about.graded
    notebook = graded.notebooks.get(student)
    cards = [_card(about, row, graded.verdicts.get((student, row.exercise))) for row in rows]
    shown = handed_in(notebook, graded.exercises) if notebook else nbformat.v4.new_notebook()
    placed = {cell.metadata.exercise for cell in shown.cells if cell.metadata.get("verdict_below")}
    name = graded.assignment.stem
    page = about.shell | {
        "title": f"{name}: {student}"[:200],
        "assignment": name,
        "student": student,
        "points": f"{total(rows):g}",
        "max_points": f"{sum(row.max_points for row in rows):g}",
        "passed": sum(row.status == "passed" for row in rows),
        "cards": {card.exercise: card for card in cards},
        "elsewhere": [card for card in cards if card.exercise not in placed and notebook],
        "instead": [] if notebook else list(dict.fromkeys(s for card in cards for s in card.said)),
        "late": f"{sum(row.late for row in rows):g}" if any(row.late for row in rows) else "",
        "unsafe": "" if graded.sandbox else shell.UNSAFE,
        "has_notebook": notebook is not None,
    }
    return exporter().from_notebook_node(shown, {"page": page})[0]


def _card(about: _About, row: Row, verdict: Verdict | None) -> Card:
    verdict = verdict or Verdict(row.status, "")
    exercise = about.exercises.get(row.exercise)
    notebook = about.graded.notebooks.get(row.student)
    answers = _answers(notebook, exercise) if notebook and exercise else []
    check = about.checks.get(exercise.check, "") if exercise else ""
    sign, word = STATUS_WORDS.get(verdict.status, ("!", verdict.status))
    tone = TONES.get(verdict.status, "bad")
    said = tell(verdict.status, verdict.reason, answers, check)
    if row.override is not None and row.override.points is not None:
        sign, word, tone = "✎", "by hand", "open" if row.points < row.max_points else "good"
        said.insert(0, f"Your instructor gave the points: {row.override.comment or 'no comment'}")
    elif row.late:
        said.append(f"It was handed in late, which took {row.late:g} points.")
    new = verdict.status not in _NOTHING_NEW
    return Card(
        exercise=row.exercise,
        title=about.titles.get(row.exercise, ""),
        anchor=f"exercise-{row.exercise.replace('.', '-')}",
        sign=sign,
        word=word,
        tone=tone,
        points=f"{row.points:g}",
        max_points=f"{row.max_points:g}",
        said=tuple(said),
        shown=verdict.shown if new else "",
        hint=verdict.hint if new else "",
    )


def _answers(notebook: NotebookNode, exercise: Exercise) -> list[str]:
    """The sources of the student's answer cells of an exercise."""
    return [
        cell.source
        for cell in notebook.cells
        if (known := facts(cell)) and known.grade_id in exercise.answers
    ]
