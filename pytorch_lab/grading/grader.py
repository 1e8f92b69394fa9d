"""Marks for a folder of notebooks: overlay, run by nbval under pytest, one row per exercise.

A submission that cannot be run is a row with a reason; only a fault of the assignment, or of the
machine, is an error.
"""

import os
import secrets
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode

from pytorch_lab.errors import CourseError, LabError, NotebookError, UsageError
from pytorch_lab.grading.authoring.assignment import Exercise, exercises
from pytorch_lab.grading.authoring.foreign import adopt
from pytorch_lab.grading.authoring.mutants import known_answers
from pytorch_lab.grading.book.bookkeeping import BOOK, graded_class, url_of, write
from pytorch_lab.grading.book.gradebook import Gradebook, Person, Verdict, key_of
from pytorch_lab.grading.book.late import LateRule
from pytorch_lab.grading.book.lms import read_roster
from pytorch_lab.grading.book.marks import GradedClass
from pytorch_lab.grading.intake.taking_in import Submission, intake
from pytorch_lab.grading.notebooks import exercise_id, facts, read, why_not
from pytorch_lab.grading.running.judging import Assignment, Verdicts, judge, unstable
from pytorch_lab.grading.running.overlay import Overlay, overlay
from pytorch_lab.grading.sizes import bytes_of
from pytorch_lab.grading.trouble import joined, one_line
from pytorch_lab.warm.sandbox import why_not as why_no_sandbox

_SEEDS = 1_000_000_000


@dataclass
class _Batch:
    """The assignment, and what is known of each submission before and after the run."""

    exercises: list[Exercise]
    people: dict[str, Person] = field(default_factory=dict)  # by student, as the next four
    notebooks: dict[str, NotebookNode] = field(default_factory=dict)  # as handed in
    overlays: dict[str, Overlay] = field(default_factory=dict)
    unread: dict[str, Verdict] = field(default_factory=dict)
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # how it was taken in
    verdicts: Verdicts = field(default_factory=dict)
    ended: str = ""  # why the run ended before all was judged
    told: list[str] = field(default_factory=list)  # about the class


def grade(
    folder: Path,
    assignment: Path,
    out: Path,
    *,
    seed: int | None = None,
    sandbox: bool = True,
    timeout_cell: int = 30,
    memory: str = "4G",
    workers: int = 1,
    dask: str | None = None,
    db: str | None = None,
    only: Sequence[str] = (),
    late: str | None = None,
    roster: Path | None = None,
    mutants: Path | None = None,
    check_stability: bool = False,
    begun: Callable[[int], None] = lambda total: None,
    heard: Callable[..., None] = lambda *settled: None,
) -> GradedClass:
    """Grade every notebook handed in, and write the marks.

    Args:
        folder: with `<student>.ipynb`, or `<student>/<assignment>/*.ipynb`, or what Canvas, Moodle
            or Gradescope exports; or a zip of any of these.
        assignment: the notebook of solutions, or a folder that holds it alone.
        out: the folder for `grades.csv` and the other marks.
        seed: what the hidden checks draw their inputs from; by default that of the run before,
            and at first one by chance.
        sandbox: shut each student's kernel in, away from your files, network and other kernels;
            without it, their code runs as you.
        timeout_cell: seconds that one cell may run.
        memory: what a kernel in the sandbox may use, beyond torch itself; at most what the
            machine has.
        workers: how many submissions are run at a time.
        dask: the address of a scheduler, such as tcp://10.0.0.5:8786, on whose workers they are
            run instead.
        db: the gradebook's URL; by default a SQLite file in `out`. What it knows is not run again.
        only: the exercises that are run anew and whose verdicts are renewed; empty for all that
            changed.
        late: what lateness costs, like "10% per day, at most 50%, after 2026-12-01T23:59+01:00";
            it holds until another is given, or "none".
        roster: the file that Canvas or Moodle exported, for the forms that they import.
        mutants: the file of known mistakes, by which wrong answers are named; by default
            `mutants/<the assignment's name>.py` beside the assignment.
        check_stability: run all twice; the verdicts that differ are in the class's `unstable`.
        begun: is told how many submissions will be run; those that are known are not.
        heard: is told of each as it settles, as by `judge`.

    Raises:
        NotebookError: the assignment cannot be graded by.
        LabError: another reason why no submission can be graded.

    Example:
        >>> grade(Path("submitted"), Path("no_such.ipynb"), Path("out"))
        Traceback (most recent call last):
        pytorch_lab.errors.NotebookError: expected a notebook at no_such.ipynb, ...
    """
    _refuse(timeout_cell, workers, sandbox)
    rule = None if late is None else LateRule.parse(late)
    known = read_roster(roster) if roster else None
    assignment = _notebook(assignment)
    instructor = adopt(read(assignment))
    batch = _Batch(exercises(instructor, assignment))
    _refuse_unknown(only, batch.exercises)
    found = intake(folder, assignment, out)
    _try_to_write(out)
    memory_bytes = _memory(batch, memory, here=dask is None)
    mistakes = known_answers(assignment, mutants).mutants
    pairs = [(exercise.id, exercise.points) for exercise in batch.exercises]
    with closing(Gradebook(url_of(db or str((out / BOOK).resolve())))) as book:
        seed = _seed(batch, book, assignment.stem) if seed is None else seed
        for submission in found:
            _take(batch, submission, instructor, seed)
        assigned = Assignment(
            instructor, assignment, batch.exercises, seed, sandbox, timeout_cell, mistakes,
            memory_bytes=memory_bytes,
        )  # fmt: skip
        running = {s: made.notebook for s, made in batch.overlays.items() if made.worth_running}
        run = book.begin(assignment.stem, pairs, seed, sandbox, only)
        if late is not None:
            book.set_late(assignment.stem, str(rule or ""))
        if only:
            book.forget([assigned.key(each) for each in running.values()], run.started)
        batch.verdicts, batch.ended = judge(
            assigned, running, book, workers, dask=dask, begun=begun, heard=heard
        )
        twice = unstable(assigned, running, batch.verdicts, workers) if check_stability else []
        book.end(run, _verdicts(batch), batch.people, str(folder.resolve()))
        standing = book.standing(assignment.stem)
    graded = graded_class(standing, assignment, batch.exercises, list(batch.people))
    graded.notebooks = batch.notebooks
    graded.notes += [*batch.told, *filter(None, [batch.ended])]
    graded.unstable = [_differ(*one) for one in twice]
    write(graded, out, known)
    return graded


def _notebook(assignment: Path) -> Path:
    """The notebook of solutions, be it given by its folder."""
    if not assignment.is_dir():
        return assignment
    found = sorted(assignment.glob("*.ipynb"))
    if len(found) != 1:
        raise UsageError(
            f"expected one notebook of solutions in {assignment}, found {len(found)}; give "
            "--assignment the notebook that was released."
        )
    return found[0]


def _seed(batch: _Batch, book: Gradebook, assignment: str) -> int:
    """The seed of the run before, so that marks stay; at first one that nobody can foresee."""
    known = book.last_seed(assignment)
    if known is not None:
        return known
    drawn = secrets.randbelow(_SEEDS)
    batch.told.append(
        f"the hidden inputs are those of seed {drawn}, drawn by chance; the gradebook keeps it for "
        "the next runs"
    )
    return drawn


def _memory(batch: _Batch, size: str, *, here: bool) -> int:
    """How many bytes a kernel may use; on this machine not more than there are."""
    wanted = bytes_of(size)
    if not here or not hasattr(os, "sysconf"):
        return wanted
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if wanted > there:
        batch.told.append(
            f"--memory {size} is more than this machine has; a kernel may use all of its "
            f"{there / (1 << 30):.1f}G"
        )
    return min(wanted, there)


def _differ(student: str, exercise: str, first: Verdict, second: Verdict) -> str:
    told = [f"{said.status} ({said.reason or 'no remark'})" for said in (first, second)]
    return one_line(f"{student}, {exercise}: first {told[0]}, then {told[1]}")


def _refuse(timeout_cell: int, workers: int, sandbox: bool) -> None:
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


def _refuse_unknown(only: Sequence[str], there: Sequence[Exercise]) -> None:
    ids = [exercise.id for exercise in there]
    for exercise in only:
        if exercise not in ids:
            raise UsageError(
                f"expected an exercise of the assignment, got {exercise!r}; give --exercise one "
                f"of {', '.join(ids)}."
            )


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
    who = submission.student
    batch.people[who] = person = Person(submission.lms_id, submission.submitted_at, submission.late)
    batch.notes[who] = submission.notes
    if submission.status:
        batch.unread[who] = Verdict(submission.status, submission.reason)
        return
    try:
        student = submission.read()
    except NotebookError as error:
        batch.unread[who] = Verdict("unreadable", str(error))
        return
    batch.people[who] = person._replace(content=key_of(student))
    batch.notebooks[who] = student
    batch.overlays[who] = made = overlay(instructor, student, seed=seed)
    mine = _answers(instructor)
    if _answers(student) == mine and any("### BEGIN SOLUTION" in each for each in mine.values()):
        batch.notes[who] += ("these are the solutions themselves, markers and all: look at it",)
        batch.told.append(one_line(f"{who} handed in the solutions themselves, markers and all"))
    elif all(made.status.get(each.id, ("",))[0] == "missing" for each in batch.exercises):
        asked = sorted({exercise_id(grade_id) for grade_id in _answers(student)})
        what = f"with the exercises {', '.join(asked)}" if asked else "without any exercise"
        batch.told.append(one_line(f"{who} handed in another notebook, {what}"))


def _answers(notebook: NotebookNode) -> dict[str, str]:
    """The source of each answer cell, as it stands."""
    return {
        known.grade_id: cell.source.strip()
        for cell in notebook.cells
        if (known := facts(cell)) and known.is_answer
    }


def _verdicts(batch: _Batch) -> Verdicts:
    """One verdict for each student and exercise, whatever was handed in."""
    return {
        (student, exercise.id): _verdict(batch, student, exercise)
        for student in batch.people
        for exercise in batch.exercises
    }


def _verdict(batch: _Batch, student: str, exercise: Exercise) -> Verdict:
    if student in batch.unread:
        said = batch.unread[student]
        return said._replace(reason=joined(said.reason, *batch.notes[student]))
    made = batch.overlays[student]
    said = batch.verdicts.get((student, exercise.id))
    if exercise.id in made.status:
        said = Verdict(*made.status[exercise.id])
    elif said is None and made.worth_running:
        why = batch.ended or "the run gave no result for this exercise"
        said = Verdict("kernel_died", why)
    elif said is None:
        said = Verdict("not_attempted", "the answer is still the stub")
    notes = [*made.notes_of.get(exercise.id, []), *made.notes, *batch.notes[student]]
    return said._replace(reason=joined(said.reason, *notes))
