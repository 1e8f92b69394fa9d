"""Lessons as their authors save them. The kernels here load no torch, so they start fast."""

import tempfile
from pathlib import Path

import nbformat
import pytest

from pytorch_lab.errors import NotebookError
from pytorch_lab.grading import run
from pytorch_lab.grading.notebooks import read, write
from tests.assignments import code

WIDGET = """\
view = {"application/vnd.jupyter.widget-view+json": {"model_id": "0af3"}}
display(view | {"text/plain": "a picture", "text/html": "<img alt='a picture'>"}, raw=True)
"""
RAISES = """\
import re
re.compile("(")
"""
FROM_A_PACKAGE = """\
import nbformat, pytorch_lab.errors, os
print(nbformat.__file__)
print(pytorch_lab.errors.__file__)
print(os.environ["PYTORCH_LAB_PROGRESS"] != "x")
"""


def lesson(*sources: str, tags=()):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A lesson")])
    for number, source in enumerate(sources, 1):
        cell = code(source)
        cell.id = f"cell-{number}"
        cell.metadata["tags"] = list(tags)
        notebook.cells.append(cell)
    return notebook


def test_a_lesson_is_saved_with_clean_outputs(tmp_path: Path, progress_file: Path):
    notebook = lesson("1 + 1", "", WIDGET, FROM_A_PACKAGE, RAISES)
    notebook.cells[5].metadata["tags"] = ["raises-exception"]
    notebook.cells[1].execution_count = 99
    notebook.cells[1].metadata["execution"] = {"iopub.status.busy": "2026"}
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {}}
    write(tmp_path / "a.ipynb", notebook)

    run(tmp_path / "a.ipynb")

    ran = read(tmp_path / "a.ipynb")
    nbformat.validate(ran)
    first, empty, widget, package, raises = ran.cells[1:]
    assert [c.execution_count for c in ran.cells[1:]] == [1, None, 2, 3, 4]
    assert first.outputs[0].data == {"text/plain": "2"}
    assert first.outputs[0].execution_count == 1
    assert first.metadata == {"tags": []}
    assert empty.outputs == []
    assert sorted(widget.outputs[0].data) == ["text/html", "text/plain"]
    assert package.outputs[0].text.split("\n")[:3] == [
        "site-packages/nbformat/__init__.py",
        "pytorch_lab/errors.py",
        "True",
    ]
    assert raises.outputs[0].ename in ("error", "PatternError")
    assert ran.metadata["language_info"] == {"name": "python"}
    assert "widgets" not in ran.metadata
    assert not progress_file.exists()

    before = (tmp_path / "a.ipynb").read_bytes()
    run(tmp_path / "a.ipynb")
    assert (tmp_path / "a.ipynb").read_bytes() == before


@pytest.mark.parametrize(
    ("source", "tags", "says"),
    [
        ("1 / 0", [], r"expected cell 2 of .*a\.ipynb to run, but it raised ZeroDivisionError: d"),
        ("1 + 1", ["raises-exception"], "expected cell 2 of .* to raise, because it has the tag"),
        (
            "import tempfile; tempfile.gettempdir()",
            [],
            f"got the folder {tempfile.gettempdir()} in cell 2",
        ),
        (
            "import warnings; warnings.warn('x')",
            [],
            "got the folder .* in cell 2 of .*; show a name",
        ),
        (
            "display({'text/html': '<a href=\"/home/ann/x\">'}, raw=True)",
            [],
            "the folder /home/ann in",
        ),
        ("import os; os._exit(0)", [], r"to live through cell 2 of .*a\.ipynb, but it died; does"),
    ],
)
def test_what_no_learner_should_see_is_refused(tmp_path: Path, source, tags, says):
    write(tmp_path / "a.ipynb", lesson(source, tags=tags))
    before = (tmp_path / "a.ipynb").read_bytes()
    with pytest.raises(NotebookError, match=says):
        run(tmp_path / "a.ipynb")
    assert (tmp_path / "a.ipynb").read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == ["a.ipynb"]


def test_a_cell_that_never_ends_is_told(tmp_path: Path):
    write(tmp_path / "a.ipynb", lesson("x = 1", "while True: pass"))
    with pytest.raises(
        NotebookError, match=r"expected cell 3 of .*a\.ipynb to end within 2 s, but"
    ):
        run(tmp_path / "a.ipynb", timeout_cell=2)


def test_pictures_may_hold_any_letters(tmp_path: Path):
    picture = "display({'image/png': 'aGk=/tmp/', 'text/html': 'base64,x/tmp/y'}, raw=True)"
    write(tmp_path / "a.ipynb", lesson(picture))
    run(tmp_path / "a.ipynb")
    assert read(tmp_path / "a.ipynb").cells[1].outputs
