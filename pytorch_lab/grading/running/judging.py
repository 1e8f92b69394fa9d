"""Verdicts for a class's notebooks: from the gradebook where it knows them, else by running them.

The solutions are run first, on the same seed and in the same way; what their hidden checks reveal
is what a student's must reveal. Each submission is settled as soon as it has run, so that a run
that is killed goes on where it stopped.
"""

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from pytorch_lab import __version__, scratch
from pytorch_lab.errors import LabError, NotebookError
from pytorch_lab.grading.authoring.assignment import Exercise
from pytorch_lab.grading.authoring.foreign import PERSON
from pytorch_lab.grading.authoring.mutants import Mutant
from pytorch_lab.grading.book.gradebook import Gradebook, Verdict, key_of
from pytorch_lab.grading.notebooks import text, why_not, write
from pytorch_lab.grading.running.collecting import Collector, Verdicts, asked_of, is_no_verdict
from pytorch_lab.grading.running.explaining import Explainer
from pytorch_lab.grading.running.misconceptions import Misconceptions, Signature, kept, signatures
from pytorch_lab.grading.running.nbval_run import Pytest, Record
from pytorch_lab.grading.running.overlay import MIME, ROLE, overlay
from pytorch_lab.grading.running.trials import Trials
from pytorch_lab.warm.worker import Worker

# The parts of the lab that a notebook names: `from pytorch_lab import …`, `lab.…`, and so on.
_PARTS = re.compile(
    r"from pytorch_lab import (.+)|from pytorch_lab\.([\w.]+)|\blab\.(\w+)|\b(checks\.references)\b"
)


@dataclass(frozen=True)
class Assignment:
    """What is graded, and how."""

    solutions: NotebookNode
    name: Path
    exercises: Sequence[Exercise]
    seed: int
    sandbox: bool
    timeout_cell: int
    mutants: Sequence[Mutant] = ()  # known mistakes, by which wrong answers are named
    memory_bytes: int = 0  # that a kernel in the sandbox may use; 0 for what it may by default

    def key(self, notebook: NotebookNode) -> str:
        """The gradebook's key of an overlaid notebook."""
        cells = [[cell.cell_type, cell.source, cell.metadata] for cell in notebook.cells]
        mine = [[cell.cell_type, cell.source] for cell in self.solutions.cells]
        mistakes = [astuple(one) for one in self.mutants]
        asked = [astuple(one) for one in self.exercises]  # a partial credit hangs on the points
        limits = self.seed, self.sandbox, self.timeout_cell, self.memory_bytes
        return key_of(__version__, cells, mine, asked, mistakes, *limits)


def judge(
    assignment: Assignment,
    notebooks: dict[str, NotebookNode],
    book: Gradebook,
    workers: int,
    *,
    dask: str | None = None,
    begun: Callable[[int], None] = lambda total: None,
    heard: Callable[[str, Mapping[str, Verdict], float], None] = lambda *settled: None,
) -> tuple[Verdicts, str]:
    """The verdict on every student and exercise, and why the run ended early, or "".

    Args:
        assignment: what is graded, and how.
        notebooks: the overlaid notebooks, by student.
        book: what is known already; what is found out is kept in it.
        workers: how many are run at a time.
        dask: the address of a scheduler, on whose workers they are run instead.
        begun: is told how many will be run.
        heard: is called as each of them settles, from any thread: the student, the verdicts by
            exercise, the seconds that it took.

    Raises:
        NotebookError: the solutions do not pass their own checks.
        LabError: nothing could be run.
    """
    keys = {student: assignment.key(notebook) for student, notebook in notebooks.items()}
    verdicts: Verdicts = {}
    waiting = {}
    for student, notebook in notebooks.items():
        known = book.known(keys[student])
        verdicts |= {(student, exercise): said for exercise, said in known.items()}
        if not known:
            waiting[student] = notebook
    begun(len(waiting))
    if not waiting:
        return verdicts, ""
    with ExitStack() as stack:
        work = _make_work()
        stack.callback(scratch.remove, work)
        modules = _wanted(assignment.solutions, waiting.values())
        warm = stack.enter_context(Worker(modules)).run if assignment.sandbox else None
        pytest = Pytest(assignment.timeout_cell, warm, assignment.memory_bytes)
        stack.callback(pytest.stop)
        reference = _reference(assignment, work, pytest)
        texts = {student: prepared(notebook, reference) for student, notebook in waiting.items()}
        explain = _explainer(assignment, reference, pytest, book)

        def collector(students: list[str]) -> Collector:
            return Collector(students, keys, book, explain, heard, asked_of(notebooks), verdicts)

        if dask is None:
            ended = _run_here(pytest, work, texts, workers, collector)
        else:
            ended = _run_on_farm(dask, assignment, texts, collector)
    ended = ended or next((s.reason for s in verdicts.values() if is_no_verdict(s)), "")
    if ended and not verdicts:
        raise LabError(f"expected pytest to run the notebooks, but {ended}.")
    return verdicts, ended


def _wanted(solutions: NotebookNode, handed_in: Iterable[NotebookNode]) -> list[str]:
    """What is imported once for all: the parts of the lab that the solutions name, and matplotlib.

    That one only if anybody mentions it, since it costs as much as a few submissions.
    """
    named = _PARTS.findall("\n".join(cell.source for cell in solutions.cells))
    names = sorted({name for groups in named for name in re.findall(r"[\w.]+", " ".join(groups))})
    notebooks = [solutions, *handed_in]
    plots = any("matplotlib" in cell.source for one in notebooks for cell in one.cells)
    return [*(f"pytorch_lab.{name}" for name in names), *(["matplotlib.pyplot"] if plots else [])]


def _make_work() -> Path:
    try:
        return scratch.make("grade")
    except OSError as error:
        raise LabError(
            f"expected room for the run in {tempfile.gettempdir()}, but got {why_not(error)}; make "
            "room there, or name another folder in TMPDIR. What was judged before is kept."
        ) from None


def unstable(
    assignment: Assignment, notebooks: dict[str, NotebookNode], first: Verdicts, workers: int
) -> list[tuple[str, str, Verdict, Verdict]]:
    """Run all once more, and tell which verdicts are not the same.

    Args:
        assignment: what is graded, and how.
        notebooks: the overlaid notebooks, by student.
        first: the verdicts of the first run.
        workers: how many are run at a time.

    Returns:
        The student, the exercise, and both verdicts, of which the status or the reason differs.
    """
    folder = scratch.make("again")
    try:
        with closing(Gradebook(f"sqlite:///{folder / 'book.sqlite'}")) as nothing_known:
            second, _ = judge(assignment, notebooks, nothing_known, workers)
    finally:
        scratch.remove(folder)
    none = Verdict("kernel_died", "the run gave no result for this exercise")
    return [
        (student, exercise, was, now)
        for (student, exercise), was in first.items()
        if student in notebooks
        if (now := second.get((student, exercise), none))[:2] != was[:2]
    ]


def _reference(assignment: Assignment, work: Path, pytest: Pytest) -> dict[str, list[Any]]:
    """What the hidden checks reveal of the solutions."""
    name = assignment.name
    made = overlay(assignment.solutions, assignment.solutions, seed=assignment.seed)
    by_person = {exercise.id for exercise in assignment.exercises if exercise.judge == PERSON}
    settled = [reason for e, (_, reason) in made.status.items() if e not in by_person]
    if settled or made.notes:
        why = "; ".join([*made.notes, *settled])
        raise NotebookError(f"expected solutions that can be run in {name}, but {why}.")
    write(work / "reference" / "0.ipynb", made.notebook)
    records, ended = pytest(work / "reference", "--lab-reference")
    scratch.remove(work / "reference")  # what it revealed must not lie there for students to read
    if ended:
        raise LabError(
            f"expected pytest to run the solutions, but {ended}; run 'pytorch-lab doctor'."
        )
    by_exercise = {record["exercise"]: record for record in records}
    for exercise in assignment.exercises:
        record = by_exercise.get(exercise.id, {"status": "failed", "reason": "nothing came back"})
        if exercise.id in by_person or (record["status"] == "passed" and record["reveals"]):
            continue
        why = record["reason"] or "it revealed nothing"
        raise NotebookError(
            f"expected the solution of exercise {exercise.id} in {name} to pass its hidden check "
            f"and reveal a value, got {record['status']}: {why}; nobody can be graded by it."
        )
    return {exercise: record["reveals"] for exercise, record in by_exercise.items()}


def _explainer(
    assignment: Assignment, reference: dict[str, list[Any]], pytest: Pytest, book: Gradebook
) -> Explainer:
    """What makes verdicts of records; mistakes are run when the first wrong answer comes."""
    solutions, mutants, seed = assignment.solutions, assignment.mutants, assignment.seed

    def find() -> list[Signature]:
        return signatures(solutions, mutants, Trials(solutions, pytest), seed)

    key = assignment.key(assignment.solutions)
    known = Misconceptions(lambda: kept(book, key, find, mutants) if mutants else [])
    return Explainer(assignment.exercises, reference, known)


def prepared(notebook: NotebookNode, reference: Mapping[str, list[Any]]) -> bytes:
    """An overlaid notebook with what its hidden checks must reveal, ready to be run anywhere."""
    for cell in notebook.cells:
        known = cell.metadata[ROLE]
        if known["role"] == "check":
            cell.execution_count = 1  # nbval compares executed cells only
            cell.outputs = [
                NotebookNode(output_type="display_data", data={MIME: value}, metadata={})
                for value in reference[known["exercise"]]
            ]
    return text(notebook).encode()


def _run_here(
    pytest: Pytest,
    work: Path,
    texts: Mapping[str, bytes],
    workers: int,
    collector: Callable[[list[str]], Collector],
) -> str:
    """Run each worker's share in a pytest process: `00000.ipynb` in its folder is its first."""
    shares = [list(texts)[first::workers] for first in range(min(workers, len(texts)))]

    def run(number: int) -> str:
        folder, collecting = work / f"students-{number}", collector(shares[number])
        folder.mkdir()
        for at, student in enumerate(shares[number]):
            (folder / f"{at:05}.ipynb").write_bytes(texts[student])
        ended = pytest(folder, heard=collecting.hear)[1]
        collecting.settle()
        return ended

    with ThreadPoolExecutor(len(shares)) as pool:
        try:
            return "; ".join(filter(None, pool.map(run, range(len(shares)))))
        except BaseException:  # an interrupt: the pool would wait for the end of all of them
            pytest.stop()
            raise


def _run_on_farm(
    address: str,
    assignment: Assignment,
    texts: Mapping[str, bytes],
    collector: Callable[[list[str]], Collector],
) -> str:
    """Run a few students at a time wherever the scheduler sends them."""
    from pytorch_lab.grading.running.anywhere import How
    from pytorch_lab.grading.running.farm import TASK, run_on_farm

    students = list(texts)
    shares = [students[at : at + TASK] for at in range(0, len(students), TASK)]
    how = How(assignment.sandbox, assignment.timeout_cell, assignment.memory_bytes)

    def done(number: int, records: list[Record]) -> None:
        collecting = collector(shares[number])
        for record in records:
            collecting.hear(record)
        collecting.settle()

    return run_on_farm(address, [[texts[s] for s in share] for share in shares], how, done)
