"""Wrong answers that people really give, and how to hand them in.

`exercises/mutants/03_modules.py` lists them as `MUTANTS`, with `ALTERNATIVES`, second correct
solutions in another style. Every mutant must fail both checks, with its own message.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from nbformat import NotebookNode

from pytorch_lab.errors import UsageError
from pytorch_lab.grading.notebooks import facts, grade_id
from pytorch_lab.grading.release import student_version


@dataclass(frozen=True)
class Mutant:
    """One named wrong answer to an exercise.

    Attributes:
        exercise: as people say it, "03.2".
        name: a short name, unique within the exercise.
        misconception: what someone believes who answers like this.
        says: what the visible check's message must contain.
        code: the whole answer cell.

    Example:
        >>> Mutant("03.2", "plain_list", "a list registers its layers", says="nn.ModuleList",
        ...        code="layers = []").name
        'plain_list'
    """

    exercise: str
    name: str
    misconception: str
    says: str
    code: str


def assemble(solution: NotebookNode, answers: Mapping[str, str]) -> NotebookNode:
    r"""The notebook that a student hands in who gives these answers and leaves the rest open.

    Args:
        solution: the notebook of solutions.
        answers: the source of the answer cell for each exercise answered, by "03.2".

    Raises:
        UsageError: the notebook has no answer cell for one of the exercises.

    Example:
        >>> import nbformat
        >>> cell = nbformat.v4.new_code_cell(
        ...     "### BEGIN SOLUTION\nx = 1\n### END SOLUTION",
        ...     metadata={"nbgrader": {"grade_id": "03-1", "solution": True}})
        >>> notebook = nbformat.v4.new_notebook(cells=[cell])
        >>> assemble(notebook, {"03.1": "x = 2"}).cells[0].source
        'x = 2'
    """
    notebook = student_version(solution)
    cells = {known.grade_id: cell for cell in notebook.cells if (known := facts(cell))}
    for exercise, source in answers.items():
        cell = cells.get(grade_id(exercise))
        known = facts(cell) if cell is not None else None
        if cell is None or known is None or not known.is_answer:
            raise UsageError(
                f"expected exercises of the notebook, got {exercise!r}, for which it has no "
                f"answer cell {grade_id(exercise)!r}; check the number."
            )
        cell.source = source.strip("\n")
    return notebook
