"""The visible checks without a browser: `pytorch-lab check NOTEBOOK`.

The notebook is run from top to bottom in its own folder, past errors; each `lab.exercise(...)` cell
shows its verdict in a MIME type of ours, which is what is reported here. An exercise whose cell
showed none is reported with the error that kept it from it.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from pytorch_lab.errors import NotebookError
from pytorch_lab.grading.notebooks import facts, read
from pytorch_lab.grading.trouble import one_line
from pytorch_lab.grading.unmarked.execution import Stopped, error_of, execute

MIME = "application/vnd.pytorch-lab.verdict+json"
STATES = ("open", "failed", "raised", "passed")
_CALL = re.compile(
    r"^\s*(?:lab|checks)\.exercise\(\s*(?:id\s*=\s*)?[\"']([^\"']+)[\"']", re.MULTILINE
)


@dataclass(frozen=True)
class Verdict:
    """What an exercise's visible check says."""

    exercise: str
    state: str
    message: str


def check(notebook: Path, *, timeout_cell: int = 120) -> list[Verdict]:
    """Run a notebook, and collect the verdicts of its exercises in their order.

    Args:
        notebook: the learner's notebook, which is only read.
        timeout_cell: seconds after which a cell is interrupted.

    Raises:
        NotebookError: it is not a notebook, or holds no exercise.

    Example:
        >>> check(Path("no_such.ipynb"))
        Traceback (most recent call last):
        pytorch_lab.errors.NotebookError: expected a notebook at no_such.ipynb, ...
    """
    ran = read(notebook)
    asked = [
        (exercise, cell)
        for cell in ran.cells
        if cell.cell_type == "code"
        for exercise in _CALL.findall(cell.source)
    ]
    if not asked:
        raise NotebookError(
            f'expected exercises, cells with lab.exercise("..."), in {notebook}, found none; '
            "give a notebook of the folder exercises."
        )
    for cell in ran.cells:
        if cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
    stopped = ""
    try:
        execute(ran, notebook.parent, name=notebook, timeout_cell=timeout_cell, go_on=True)
    except Stopped as error:
        stopped = str(error)
    return [_verdict(exercise, cell, ran, stopped) for exercise, cell in asked]


def _verdict(exercise: str, cell: NotebookNode, ran: NotebookNode, stopped: str) -> Verdict:
    answer = next(
        (
            error
            for other in ran.cells
            if (known := facts(other)) and known.is_answer and known.exercise == exercise
            if (error := error_of(other)) and not error.startswith("NotImplementedError")
        ),
        "",
    )
    for output in cell.outputs:
        shown = output.get("data", {}).get(MIME)
        if not isinstance(shown, dict) or shown.get("exercise") != exercise:
            continue
        state, message = str(shown.get("state")), str(shown.get("message") or "")
        if state == "open" and answer:
            break  # it looks unanswered because the answer raised
        if state in STATES:
            return Verdict(exercise, state, message)
    why = answer or error_of(cell) or stopped or "its cell showed no verdict"
    return Verdict(exercise, "raised", one_line(why))
