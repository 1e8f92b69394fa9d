"""Wrong answers that people really give, and how to hand them in.

`exercises/mutants/03_modules.py` lists them as `MUTANTS`, with `ALTERNATIVES`, second correct
solutions in another style. Every mutant must fail both checks, with its own message.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from pytorch_lab.errors import UsageError
from pytorch_lab.grading.authoring.release import student_version
from pytorch_lab.grading.notebooks import facts, grade_id


@dataclass(frozen=True)
class Mutant:
    """One named wrong answer to an exercise.

    Attributes:
        exercise: as people say it, "03.2".
        name: a short name, unique within the exercise.
        misconception: what someone believes who answers like this.
        says: what the visible check's message must contain.
        code: the whole answer cell.
        hint: what a student reads whose answer does the same; by default a question about the
            misconception.

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
    hint: str = ""

    @property
    def question(self) -> str:
        """What a student reads whose answer does the same."""
        return self.hint or f"Does your answer take for granted that {self.misconception}?"


@dataclass(frozen=True)
class Known:
    """The answers known for an assignment."""

    mutants: Sequence[Mutant] = ()
    alternatives: Mapping[str, str] = field(default_factory=dict)


def known_answers(assignment: Path, given: Path | None = None) -> Known:
    """The wrong and the other right answers known for an assignment.

    Args:
        assignment: the notebook of solutions; looked for is `mutants/<its name>.py` in its folder
            and in the one above.
        given: the file, if it lies elsewhere.

    Returns:
        Nothing known, if no file was given and there is none.

    Raises:
        UsageError: the file cannot be run, or lists no mutants.

    Example:
        >>> known_answers(Path("no_such.ipynb"))
        Known(mutants=(), alternatives={})
    """
    places = [folder / "mutants" / f"{assignment.stem}.py" for folder in assignment.parents][:2]
    file = given or next((place for place in places if place.is_file()), None)
    if file is None:
        return Known()
    names: dict[str, Any] = {"__name__": file.stem}
    try:
        exec(compile(file.read_text("utf-8"), file, "exec"), names)
    except Exception as error:  # noqa: BLE001 - the file is an author's, and may raise anything
        raise UsageError(
            f"expected a Python file of mutants at {file}, but it raised "
            f"{type(error).__name__}: {error}; see exercises/mutants for how they look."
        ) from None
    mutants = names.get("MUTANTS")
    if not mutants or not all(isinstance(one, Mutant) for one in mutants):
        raise UsageError(
            f"expected a list MUTANTS of Mutant(...) in {file}, found none; "
            "see exercises/mutants for how it looks."
        )
    return Known(mutants, names.get("ALTERNATIVES", {}))


def packed(answers: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Answers to several exercises in as few notebooks as can hold them, one of each in one.

    Example:
        >>> packed([("03.1", "a"), ("03.1", "b"), ("03.2", "c")])
        [{'03.1': 'a', '03.2': 'c'}, {'03.1': 'b'}]
    """
    made: list[dict[str, str]] = []
    for exercise, answer in answers:
        free = next((one for one in made if exercise not in one), None)
        if free is None:
            made.append(free := {})
        free[exercise] = answer
    return made


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


def has_exercise(solution: NotebookNode, exercise: str) -> bool:
    """Whether a notebook has the answer cell of an exercise, so that `assemble` can fill it.

    Example:
        >>> import nbformat
        >>> has_exercise(nbformat.v4.new_notebook(), "03.1")
        False
    """
    known = [found for cell in solution.cells if (found := facts(cell))]
    return any(one.is_answer and one.grade_id == grade_id(exercise) for one in known)
