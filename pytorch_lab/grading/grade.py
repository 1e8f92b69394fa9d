"""Marks for a folder of notebooks: overlay, run by nbval under pytest, one row per exercise.

A submission that cannot be run is a row with a reason; only a fault of the assignment, or of the
machine, is an error.
"""

import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode

from pytorch_lab.errors import CourseError, LabError, NotebookError, UsageError
from pytorch_lab.grading.assignment import Exercise, exercises
from pytorch_lab.grading.gradebook import Gradebook
from pytorch_lab.grading.judging import Assignment, Verdicts, judge
from pytorch_lab.grading.marks import Row, grades_csv
from pytorch_lab.grading.notebooks import read, replace, why_not
from pytorch_lab.grading.overlay import Overlay, overlay
from pytorch_lab.grading.submissions import Submission, submissions
from pytorch_lab.grading.trouble import one_line
from pytorch_lab.warm.sandbox import why_not as why_no_sandbox

BOOK = "gradebook.sqlite"  # in the folder of the marks


@dataclass
class _Batch:
    """The assignment, and what is known of each submission before and after the run."""

    exercises: list[Exercise]
    overlays: dict[str, Overlay] = field(default_factory=dict)  # by student
    unread: dict[str, tuple[str, str]] = field(default_factory=dict)
    verdicts: Verdicts = field(default_factory=dict)
    ended: str = ""  # why the run ended before all was judged


def grade(
    folder: Path,
    assignment: Path,
    out: Path,
    *,
    seed: int = 0,
    sandbox: bool = True,
    timeout_cell: int = 60,
    workers: int = 1,
    db: str | None = None,
) -> list[Row]:
    """Grade every notebook handed in, and write `grades.csv`.

    Args:
        folder: with `<student>.ipynb`, or `<student>/<assignment>/*.ipynb`.
        assignment: the notebook of solutions.
        out: the folder for `grades.csv`.
        seed: what the hidden checks draw their inputs from; one that students do not know.
        sandbox: shut each student's kernel in, away from your files, network and other kernels;
            without it, their code runs as you.
        timeout_cell: seconds that one cell may run.
        workers: how many submissions are run at a time.
        db: the gradebook's URL; by default a SQLite file in `out`. What it knows is not run again.

    Raises:
        NotebookError: the assignment cannot be graded by.
        LabError: another reason why no submission can be graded.

    Example:
        >>> grade(Path("submitted"), Path("no_such.ipynb"), Path("out"))
        Traceback (most recent call last):
        pytorch_lab.errors.NotebookError: expected a notebook at no_such.ipynb, ...
    """
    if timeout_cell <= 0:
        raise UsageError(
            f"expected a time limit above 0 seconds for a cell, got {timeout_cell}; "
            "give --timeout-cell a larger number."
        )
    if workers <= 0:
        raise UsageError(
            f"expected at least one worker, got {workers}; give --workers the number of cores."
        )
    if sandbox and (reason := why_no_sandbox()):
        raise LabError(reason)
    instructor = read(assignment)
    batch = _Batch(exercises(instructor, assignment))
    found = submissions(folder, assignment, out)
    _try_to_write(out)
    for submission in found:
        _take(batch, submission, instructor, seed)
    assigned = Assignment(instructor, assignment, batch.exercises, seed, sandbox, timeout_cell)
    running = {s: made.notebook for s, made in batch.overlays.items() if made.worth_running}
    with closing(Gradebook(db or f"sqlite:///{(out / BOOK).resolve()}")) as book:
        batch.verdicts, batch.ended = judge(assigned, running, book, workers)
    rows = [row for submission in found for row in _rows(batch, submission.student)]
    replace(out / "grades.csv", grades_csv(rows))
    return rows


def _try_to_write(out: Path) -> None:
    """Find out before the run, not after it, that the marks cannot be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise CourseError(
            f"expected to write grades.csv into {out}, but got {why_not(error)}; "
            "give --out a folder that you may write to."
        ) from None


def _take(batch: _Batch, submission: Submission, instructor: NotebookNode, seed: int) -> None:
    """Read a submission and lay it over the assignment; what cannot be read is noted."""
    if submission.path is None:
        batch.unread[submission.student] = (submission.status, submission.reason)
        return
    try:
        student = read(submission.path)
    except NotebookError as error:
        batch.unread[submission.student] = ("unreadable", str(error))
        return
    batch.overlays[submission.student] = overlay(instructor, student, seed=seed)


def _rows(batch: _Batch, student: str) -> list[Row]:
    """One row for each exercise of the assignment, whatever was handed in."""
    made = []
    for exercise in batch.exercises:
        status, reason = _verdict(batch, student, exercise)
        points = exercise.points if status == "passed" else 0.0
        made.append(Row(student, exercise.id, points, exercise.points, status, reason))
    return made


def _verdict(batch: _Batch, student: str, exercise: Exercise) -> tuple[str, str]:
    if student in batch.unread:
        return batch.unread[student]
    made = batch.overlays[student]
    said = batch.verdicts.get((student, exercise.id))
    if exercise.id in made.status:
        status, reason = made.status[exercise.id]
    elif said is not None:
        status, reason = said.status, said.reason
    elif made.worth_running:
        status, reason = "kernel_died", batch.ended or "the run gave no result for this exercise"
    else:
        status, reason = "not_attempted", "the answer is still the stub"
    notes = [reason, *made.notes_of.get(exercise.id, []), *made.notes]
    return status, one_line("; ".join(filter(None, notes)))
