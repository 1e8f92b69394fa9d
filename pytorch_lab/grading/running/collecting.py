"""The verdicts of a run as they come in, settled in the gradebook student by student."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nbformat import NotebookNode

from pytorch_lab.grading.book.gradebook import Gradebook, Verdict
from pytorch_lab.grading.running.nbval_run import Record
from pytorch_lab.grading.running.overlay import ROLE
from pytorch_lab.grading.statuses import NO_KERNEL

Verdicts = dict[tuple[str, str], Verdict]  # by student and exercise

TWO_VERDICTS = Verdict(
    "refused", "the run gave two verdicts for this exercise, so some code wrote one of them"
)


def asked_of(notebooks: Mapping[str, NotebookNode]) -> dict[str, set[str]]:
    """Which exercises of each overlaid notebook are to be judged."""
    return {
        student: {
            known["exercise"]
            for cell in notebook.cells
            if (known := cell.metadata[ROLE])["role"] == "check"
        }
        for student, notebook in notebooks.items()
    }


def is_no_verdict(said: Verdict) -> bool:
    """Whether the machine, and not the student's code, was to blame."""
    return said.status == "kernel_died" and said.reason.startswith(NO_KERNEL)


@dataclass
class Collector:
    """The verdicts of one pytest process, settled in the gradebook student by student."""

    students: list[str]
    keys: dict[str, str]
    book: Gradebook
    explain: Callable[[Record], Verdict]
    heard: Callable[[str, Mapping[str, Verdict], float], None] = lambda *settled: None
    asked: Mapping[str, set[str]] = field(default_factory=dict)  # by student
    verdicts: Verdicts = field(default_factory=dict)  # of all collectors of a run
    current: str | None = None
    since: float = field(default_factory=time.monotonic)

    def hear(self, record: Record) -> None:
        """Take one record; a second one for the same exercise takes the verdict away."""
        at = record["submission"]
        if not at.isdecimal() or int(at) >= len(self.students):
            return
        student = self.students[int(at)]
        if student != self.current:
            self.settle()
        self.current = student
        place = student, record["exercise"]
        said = self.explain(record)
        self.verdicts[place] = said if place not in self.verdicts else TWO_VERDICTS

    def settle(self) -> None:
        """Keep the verdicts on whom was heard of last, if all are there; else it runs again."""
        if self.current is None:
            return
        theirs = {
            e: said for (student, e), said in self.verdicts.items() if student == self.current
        }
        whole = self.asked.get(self.current, set()) <= theirs.keys()
        if whole and not any(map(is_no_verdict, theirs.values())):
            self.book.keep(self.keys[self.current], self.current, theirs)
        now = time.monotonic()
        self.heard(self.current, theirs, now - self.since)
        self.current, self.since = None, now
