"""What a person has to mark, or to look at before its points count."""

from collections.abc import Mapping, Sequence

from nbformat import NotebookNode

from pytorch_lab.grading.authoring.assignment import Exercise
from pytorch_lab.grading.authoring.foreign import split
from pytorch_lab.grading.authoring.release import student_source
from pytorch_lab.grading.notebooks import facts
from pytorch_lab.grading.running.bindings import bound, looked_up
from pytorch_lab.grading.running.suspicion import Scan, trees

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
    checks, answers, given = _told_apart(instructor)
    theirs = [c for c in overlaid if c.metadata["pytorch_lab"]["role"] in ("own", "answer")]
    scan = Scan([cell.source for cell in theirs], checks, given, answers)
    for cell in theirs:
        if found := scan(cell.source):
            number = cell.metadata["pytorch_lab"]["number"]
            return (
                f"cell {number} {found}, which may be quite innocent, but the tests run in the "
                "same kernel and could be won by it; look at it, and give the points by hand"
            )
    return ""


def _told_apart(instructor: NotebookNode) -> tuple[list[str], list[str], list[str]]:
    """The sources of an adopted assignment's tests, of its answers, and of its other cells."""
    checks, answers, given = [], [], []
    for cell in instructor.cells:
        known = facts(cell)
        if cell.cell_type != "code":
            continue
        if known and known.is_check:
            checks.append(split(cell.source)[0])
        else:
            (answers if known and known.is_answer else given).append(cell.source)
    return checks, answers, given


def tell_untouched(
    instructor: NotebookNode,
    overlaid: Sequence[NotebookNode],
    answers: Mapping[str, Sequence[tuple[int, NotebookNode]]],
) -> None:
    """Mark the adopted tests whose answers are all still the stubs, as `overlay` marks ours.

    A test hangs on the answers that bind a name which it looks up; or else, if there are none, on
    those between the test before it and itself.

    Args:
        instructor: the adopted assignment.
        overlaid: the cells of the student's overlaid notebook, which are changed.
        answers: the student's answer cells with their numbers, by grade_id.
    """
    binds: dict[str, set[str]] = {}
    stubs: dict[str, str] = {}
    near: list[str] = []
    tests = {c.metadata["pytorch_lab"]["number"]: c for c in overlaid if "test" in _role(c)}
    for number, cell in enumerate(instructor.cells, 1):
        known = facts(cell)
        if cell.cell_type == "code" and known and known.is_answer:
            stubs[known.grade_id] = student_source(cell).strip()
            binds[known.grade_id] = {name for tree in trees([cell.source]) for name in bound(tree)}
            near.append(known.grade_id)
        elif known and known.is_check:
            if number in tests and _role(tests[number])["test"]:
                test = trees([_role(tests[number])["test"]])
                used = {name for tree in test for name in looked_up(tree)}
                hangs = [grade_id for grade_id, names in binds.items() if names & used] or near
                sources = [
                    (cell.source.strip(), stubs[grade_id])
                    for grade_id in hangs
                    for _, cell in answers.get(grade_id, [])
                ]
                same = bool(sources) and all(mine == stub for mine, stub in sources)
                _role(tests[number])["untouched"] = same
            near = []


def _role(cell: NotebookNode) -> NotebookNode:
    return cell.metadata["pytorch_lab"]
