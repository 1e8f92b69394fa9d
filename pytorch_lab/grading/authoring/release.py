"""The student's version of a notebook: stubs for answers, no hidden test, no output, no trace.

`exercises/solutions/NN.ipynb` is the one source of an exercise; `exercises/NN.ipynb` is made from
it here, byte for byte the same every time. Before anything is written the result is searched for
the lines of the solution and of the hidden checks (`leaks`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from pytorch_lab.checks.regions import student_text
from pytorch_lab.errors import NotebookError, UsageError
from pytorch_lab.grading.authoring.assignment import exercises, place, validate
from pytorch_lab.grading.authoring.foreign import adopt
from pytorch_lab.grading.authoring.leaks import refuse_leaks
from pytorch_lab.grading.notebooks import Facts, facts, read, write

TEXT_STUB = ("YOUR ANSWER HERE",)

_NOT_OURS = ("execution", "ExecuteTime", "collapsed", "scrolled")


def release(solutions: Sequence[Path], out: Path) -> list[Path]:
    """Write the student's version of each notebook of solutions into a folder.

    Args:
        solutions: notebooks like `exercises/solutions/03_modules.ipynb`.
        out: the folder for the students' notebooks, which keep their names.

    Returns:
        The files written, in the order of `solutions`.

    Raises:
        NotebookError: a notebook cannot be released, or its solution would leak; nothing is
            written then.

    Example:
        >>> release([Path("no_such.ipynb")], Path("out"))
        Traceback (most recent call last):
        pytorch_lab.errors.NotebookError: expected a notebook at no_such.ipynb, ...
    """
    targets = [out / path.name for path in solutions]
    for path, target in zip(solutions, targets, strict=True):
        if targets.count(target) > 1:
            raise UsageError(
                f"expected notebooks of different names, got two called {path.name}; "
                "release them into different folders."
            )
        if target.resolve() == path.resolve():
            raise UsageError(
                f"expected another folder than that of the solutions, got {out}; "
                f"the student's version would replace {path}."
            )
    given = [read(path) for path in solutions]
    for path, notebook in zip(solutions, given, strict=True):
        exercises(adopt(notebook), path)  # what could not be graded is not given out
    made = [student_version(one, path) for one, path in zip(given, solutions, strict=True)]
    for target, notebook in zip(targets, made, strict=True):
        write(target, notebook)
    return targets


def student_version(solution: NotebookNode, name: object = "the notebook") -> NotebookNode:
    r"""The student's version of a notebook of solutions, as a new notebook.

    Args:
        solution: the notebook with answers and hidden tests.
        name: what messages call it.

    Example:
        >>> cell = nbformat.v4.new_code_cell(
        ...     "### BEGIN SOLUTION\nx = 1\n### END SOLUTION",
        ...     metadata={"nbgrader": {"grade_id": "03-1", "solution": True}})
        >>> print(student_version(nbformat.v4.new_notebook(cells=[cell])).cells[0].source)
        # YOUR CODE HERE
        raise NotImplementedError()
    """
    validate(solution, name)
    released = nbformat.v4.new_notebook(metadata=_metadata(solution))
    for number, cell in enumerate(solution.cells, 1):
        released.cells.append(_student_cell(cell, number, place(number, cell, name)))
    _refuse_same_ids(released, name)
    refuse_leaks(solution, released, name)
    return released


def _metadata(solution: NotebookNode) -> dict[str, Any]:
    """The notebook's metadata without the traces of the machine that saved it."""
    kept = {k: v for k, v in solution.metadata.items() if k not in ("widgets", "language_info")}
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return kept | {"kernelspec": kernel, "language_info": {"name": "python"}}


def _student_cell(cell: NotebookNode, number: int, where: str) -> NotebookNode:
    known = facts(cell)
    made: Any = nbformat.from_dict(
        {
            "cell_type": cell.cell_type,
            "id": cell.get("id") or (known.grade_id if known else f"cell-{number}"),
            "metadata": {k: v for k, v in cell.metadata.items() if k not in _NOT_OURS},
            "source": student_source(cell, where),
        }
    )
    if cell.cell_type == "code":
        made.update(outputs=[], execution_count=None)
    elif "attachments" in cell:
        made.attachments = cell.attachments
    _lock(made, known)
    return made


def _lock(cell: NotebookNode, known: Facts | None) -> None:
    """Let JupyterLab itself say what may be edited; grading restores locked cells anyway."""
    if known is not None:
        cell.metadata["deletable"] = False
        if not known.is_answer:
            cell.metadata["editable"] = False


def student_source(cell: NotebookNode, where: str = "the cell") -> str:
    """What the student gets to read of a cell."""
    if cell.cell_type == "code":
        return student_text(cell.source, where)
    return student_text(cell.source, where, TEXT_STUB)


def _refuse_same_ids(released: NotebookNode, name: object) -> None:
    seen: dict[str, int] = {}
    for number, cell in enumerate(released.cells, 1):
        if cell.id in seen:
            raise NotebookError(
                f"expected a different cell id in every cell of {name}, got {cell.id!r} in cells "
                f"{seen[cell.id]} and {number}; remove one of them and add the cell anew."
            )
        seen[cell.id] = number
