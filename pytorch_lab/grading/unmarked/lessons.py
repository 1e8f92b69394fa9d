"""For authors: a lesson run from top to bottom and saved as learners get it.

Outputs are kept, because they are what is seen on GitHub and what nbval compares. What only tells
of the author's machine is not: timings, widget state and the random ids of live widgets, which
would hide their pictures, and the folders in which packages lie. A home or temporary folder
anywhere else is an error, for somebody has to decide what the cell should show instead.
"""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

import pytorch_lab
from pytorch_lab.errors import NotebookError
from pytorch_lab.grading.notebooks import read, write
from pytorch_lab.grading.trouble import one_line
from pytorch_lab.grading.unmarked.execution import error_of, execute

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
EXPECTED = "raises-exception"
_PACKAGES = re.compile(r"[~/][^\s:'\"<>\x1b]*/site-packages/")
_BASE64 = re.compile(r"base64,[A-Za-z0-9+/=]+")
_HOMES = re.compile(r"(/home/|/Users/|[A-Z]:\\Users\\)[^/\\\s'\"]+")


def run(notebook: Path, *, timeout_cell: int = 600) -> None:
    """Run a lesson in a fresh kernel, and save it with clean outputs.

    Args:
        notebook: the lesson, which is replaced in one step when all is well, else left as it was.
        timeout_cell: seconds that one cell may run.

    Raises:
        NotebookError: it is not a notebook, a cell raised without the tag `raises-exception` or
            did not raise with it, or an output names a home or temporary folder.

    Example:
        >>> run(Path("no_such.ipynb"))
        Traceback (most recent call last):
        pytorch_lab.errors.NotebookError: expected a notebook at no_such.ipynb, ...
    """
    ran = read(notebook)
    code = [(n, cell) for n, cell in enumerate(ran.cells, 1) if cell.cell_type == "code"]
    for _, cell in code:
        cell.update(outputs=[], execution_count=None)
    execute(ran, notebook.parent, name=notebook, timeout_cell=timeout_cell)
    for number, cell in code:
        _refuse_surprise(number, cell, notebook)
        cell.outputs = [_cleaned(output) for output in cell.outputs]
        _refuse_folders(number, cell, notebook)
        cell.metadata.pop("execution", None)
        cell.metadata.pop("ExecuteTime", None)
    for count, cell in enumerate((cell for _, cell in code if cell.source.strip()), 1):
        _count(cell, count)
    ran.metadata.pop("widgets", None)
    # The kernel adds its exact version, which differs between machines.
    ran.metadata["language_info"] = {"name": "python"}
    write(notebook, ran)


def _refuse_surprise(number: int, cell: NotebookNode, notebook: Path) -> None:
    error, expected = error_of(cell), EXPECTED in cell.metadata.get("tags", [])
    if error and not expected:
        raise NotebookError(
            f"expected cell {number} of {notebook} to run, but it raised {one_line(error)}; "
            f"mend it, or tag it {EXPECTED} if the lesson is about that error."
        )
    if expected and not error:
        raise NotebookError(
            f"expected cell {number} of {notebook} to raise, because it has the tag {EXPECTED}, "
            "but it ran; take the tag off, or break the cell again."
        )


def _cleaned(output: NotebookNode) -> NotebookNode:
    """An output without live widget ids, and with packages named as if they lay nowhere."""
    if "data" in output:
        output.data.pop(WIDGET_VIEW, None)
    return _shortened(output)


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return _without_checkout(_PACKAGES.sub("site-packages/", value))
    if isinstance(value, dict):
        for key, inner in value.items():
            value[key] = _shortened(inner)
        return value
    return [_shortened(inner) for inner in value] if isinstance(value, list) else value


def _without_checkout(text: str) -> str:
    """A text in which the files of this package are named from the package's folder on."""
    folder, home = Path(pytorch_lab.__file__).parents[1], Path.home()
    text = text.replace(f"{folder}/", "")
    if folder.is_relative_to(home):  # IPython writes the home folder as ~
        text = text.replace(f"~/{folder.relative_to(home)}/", "")
    return text


def _refuse_folders(number: int, cell: NotebookNode, notebook: Path) -> None:
    for text in _texts(cell.outputs):
        folder = _private_folder(_BASE64.sub("", text))
        if folder:
            raise NotebookError(
                f"expected outputs that look the same on every machine, got the folder {folder} "
                f"in cell {number} of {notebook}; show a name without its folder, or nothing."
            )


def _private_folder(text: str) -> str:
    """The first folder in a text that exists on the author's machine only."""
    for folder in {str(Path.home()), tempfile.gettempdir()} - {"/"}:
        if re.search(re.escape(folder) + r"(?![\w.-])", text):
            return folder
    found = _HOMES.search(text)
    return found[0] if found else ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not str(key).startswith("image/") or key == "image/svg+xml":
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _count(cell: NotebookNode, count: int) -> None:
    """Number a cell; a cell that was empty for the kernel too keeps its place in the row."""
    cell.execution_count = count
    for output in cell.outputs:
        if output.output_type == "execute_result":
            output.execution_count = count
