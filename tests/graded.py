"""A class as it is after a run, made by hand: what every page of the grader is made of."""

from pathlib import Path

from nbformat import NotebookNode

from pytorch_lab.grading.authoring.assignment import exercises
from pytorch_lab.grading.book.gradebook import Verdict
from pytorch_lab.grading.book.marks import GradedClass, Row
from pytorch_lab.grading.notebooks import read

PASSED = Verdict("passed", "")
DIFFERS = "twice a vector[1]: expected 48.213, got 17.654 (2 of 3 values differ)"
MISTAKEN = Verdict(
    "failed",
    DIFFERS,
    misconception="triples: three is as good as two",
    hint="Does your answer take for granted that three is as good as `two`?",
    shown="03.1 ✗ not yet: it must be twice as much. twice(1): expected 2, got 3",
    seconds=0.2,
)


def graded_class(
    assignment: Path,
    said: dict[str, dict[str, Verdict]],
    notebooks: dict[str, NotebookNode],
    *,
    sandbox: bool = True,
) -> GradedClass:
    """A class with these verdicts by student and exercise; what is not said was passed."""
    there = exercises(read(assignment), assignment)
    verdicts = {
        (student, exercise.id): theirs.get(exercise.id, PASSED)
        for student, theirs in said.items()
        for exercise in there
    }
    points = {exercise.id: exercise.points for exercise in there}
    rows = [
        Row(
            student,
            exercise,
            points[exercise] if verdict.status == "passed" else 0.0,
            points[exercise],
            verdict.status,
            verdict.reason,
        )
        for (student, exercise), verdict in verdicts.items()
    ]
    return GradedClass(assignment, there, rows, verdicts, notebooks, sandbox=sandbox, seed=48213)
