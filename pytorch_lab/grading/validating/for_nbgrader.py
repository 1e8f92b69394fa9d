"""Our assignments for a course that is graded with nbgrader.

nbgrader's verdict is whether a test cell raised. So its source notebooks are ours with hidden
checks that compare in the kernel what they reveal, with the values that the solution reveals on one
seed. Students get the same notebook as always, made by `release`.

What nbgrader cannot know is lost there: values compared outside of the kernel, a sandbox, and the
author's own stubs, for it has only one.
"""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from pytorch_lab.checks.asserting import packed
from pytorch_lab.checks.regions import lines
from pytorch_lab.errors import NotebookError
from pytorch_lab.grading.authoring.assignment import exercises
from pytorch_lab.grading.authoring.foreign import is_foreign
from pytorch_lab.grading.notebooks import facts, read, write
from pytorch_lab.grading.running.trials import Kernels, Trial


def for_nbgrader(
    solutions: Sequence[Path], course: Path, *, seed: int = 0, sandbox: bool = True
) -> list[Path]:
    """Write `source/<name>/<name>.ipynb` of an nbgrader course for each notebook of solutions.

    Args:
        solutions: notebooks of solutions.
        course: the course's folder.
        seed: what the hidden checks draw their inputs from.
        sandbox: run the solutions in the sandbox.

    Returns:
        The files written.

    Raises:
        NotebookError: a solution does not pass its own hidden check.

    Example:
        >>> for_nbgrader([Path("no_such.ipynb")], Path("course"))
        Traceback (most recent call last):
        pytorch_lab.errors.NotebookError: expected a notebook at no_such.ipynb, ...
    """
    given = [(path, read(path)) for path in solutions]
    made = []
    with Kernels(sandbox, timeout_cell=300) as kernels:
        kernels.start(1)
        for path, notebook in given:
            if is_foreign(notebook):
                raise NotebookError(
                    f"expected hidden checks that reveal values in {path}, found only tests that "
                    "judge themselves; nbgrader takes this notebook as it is."
                )
            reveals = _reveals(notebook, path, kernels, seed)
            target = course / "source" / path.stem / path.name
            write(target, asserting_version(notebook, reveals, seed))
            made.append(target)
    return made


def _reveals(
    notebook: NotebookNode, path: Path, kernels: Kernels, seed: int
) -> dict[str, list[Any]]:
    """What each hidden check reveals of the solution, by its grade_id."""
    found = kernels.run(notebook, {"": Trial(notebook, seed)})
    made: dict[str, list[Any]] = {}
    for exercise in exercises(notebook, path):
        record = found["", exercise.id]
        if record["status"] != "passed" or not record["reveals"]:
            why = record["reason"] or "it revealed nothing"
            raise NotebookError(
                f"expected the solution of {exercise.id} in {path} to pass its hidden check, got "
                f"{record['status']}: {why}; try 'pytorch-lab validate'."
            )
        made[exercise.check] = record["reveals"]
    return made


def asserting_version(
    solution: NotebookNode, reveals: Mapping[str, Sequence[Any]], seed: int
) -> NotebookNode:
    r"""The notebook of solutions with hidden checks that judge themselves.

    Args:
        solution: the notebook of solutions, which is only read.
        reveals: what each hidden check reveals of it, by its grade_id.
        seed: on which seed.

    Example:
        >>> import nbformat
        >>> check = nbformat.v4.new_code_cell(
        ...     "### BEGIN HIDDEN TESTS\nchecks.reveal('n', n)\n### END HIDDEN TESTS",
        ...     metadata={"nbgrader": {"grade_id": "03-1-hidden", "grade": True, "points": 1}})
        >>> notebook = nbformat.v4.new_notebook(cells=[check])
        >>> made = asserting_version(notebook, {"03-1-hidden": []}, 0)
        >>> made.cells[0].source.split("\n")[-4:-1]
        ["checks.reveal('n', n)", 'checks.end()', 'from pytorch_lab import checks']
    """
    made = copy.deepcopy(solution)
    for cell in made.cells:
        known = facts(cell)
        if known and known.grade_id in reveals:
            cell.source = _asserting(cell.source, packed(reveals[known.grade_id]), seed)
        elif known and known.is_answer:
            told = lines(cell.source, known.grade_id)
            cell.source = "\n".join(line.text for line in told if line.region != "STUB")
        if cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
    return made


def _asserting(source: str, expected: str, seed: int) -> str:
    """A hidden check within which `checks` compares."""
    told = lines(source, "the hidden check")
    marked = [at for at, line in enumerate(told) if line.is_marker]
    rows = [line.text for line in told]
    begin = [
        "import warnings",
        "from pytorch_lab.checks.asserting import Asserting",
        'warnings.simplefilter("ignore")  # nbgrader takes a warning for a failure',
        f'checks = Asserting("{expected}", {seed})',
    ]
    end = ["checks.end()", "from pytorch_lab import checks"]
    return "\n".join(
        [
            *rows[: marked[0] + 1],
            *begin,
            *rows[marked[0] + 1 : marked[-1]],
            *end,
            *rows[marked[-1] :],
        ]
    )
