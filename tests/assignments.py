"""A small assignment, and notebooks that students might hand in for it."""

from collections.abc import Callable
from typing import Any

import nbformat
from nbformat import NotebookNode

from pytorch_lab.grading.authoring.release import student_version
from pytorch_lab.grading.notebooks import facts

ANSWERS = {
    "03.1": """\
### BEGIN SOLUTION
def twice(x):
    return x + x
### END SOLUTION
""",
    "03.2": """\
def closest(x):
    ### BEGIN SOLUTION
    nearest = x.abs().argmin()
    return x[nearest]
    ### END SOLUTION
""",
    "03.3": """\
### BEGIN SOLUTION
def average(numbers):
    return sum(numbers) / len(numbers)
### END SOLUTION

### BEGIN STUB
# def average(numbers):
#     # it forgets how many there are
#     return sum(numbers)
### END STUB
""",
}
HIDDEN = {
    "03.1": """\
draw = checks.draw("03.1")
checks.reveal("twice a vector", twice(draw.randn(3)))
checks.reveal("twice nothing", twice(torch.zeros(0)))
""",
    "03.2": 'checks.reveal("the closest to zero", closest(checks.draw("03.2").randn(7)))\n',
    "03.3": 'checks.reveal("the average", average([1.0, checks.draw("03.3").integer(5, 99)]))\n',
}
POINTS = {"03.1": 1, "03.2": 2, "03.3": 2.5}


def code(source: str, grade_id: str = "", **known: Any) -> NotebookNode:
    """A code cell, with nbgrader's metadata if it has a grade_id."""
    cell = nbformat.v4.new_code_cell(source.rstrip("\n"))
    if grade_id:
        cell.id = grade_id
        cell.metadata["nbgrader"] = {
            "grade_id": grade_id,
            "schema_version": 3,
            "solution": False,
            "grade": False,
            "locked": True,
            "task": False,
        } | known
    return cell


def make_solution() -> NotebookNode:
    """The notebook of solutions: three exercises of the usual four cells each."""
    title = nbformat.v4.new_markdown_cell("# Numbers", id="title")
    setup = code("import torch\nfrom pytorch_lab import checks")
    setup.id = "setup"
    notebook = nbformat.v4.new_notebook(cells=[title, setup])
    for exercise, answer in ANSWERS.items():
        name = exercise.replace(".", "-")
        task = nbformat.v4.new_markdown_cell(f"## {exercise}\n\nWrite the function.")
        task.id = f"{name}-task"
        task.metadata["nbgrader"] = {
            "grade_id": f"{name}-task",
            "schema_version": 3,
            "solution": False,
            "grade": False,
            "locked": True,
            "task": False,
        }
        hidden = (
            f"# Hidden check of exercise {exercise}\n"
            f"### BEGIN HIDDEN TESTS\n{HIDDEN[exercise]}### END HIDDEN TESTS"
        )
        notebook.cells += [
            task,
            code(answer, name, solution=True, locked=False),
            code("raise RuntimeError('visible checks are not graded')", f"{name}-check"),
            code(hidden, f"{name}-hidden", grade=True, points=POINTS[exercise]),
        ]
    return notebook


def make_submission(change: Callable[[NotebookNode], Any] | None = None, **answers: str) -> Any:
    """What a student hands in: right answers, unless `e1=`, `e2=` or `e3=` says another."""
    notebook = student_version(make_solution())
    for exercise, right in ANSWERS.items():
        cell = cell_of(notebook, exercise.replace(".", "-"))
        solved = [
            line for line in right.split("### END SOLUTION")[0].split("\n") if "###" not in line
        ]
        cell.source = answers.get(f"e{exercise[-1]}", "\n".join(solved).strip("\n"))
    if change is not None:
        change(notebook)
    return notebook


def cell_of(notebook: NotebookNode, grade_id: str) -> Any:
    """The cell with a grade_id."""
    return next(c for c in notebook.cells if (f := facts(c)) and f.grade_id == grade_id)
