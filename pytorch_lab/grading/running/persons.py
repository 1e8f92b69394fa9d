"""What a person has to mark, or to look at before its points count."""

from collections.abc import Mapping, Sequence

from nbformat import NotebookNode

from pytorch_lab.grading.authoring.assignment import Exercise
from pytorch_lab.grading.authoring.foreign import without_reveals
from pytorch_lab.grading.authoring.release import student_source
from pytorch_lab.grading.notebooks import facts
from pytorch_lab.grading.running.suspicion import suspicion

Settled = dict[str, tuple[str, str]]  # by exercise: its status and the reason


def for_a_person(
    by_hand: Sequence[Exercise],
    instructor: NotebookNode,
    answers: Mapping[str, Sequence[tuple[int, NotebookNode]]],
) -> Settled:
    """How the exercises that a person marks stand before one has.

    Args:
        by_hand: these exercises.
        instructor: the notebook of solutions.
        answers: the student's answer cells with their numbers, by grade_id.
    """
    cells = {known.grade_id: cell for cell in instructor.cells if (known := facts(cell))}
    made: Settled = {}
    for exercise in by_hand:
        cell, handed_in = cells[exercise.check], answers.get(exercise.check, [])
        known = facts(cell)
        stub = student_source(cell).strip()
        if known is None or not known.is_answer:
            made[exercise.id] = "needs_person", "marked by a person"
        elif not handed_in:
            made[exercise.id] = "missing", f"the cell {exercise.check} is not in the notebook"
        elif all(theirs.source.strip() == stub for _, theirs in handed_in):
            made[exercise.id] = "not_attempted", "the answer is still the stub"
        else:
            made[exercise.id] = "needs_person", "marked by a person"
    return made


def why_a_person(instructor: NotebookNode, overlaid: Sequence[NotebookNode]) -> str:
    """Why a person must look before tests that judge in the kernel count; "" if none must.

    Args:
        instructor: the adopted assignment.
        overlaid: the cells of the student's overlaid notebook.
    """
    code = [cell for cell in instructor.cells if cell.cell_type == "code"]
    checks = [
        without_reveals(cell.source) for cell in code if (known := facts(cell)) and known.is_check
    ]
    others = [cell.source for cell in code if not ((known := facts(cell)) and known.is_check)]
    for cell in overlaid:
        role = cell.metadata["pytorch_lab"]
        if role["role"] not in ("own", "answer"):
            continue
        if found := suspicion([cell.source], checks, [*others, *checks]):
            return (
                f"cell {role['number']} {found}, and the tests run in the same kernel; look at "
                "it, and give the points by hand"
            )
    return ""
