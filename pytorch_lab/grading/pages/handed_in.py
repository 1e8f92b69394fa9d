"""A student's notebook as it was handed in, ready to be shown: bounded, and only of known parts.

Cell metadata, widget state and outputs of unknown kinds stay behind; what is left is a notebook
that nbconvert takes, in which each cell says what it is and where a verdict belongs.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import nbformat
from nbformat import NotebookNode

from pytorch_lab.grading.authoring.assignment import Exercise
from pytorch_lab.grading.notebooks import facts

MAX_CELLS, MAX_OUTPUTS = 400, 40  # of a notebook, of a cell
MAX_TEXT = 25_000  # characters of a text; a few thousand fewer are shown, and that it was cut
MAX_PAGE = 8_000_000  # characters of outputs: more, and no browser likes the page
SHOWN = (
    "text/html",
    "image/svg+xml",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "text/markdown",
    "text/latex",
    "text/plain",
)


def handed_in(notebook: NotebookNode, exercises: Sequence[Exercise]) -> NotebookNode:
    """The notebook to show; each cell's metadata is `role`, `exercise` and `verdict_below`.

    Args:
        notebook: as read from the student's file.
        exercises: those of the assignment.

    Example:
        >>> cell = nbformat.v4.new_code_cell("x = 1", metadata={"nbgrader": {
        ...     "grade_id": "03-1", "solution": True}})
        >>> shown = handed_in(nbformat.v4.new_notebook(cells=[cell]),
        ...                   [Exercise("03.1", ("03-1",), "03-1-hidden", 1.0)])
        >>> shown.cells[0].metadata
        {'role': 'answer', 'exercise': '03.1', 'verdict_below': True}
    """
    # Where no answer is known to belong to a test, the verdict stands below the test.
    owner = {cell: e.id for e in exercises for cell in e.answers or (e.check,)}
    made = nbformat.v4.new_notebook()
    last: dict[str, NotebookNode] = {}
    left, missing = MAX_PAGE, 0
    for number, cell in enumerate(notebook.cells):
        role, exercise = _role(cell, owner)
        if role == "check" and not exercise and _says_nothing(cell.source):
            continue
        if number >= MAX_CELLS and not exercise:
            missing += 1
            continue
        shown = _cell(cell, number)
        shown.metadata.update(role=role, exercise=exercise, verdict_below=False)
        if "outputs" in shown and left > 0:
            shown.outputs, left = _within(_outputs(cell), left)
        made.cells.append(shown)
        if exercise:
            last[exercise] = shown
    for cell in last.values():
        cell.metadata.verdict_below = True
    if missing:
        said = f"… {missing:,} more cells are not shown."
        made.cells.append(nbformat.v4.new_raw_cell(said, id="more", metadata={"role": "more"}))
    return made


def _role(cell: NotebookNode, owner: dict[str, str]) -> tuple[str, str]:
    """What a cell is on the page, and to which exercise its answer belongs."""
    known = facts(cell)
    if known is None:
        return "other", ""
    exercise = owner.get(known.grade_id, "")
    if exercise and known.is_answer:
        return "answer", exercise
    return ("check" if known.locked and cell.cell_type == "code" else "other"), exercise


def _says_nothing(source: str) -> bool:
    """Whether a cell is all comment, as a hidden check is for students."""
    return all(line.strip().startswith("#") or not line.strip() for line in source.split("\n"))


def _cell(cell: NotebookNode, number: int) -> Any:
    if cell.cell_type == "code":
        return nbformat.v4.new_code_cell(cell.source, id=f"cell-{number}")
    if cell.cell_type == "markdown":
        attachments = cell.get("attachments")
        given = {"attachments": attachments} if _are_pictures(attachments) else {}
        return nbformat.v4.new_markdown_cell(cell.source, id=f"cell-{number}", **given)
    return nbformat.v4.new_raw_cell(cell.source, id=f"cell-{number}")


def _are_pictures(attachments: Any) -> bool:
    return isinstance(attachments, dict) and all(
        isinstance(data, dict) and all(isinstance(text, str) for text in data.values())
        for data in attachments.values()
    )


def _outputs(cell: NotebookNode) -> Iterator[NotebookNode]:
    """The outputs that are of a known form; a stranger's file may hold anything."""
    outputs = cell.get("outputs")
    for output in outputs[:MAX_OUTPUTS] if isinstance(outputs, list) else ():
        kind = output.get("output_type") if isinstance(output, dict) else None
        if kind == "stream":
            said = _joined(output.get("text"))[:MAX_TEXT]
            yield nbformat.v4.new_output("stream", name="stdout", text=said)
        elif kind == "error":
            told = "\n".join(_joined(line) for line in _list(output.get("traceback")))
            said = told or f"{output.get('ename')}: {output.get('evalue')}"
            yield nbformat.v4.new_output("stream", name="stderr", text=said[:MAX_TEXT])
        elif kind in ("display_data", "execute_result") and isinstance(output.get("data"), dict):
            data = {mime: _joined(output["data"].get(mime)) for mime in SHOWN}
            known = {mime: _cut(mime, text) for mime, text in data.items() if text}
            yield nbformat.v4.new_output("display_data", known)


def _cut(mime: str, text: str) -> str:
    """The start of a text; half a picture would be none."""
    return text[:MAX_TEXT] if mime in ("text/plain", "text/latex", "text/markdown") else text


def _joined(said: Any) -> str:
    parts = said if isinstance(said, list) else [said]
    return "".join(part for part in parts if isinstance(part, str))


def _list(said: Any) -> list[Any]:
    return said if isinstance(said, list) else []


def _within(outputs: Iterator[NotebookNode], left: int) -> tuple[list[NotebookNode], int]:
    """The outputs that there is room for, and the room that is left; below 0 it is said."""
    made = []
    for output in outputs:
        left -= _size(output)
        if left < 0:
            said = "… more output is left out: it is too large for a page."
            made.append(nbformat.v4.new_output("stream", name="stdout", text=said))
            break
        made.append(output)
    return made, left


def _size(output: NotebookNode) -> int:
    return len(output.get("text", "")) + sum(map(len, output.get("data", {}).values()))
