"""Marks for a folder of notebooks: overlay, run by nbval under pytest, one row per exercise.

The notebook of solutions is run first, on the same seed and in the same way; what its hidden checks
reveal is what a student's must reveal. Then all students' notebooks are run in one pytest process.
A submission that cannot be run is a row with a reason; only a fault of the assignment, or of the
machine, is an error.
"""

import csv
import io
import re
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from pytorch_lab import scratch
from pytorch_lab.errors import CourseError, LabError, NotebookError, UsageError
from pytorch_lab.grading.assignment import Exercise, exercises
from pytorch_lab.grading.nbval_run import Pytest
from pytorch_lab.grading.notebooks import read, replace, why_not, write
from pytorch_lab.grading.overlay import MIME, ROLE, Overlay, overlay
from pytorch_lab.grading.submissions import Submission, submissions
from pytorch_lab.grading.trouble import one_line
from pytorch_lab.warm.sandbox import why_not as why_no_sandbox
from pytorch_lab.warm.worker import Worker


@dataclass(frozen=True)
class Row:
    """One line of `grades.csv`."""

    student: str
    exercise: str
    points: float
    max_points: float
    status: str
    reason: str


_TWO_VERDICTS = {
    "status": "refused",
    "reason": "the run gave two verdicts for this exercise, so some code wrote one of them",
}


@dataclass
class _Batch:
    """The assignment, and what is known of each submission before and after the run."""

    exercises: list[Exercise]
    overlays: dict[str, Overlay] = field(default_factory=dict)  # by student
    unread: dict[str, tuple[str, str]] = field(default_factory=dict)
    records: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
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
    with ExitStack() as stack:
        work = scratch.make("grade")
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        warm = stack.enter_context(Worker()).run if sandbox else None
        pytest = Pytest(timeout_cell, warm)
        stack.callback(pytest.stop)
        reference = _reference(instructor, assignment, batch.exercises, work, seed, pytest)
        _run_all(batch, reference, work, pytest, workers)
    rows = [row for submission in found for row in _rows(batch, submission.student)]
    replace(out / "grades.csv", _csv(rows))
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


def _reference(
    instructor: NotebookNode,
    name: object,
    graded: Sequence[Exercise],
    work: Path,
    seed: int,
    pytest: Pytest,
) -> dict[str, list[Any]]:
    """What the hidden checks reveal of the solutions."""
    made = overlay(instructor, instructor, seed=seed)
    if made.status or made.notes:
        why = "; ".join([*made.notes, *(reason for _, reason in made.status.values())])
        raise NotebookError(f"expected solutions that can be run in {name}, but {why}.")
    write(work / "reference" / "0.ipynb", made.notebook)
    records, ended = pytest(work / "reference", "--lab-reference")
    shutil.rmtree(work / "reference")  # what it revealed must not lie there for students to read
    if ended:
        raise LabError(
            f"expected pytest to run the solutions, but {ended}; run 'pytorch-lab doctor'."
        )
    by_exercise = {record["exercise"]: record for record in records}
    for exercise in graded:
        record = by_exercise.get(exercise.id, {"status": "failed", "reason": "nothing came back"})
        if record["status"] == "passed" and record["reveals"]:
            continue
        why = record["reason"] or "it revealed nothing"
        raise NotebookError(
            f"expected the solution of exercise {exercise.id} in {name} to pass its hidden check "
            f"and reveal a value, got {record['status']}: {why}; nobody can be graded by it."
        )
    return {exercise: record["reveals"] for exercise, record in by_exercise.items()}


def _run_all(
    batch: _Batch, reference: dict[str, list[Any]], work: Path, pytest: Pytest, workers: int
) -> None:
    """Run every notebook that could earn points, in so many pytest processes at a time."""
    students = [s for s, made in batch.overlays.items() if made.worth_running]
    if not students:
        return
    for number, student in enumerate(students):
        notebook = batch.overlays[student].notebook
        for cell in notebook.cells:
            known = cell.metadata[ROLE]
            if known["role"] == "check":
                cell.execution_count = 1  # nbval compares executed cells only
                cell.outputs = [
                    nbformat.v4.new_output("display_data", {MIME: value})
                    for value in reference[known["exercise"]]
                ]
        write(work / f"students-{number % workers}" / f"{number:05}.ipynb", notebook)
    folders = sorted(work.glob("students-*"))
    with ThreadPoolExecutor(len(folders)) as pool:
        try:
            done = list(pool.map(pytest, folders))
        except BaseException:  # an interrupt: the pool would wait for the end of all of them
            pytest.stop()
            raise
    batch.records = _verdicts([record for records, _ in done for record in records], students)
    batch.ended = "; ".join(filter(None, (ended for _, ended in done)))
    if batch.ended and not batch.records:
        raise LabError(f"expected pytest to run the notebooks, but {batch.ended}.")


def _verdicts(
    records: Sequence[dict[str, Any]], students: Sequence[str]
) -> dict[tuple[str, str], dict[str, Any]]:
    """The record of each student and exercise; where there are two, neither counts."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for record in records:
        at = str(record["submission"])
        if at.isdecimal() and int(at) < len(students):
            key = students[int(at)], str(record["exercise"])
            found[key] = record if key not in found else _TWO_VERDICTS
    return found


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
    record = batch.records.get((student, exercise.id))
    if exercise.id in made.status:
        status, reason = made.status[exercise.id]
    elif record is not None:
        status, reason = record["status"], record["reason"]
    elif made.worth_running:
        status, reason = "kernel_died", batch.ended or "the run gave no result for this exercise"
    else:
        status, reason = "not_attempted", "the answer is still the stub"
    notes = [reason, *made.notes_of.get(exercise.id, []), *made.notes]
    return status, one_line("; ".join(filter(None, notes)))


def _csv(rows: Sequence[Row]) -> str:
    """The text of `grades.csv`; no cell of it is taken for a formula by a spreadsheet."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in fields(Row)])
    for row in rows:
        writer.writerow([_safe(value) for value in astuple(row)])
    return text.getvalue()


def _safe(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    text = one_line(value)
    return f"'{text}" if re.match(r"[=+\-@]", text) else text
