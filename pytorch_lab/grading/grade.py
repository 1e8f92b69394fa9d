"""Marks for a folder of notebooks: overlay, run by nbval under pytest, one row per exercise.

The notebook of solutions is run first, on the same seed and in the same way; what its hidden checks
reveal is what a student's must reveal. Then all students' notebooks are run in one pytest process.
A submission that cannot be run is a row with a reason; only a fault of the assignment, or of the
machine, is an error.
"""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from pytorch_lab.errors import CourseError, LabError, NotebookError, UsageError
from pytorch_lab.grading.assignment import Exercise, exercises
from pytorch_lab.grading.notebooks import read, replace, why_not, write
from pytorch_lab.grading.overlay import MIME, ROLE, Overlay, overlay
from pytorch_lab.grading.submissions import Submission, submissions
from pytorch_lab.grading.trouble import one_line
from pytorch_lab.warm import provisioner
from pytorch_lab.warm.sandbox import why_not as why_no_sandbox
from pytorch_lab.warm.worker import Worker

STATUSES = (
    "passed",
    "failed",
    "raised",
    "timed_out",
    "kernel_died",
    "not_attempted",
    "missing",
    "refused",
    "unreadable",
)

# One thread each: two on a busy machine make a step up to 300 times slower.
_ENV = {
    "MPLBACKEND": "agg",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}


@dataclass(frozen=True)
class Row:
    """One line of `grades.csv`."""

    student: str
    exercise: str
    points: float
    max_points: float
    status: str
    reason: str


_KEYS = {"submission", "exercise", "status", "reason"}
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
    if sandbox and (reason := why_no_sandbox()):
        raise LabError(reason)
    instructor = read(assignment)
    batch = _Batch(exercises(instructor, assignment))
    found = submissions(folder, assignment, out)
    _try_to_write(out)
    for submission in found:
        _take(batch, submission, instructor, seed)
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pytorch-lab-grade-")))
        warm = stack.enter_context(Worker()).run if sandbox else None
        pytest = _Pytest(timeout_cell, warm)
        reference = _reference(instructor, assignment, batch.exercises, work, seed, pytest)
        _run_all(batch, reference, work, pytest)
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
    pytest: "_Pytest",
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


def _run_all(batch: _Batch, reference: dict[str, list[Any]], work: Path, pytest: "_Pytest") -> None:
    """Run every notebook that could earn points, in one pytest process."""
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
        write(work / "students" / f"{number:05}.ipynb", notebook)
    records, batch.ended = pytest(work / "students")
    batch.records = _verdicts(records, students)
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


@dataclass(frozen=True)
class _Pytest:
    """Runs the notebooks of a folder; nothing of the user's own pytest settings takes part."""

    timeout_cell: int
    warm: Path | None  # the folder of the warm worker; None without a sandbox

    def __call__(self, folder: Path, *options: str) -> tuple[list[dict[str, Any]], str]:
        """A record for each exercise that was judged, and why the run ended early, or ""."""
        results, config = folder / "results.jsonl", folder / "pytest.ini"
        config.write_text("[pytest]\n", "utf-8")
        results.touch()
        command = [
            *(sys.executable, "-m", "pytest", "-q", "--tb=line", "--noconftest"),
            *("-p", "nbval.plugin", "-p", "pytorch_lab.grading.plugin", "-p", "no:cacheprovider"),
            *(
                "-c",
                str(config),
                "--rootdir",
                str(folder),
                f"--nbval-cell-timeout={self.timeout_cell}",
            ),
            *("--lab-results", str(results), *options, str(folder)),
        ]
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | _ENV
        if self.warm is not None:
            command.append("--lab-sandbox")
            env[provisioner.ATTACH] = str(self.warm)
        done = subprocess.run(  # the command is ours
            command,
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode not in (0, 1):
            told = one_line((done.stdout + done.stderr)[-2000:])[-300:]
            return _records(results), f"it ended with code {done.returncode}: {told}"
        return _records(results), ""


def _records(results: Path) -> list[dict[str, Any]]:
    """The lines that are records; without a sandbox, students could write others."""
    found = []
    for line in results.read_text("utf-8", errors="replace").splitlines():
        with suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict) and _is_the_plugins(record):
                found.append(record)
    return found


def _is_the_plugins(record: dict[str, Any]) -> bool:
    """Whether the plugin could have written this."""
    texts = all(isinstance(record.get(key), str) for key in _KEYS)
    return texts and record["status"] in STATUSES


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
