"""What an instructor's notebook must be: which exercises it holds, and which cells they are.

    03-2          the answer cell, between ### BEGIN SOLUTION and ### END SOLUTION
    03-2-check    the visible check, locked
    03-2-hidden   the hidden check, locked, with the points, between ### BEGIN HIDDEN TESTS
                  and ### END HIDDEN TESTS

A notebook that is not like this is refused before anything is made of it. One that was made for
nbgrader alone becomes like this by `foreign.adopt`; each of its graded cells is then an exercise of
its own, called by its grade_id, or by the heading above it where nbgrader made the id up.

What an assignment of your own needs: those three cells for each exercise, of which the visible
check may be left out. A visible check says `@checks.visible("03.2")` for the answer `03-2`, or,
for an answer called `mean`, `@checks.visible("mean")` in the cell `mean-check`; the hidden one is
then called `mean-hidden`.
"""

import re
from dataclasses import dataclass

from nbformat import NotebookNode

from pytorch_lab.checks.regions import lines
from pytorch_lab.errors import NotebookError
from pytorch_lab.grading.authoring.foreign import judged_by
from pytorch_lab.grading.notebooks import Facts, facts

_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
_NO_NAME = re.compile(r"[^\w .:()-]")  # no markup, and nothing that a table's cell must quote
_MADE_UP = re.compile(r"cell-[0-9a-f]{8,}")  # what nbgrader calls a cell that nobody named
_VALID_ID = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Exercise:
    """One graded exercise of a notebook."""

    id: str
    answers: tuple[str, ...]  # the grade_ids of its answer cells
    check: str  # the grade_id of its hidden check
    points: float
    judge: str = ""  # "kernel" or "person", where no revealed values can be compared


def place(number: int, cell: NotebookNode, notebook: object) -> str:
    """How a message names a cell."""
    known = facts(cell)
    return f"cell {number}{f' ({known.grade_id})' if known else ''} of {notebook}"


def validate(notebook: NotebookNode, name: object) -> None:
    """Refuse a notebook whose cells nbgrader could not tell apart or give points for."""
    seen: dict[str, int] = {}
    for number, cell in enumerate(notebook.cells, 1):
        where, known = place(number, cell, name), facts(cell)
        _validate_regions(cell, known, where)
        if known is None:
            continue
        if not _VALID_ID.fullmatch(known.grade_id):
            raise NotebookError(
                f"expected a grade_id of letters, digits, '-' and '_' in cell {number} of {name}, "
                f"got {known.grade_id!r}; write exercise 03.2 as 03-2."
            )
        if known.grade_id in seen:
            raise NotebookError(
                f"expected every grade_id once in {name}, got {known.grade_id!r} in cells "
                f"{seen[known.grade_id]} and {number}; give one of them another."
            )
        seen[known.grade_id] = number
        if known.grade and known.points is None:
            raise NotebookError(
                f"expected points, a number from 0 up, in the metadata of {where}, found none; "
                'add "points" to its "nbgrader" entry.'
            )


def _validate_regions(cell: NotebookNode, known: Facts | None, where: str) -> None:
    regions = {line.region for line in lines(cell.source, where)} - {""}
    answer = known is not None and known.is_answer
    if "SOLUTION" in regions and not answer:
        raise NotebookError(
            f"expected '### BEGIN SOLUTION' in answer cells only, found it in {where}; "
            "set solution: true and locked: false in its nbgrader metadata."
        )
    if answer and "SOLUTION" not in regions:
        raise NotebookError(
            f"expected '### BEGIN SOLUTION' in {where}, found none; "
            "put the answer between ### BEGIN SOLUTION and ### END SOLUTION."
        )
    if answer and "HIDDEN TESTS" in regions:
        raise NotebookError(
            f"expected hidden tests in a locked cell, found them in the answer cell {where}; "
            "the student's own answer would replace them."
        )


def exercises(notebook: NotebookNode, name: object) -> list[Exercise]:
    """The graded exercises of an instructor's notebook, in its order.

    Raises:
        NotebookError: the notebook cannot be graded, and why.
    """
    validate(notebook, name)
    known = [found for found in map(facts, notebook.cells) if found]
    elsewhere = _judged_elsewhere(notebook)
    if elsewhere:
        return elsewhere
    checks: dict[str, Facts] = {}
    for check in (found for found in known if found.is_check):
        if check.exercise in checks:
            raise NotebookError(
                f"expected one hidden check for exercise {check.exercise} in {name}, got "
                f"{checks[check.exercise].grade_id} and {check.grade_id}; make them one cell."
            )
        checks[check.exercise] = check
    if not checks:
        raise NotebookError(
            f"expected graded cells in {name}, found none; give the notebook of the solutions, "
            "whose hidden checks have grade: true in their nbgrader metadata."
        )
    return [_exercise(check, known, notebook, name) for check in checks.values()]


def _judged_elsewhere(notebook: NotebookNode) -> list[Exercise]:
    """The exercises of an adopted notebook: none of its cells reveals a student's value."""
    made: list[Exercise] = []
    heading = ""
    for cell in notebook.cells:
        known = facts(cell)
        if cell.cell_type == "markdown" and (found := _HEADING.search(cell.source)):
            heading = _NO_NAME.sub("", found[1]).strip()[:40]
        if known and (judge := judged_by(cell)):
            name = _named(known.grade_id, heading, {one.id for one in made})
            made.append(Exercise(name, (), known.grade_id, known.points or 0.0, judge))
    return made


def _named(grade_id: str, heading: str, taken: set[str]) -> str:
    """The id itself; for one that nbgrader made up, the heading above, which people know."""
    if not _MADE_UP.fullmatch(grade_id) or not heading:
        return grade_id
    names = [heading, *(f"{heading} ({number})" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)


def _which_to_rename(check: Facts, known: list[Facts]) -> str:
    """How a hidden check finds its answer: the answer before it has another name, or is none."""
    before = [f for f in known[: known.index(check)] if f.is_answer]
    if before and not any(f.is_check and f.exercise == before[-1].exercise for f in known):
        return f"rename the test {before[-1].grade_id}-hidden, after the answer before it"
    return f"give the cell of exercise {check.exercise} its grade_id and solution: true"


def _exercise(check: Facts, known: list[Facts], notebook: NotebookNode, name: object) -> Exercise:
    answers = tuple(f.grade_id for f in known if f.is_answer and f.exercise == check.exercise)
    if not answers:
        raise NotebookError(
            f"expected an answer cell for {check.grade_id} in {name}, found none; "
            f"{_which_to_rename(check, known)}."
        )
    cell = next(c for c in notebook.cells if (f := facts(c)) and f.grade_id == check.grade_id)
    if not any(line.region == "HIDDEN TESTS" for line in lines(cell.source, check.grade_id)):
        raise NotebookError(
            f"expected '### BEGIN HIDDEN TESTS' in cell {check.grade_id} of {name}, found none; "
            "give the notebook of the solutions, not the student's."
        )
    return Exercise(check.exercise, answers, check.grade_id, check.points or 0.0)
