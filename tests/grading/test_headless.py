"""The visible checks of a notebook, run without a browser."""

from pathlib import Path

import nbformat
import pytest

from pytorch_lab.checks.verdict import WORDS
from pytorch_lab.errors import NotebookError
from pytorch_lab.grading import check
from pytorch_lab.grading.notebooks import write
from pytorch_lab.grading.unmarked.headless import MIME, STATES
from pytorch_lab.widgets.exercise import VERDICT_MIME
from tests.assignments import code

SETUP = """\
import os
import pytorch_lab as lab
from pytorch_lab import checks
assert os.path.exists("data.txt"), "the kernel's folder is the notebook's"
"""
CHECK = """\
@checks.visible("{0}", hints=("a", "b", "c"))
def check(expect):
    expect.equal(answer_{1}(2), 4, "It must double.", name="answer(2)")
"""
ANSWERS = {
    "91.1": "def answer_1(x):\n    return 2 * x",
    "91.2": "def answer_2(x):\n    return x",
    "91.3": "def answer_3(x):\n    raise NotImplementedError()",
    "91.4": "def answer_4(x):\n    return x.nope",
    "91.5": "def answer_5(x)\n    return 2 * x",
    "91.6": "raise NotImplementedError()",
}


def make_notebook(answers):
    notebook = nbformat.v4.new_notebook(cells=[code(SETUP)])
    for exercise, answer in answers.items():
        name = exercise.replace(".", "-")
        source = CHECK.format(exercise, exercise[-1])
        notebook.cells += [
            code(answer, name, solution=True, locked=False),
            code(f'{source}\n\nlab.exercise("{exercise}")', f"{name}-check"),
        ]
    return notebook


def test_what_is_read_is_what_the_panel_says():
    assert MIME == VERDICT_MIME
    assert set(STATES) == set(WORDS)


@pytest.mark.heavy
def test_the_verdict_of_each_exercise(tmp_path: Path, progress_file: Path):
    notebook = make_notebook(ANSWERS)
    notebook.cells += [code('lab.exercise("91.8")'), code('lab.exercise("91.1");\nNone')]
    write(tmp_path / "a.ipynb", notebook)
    (tmp_path / "data.txt").write_text("")
    before = (tmp_path / "a.ipynb").read_bytes()

    found = check(tmp_path / "a.ipynb")

    assert [(v.exercise, v.state) for v in found] == [
        ("91.1", "passed"),
        ("91.2", "failed"),
        ("91.3", "open"),
        ("91.4", "raised"),
        ("91.5", "raised"),
        ("91.6", "open"),
        ("91.8", "raised"),
        ("91.1", "raised"),
    ]
    says = [v.message for v in found]
    assert "It must double" in says[1]
    assert "line 2" in says[3]
    assert says[4].startswith("SyntaxError: expected ':'")
    assert says[6].startswith("UsageError: ")
    assert says[7] == "its cell showed no verdict"
    assert (tmp_path / "a.ipynb").read_bytes() == before
    assert not progress_file.exists()
    assert not (tmp_path / "progress.json").exists()


@pytest.mark.heavy
def test_a_kernel_that_dies_and_a_cell_that_never_ends(tmp_path: Path):
    (tmp_path / "data.txt").write_text("")
    notebook = make_notebook({"91.1": "while True: pass"})
    notebook.cells += [code("import os\nos._exit(0)"), code('lab.exercise("91.1")')]
    write(tmp_path / "a.ipynb", notebook)
    first, second = check(tmp_path / "a.ipynb", timeout_cell=12)
    assert (first.state, first.message) == ("raised", "KeyboardInterrupt")
    assert second.state == "raised"


def test_a_notebook_without_exercises_is_refused(tmp_path: Path):
    write(tmp_path / "a.ipynb", nbformat.v4.new_notebook(cells=[code("x = 1")]))
    with pytest.raises(
        NotebookError, match=r"expected exercises, .* in .*a\.ipynb, found none; give"
    ):
        check(tmp_path / "a.ipynb")
