"""From what the plugin recorded of an exercise to the verdict that is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytorch_lab.grading.authoring.assignment import Exercise
from pytorch_lab.grading.authoring.foreign import KERNEL, partial_credit
from pytorch_lab.grading.book.gradebook import Verdict
from pytorch_lab.grading.running.misconceptions import Misconceptions
from pytorch_lab.grading.running.nbval_run import Record

IN_KERNEL = "its test judged in the kernel"


@dataclass(frozen=True)
class Explainer:
    """Makes verdicts of records.

    Args:
        exercises: those of the assignment.
        reference: what their hidden checks reveal of the solutions.
        misconceptions: names the known mistakes.
    """

    exercises: Sequence[Exercise]
    reference: Mapping[str, Sequence[Any]]
    misconceptions: Misconceptions

    def __call__(self, record: Record) -> Verdict:
        """The verdict, with the name of the mistake and the points of a partial credit.

        Example:
            >>> explain = Explainer([], {}, Misconceptions(list))
            >>> explain({"exercise": "03.1", "status": "passed", "reason": "", "shown": "",
            ...          "seconds": 0.5, "reveals": []}).status
            'passed'
        """
        known = {name: record[name] for name in ("status", "reason", "shown", "seconds")}
        said = Verdict(**known)
        exercise = next((one for one in self.exercises if one.id == record["exercise"]), None)
        if exercise is not None and exercise.judge == KERNEL:
            return self._from_kernel(said, exercise, record["reveals"])
        return self.misconceptions.name(record["exercise"], said, record["reveals"])

    def _from_kernel(self, said: Verdict, exercise: Exercise, reveals: Sequence[Any]) -> Verdict:
        """A test that speaks from inside the kernel: its number, or that it raised nothing."""
        points = partial_credit(reveals, self.reference.get(exercise.id, ()), exercise.points)
        if said.status == "failed" and points:
            reason = f"{points:g} of {exercise.points:g} points; {IN_KERNEL}"
            return said._replace(status="partial", reason=reason, points=points)
        if said.status == "raised" and said.reason.startswith("AssertionError"):
            said = said._replace(status="failed")
        reason = "; ".join(filter(None, [said.reason, IN_KERNEL]))
        return said._replace(reason=reason)
