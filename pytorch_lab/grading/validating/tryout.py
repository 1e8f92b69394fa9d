"""The answers that `validate` runs over an assignment, and what is wrong if they end otherwise."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from nbformat import NotebookNode

from pytorch_lab.grading.authoring.assignment import Exercise
from pytorch_lab.grading.authoring.foreign import PERSON
from pytorch_lab.grading.authoring.mutants import Known, assemble, has_exercise, packed
from pytorch_lab.grading.authoring.release import student_version
from pytorch_lab.grading.running.nbval_run import Record
from pytorch_lab.grading.running.trials import Found, Kernels, Trial
from pytorch_lab.grading.running.values import judge
from pytorch_lab.grading.validating.hollow import hollow

SEEDS = range(5)
FIRST = SEEDS[0]
TWO_THREADS = "import torch\ntorch.set_num_threads(2)"
_SILENT: Record = {"status": "kernel_died", "reason": "nothing came back", "reveals": []}


@dataclass(frozen=True)
class Fault:
    """Something about an assignment that would give wrong marks.

    Attributes:
        exercise: where, or "" for the notebook as a whole.
        what: what is wrong.
        do: what to do about it.

    Example:
        >>> print(Fault("03.1", "the stub passes its hidden check", "reveal more"))
        03.1: the stub passes its hidden check; reveal more.
    """

    exercise: str
    what: str
    do: str

    def __str__(self) -> str:
        return f"{self.exercise}{': ' if self.exercise else ''}{self.what}; {self.do}."


def try_out(
    solutions: NotebookNode,
    graded: Sequence[Exercise],
    known: Known,
    kernels: Kernels,
    workers: int,
) -> list[Fault]:
    """The faults that show when answers are run, in the order of the exercises."""
    kernels.start(2)
    mutants = [(one.exercise, one.code) for one in known.mutants]
    answers = [
        (exercise, code)
        for exercise, code in (*mutants, *known.alternatives.items())
        if has_exercise(solutions, exercise)
    ]
    rows = packed(answers)
    trials = _own(solutions)
    trials |= {f"known {n}": Trial(assemble(solutions, row), FIRST) for n, row in enumerate(rows)}
    other = {f"other {seed}": Trial(solutions, seed, first=TWO_THREADS) for seed in SEEDS}
    found = _run(solutions, kernels, trials, other, workers)
    looked = [_Looked(one, known, rows, found) for one in graded]
    return [fault for one in looked if one.exercise.judge != PERSON for fault in one.faults()]


def _own(solutions: NotebookNode) -> dict[str, Trial]:
    """The answers that every assignment has."""
    stub = student_version(solutions)
    return {f"solution {seed}": Trial(solutions, seed) for seed in SEEDS} | {
        "stub": Trial(stub),
        "hollow": Trial(hollow(solutions)),
        "visible solution": Trial(solutions, visible=True),
        "visible stub": Trial(stub, visible=True),
    }


def _run(
    solutions: NotebookNode,
    kernels: Kernels,
    here: Mapping[str, Trial],
    other: Mapping[str, Trial],
    workers: int,
) -> Found:
    """All of it; what is to be run in the other process too, as so many parts as can be."""
    names = list(here)
    parts = [{name: here[name] for name in names[at::workers]} for at in range(workers)]
    jobs = [(0, part) for part in parts if part] + [(1, dict(other))]
    found: Found = {}
    with ThreadPoolExecutor(workers) as pool:
        try:
            for part in pool.map(lambda job: kernels.run(solutions, job[1], which=job[0]), jobs):
                found |= part
        except BaseException:  # an interrupt: the pool would wait for the end of all of them
            kernels.stop()
            raise
    return found


@dataclass
class _Looked:
    """What came of one exercise."""

    exercise: Exercise
    known: Known
    rows: Sequence[Mapping[str, str]]  # which known answers stood in which notebook
    found: Found

    def faults(self) -> Iterator[Fault]:
        """Everything that is wrong with the exercise."""
        solution = [self.of(f"solution {seed}") for seed in SEEDS]
        for seed, record in zip(SEEDS, solution, strict=True):
            if record["status"] != "passed":
                said = record["reason"] or record["status"]
                yield self.fault(
                    f"its solution fails on seed {seed}: {said}",
                    "repair the solution or the hidden check",
                )
                return
        if not solution[0]["reveals"]:
            yield self.fault(
                "its hidden check reveals nothing; where one check reveals, `assert` alone earns "
                "no points in any other",
                "let it call checks.reveal, or let all of them use `assert` alone",
            )
            return
        yield from self._unstable()
        yield from self._too_kind()
        yield from self._too_strict()
        yield from self._disagreeing()

    def of(self, name: str) -> Record:
        """The record of a trial."""
        return self.found.get((name, self.exercise.id), _SILENT)

    def passes(self, name: str) -> bool:
        """Whether an answer reveals what the solution does on the first seed."""
        record, want = self.of(name), self.of(f"solution {FIRST}")["reveals"]
        return record["status"] == "passed" and not judge(record["reveals"], want)

    def fault(self, what: str, do: str) -> Fault:
        """A fault of this exercise."""
        return Fault(self.exercise.id, what, do)

    def _unstable(self) -> Iterator[Fault]:
        for seed in SEEDS:
            want, got = self.of(f"solution {seed}"), self.of(f"other {seed}")
            said = judge(got["reveals"], want["reveals"]) or got["reason"]
            if said and got["status"] not in ("timed_out", "kernel_died"):
                yield self.fault(
                    f"its solution gives other values when it is run again: seed {seed}, {said}",
                    "let nothing hang on time, on the order of a set, or on unseeded draws",
                )
                return
            if said:
                yield self.fault(f"its solution with two threads: {said}", "repair it")
                return

    def _too_kind(self) -> Iterator[Fault]:
        if self.passes("stub"):
            yield self.fault("its hidden check passes the stub", "reveal what the answer returns")
        if self.passes("hollow"):
            yield self.fault(
                "its hidden check passes an answer whose functions only raise, so it never calls "
                "them",
                "call them, and reveal what they return",
            )
        for mutant in self.known.mutants:
            if mutant.exercise == self.exercise.id and self.passes(self._row(mutant.code)):
                yield self.fault(
                    f"its hidden check passes the mistake '{mutant.name}' ({mutant.misconception})",
                    "reveal a value that this mistake gets wrong",
                )

    def _too_strict(self) -> Iterator[Fault]:
        other = self.known.alternatives.get(self.exercise.id)
        if other is None or self.passes(self._row(other)):
            return
        record, want = self.of(self._row(other)), self.of(f"solution {FIRST}")["reveals"]
        said = record["reason"] or judge(record["reveals"], want)
        yield self.fault(
            f"its hidden check fails a right answer in another style: {said}",
            "reveal only what the task asks for",
        )

    def _row(self, code: str) -> str:
        at = next(n for n, row in enumerate(self.rows) if row.get(self.exercise.id) == code)
        return f"known {at}"

    def _disagreeing(self) -> Iterator[Fault]:
        if self.exercise.judge:
            return
        tried = self.of("visible solution")
        if tried["status"] != "passed":
            yield self.fault(
                f"its visible check ends with an error on the solution: {tried['reason']}",
                "repair it, for learners would see nothing else",
            )
            return
        for answer, right in (("solution", True), ("stub", False)):
            said = [
                one["value"].get("value", "")
                for one in self.of(f"visible {answer}")["reveals"]
                if one["label"] == "verdict"
            ]
            if not said or (" passed" in said[-1]) is right:
                continue
            verdict = said[-1].removeprefix(f"{self.exercise.id} ")
            yield self.fault(
                f"its visible check says of the {answer}: {verdict}",
                "let both checks say the same",
            )
