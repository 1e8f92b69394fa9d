"""The student's version holds the stub and nothing of the solution."""

import base64
import json
import re
import urllib.parse
import zlib
from pathlib import Path

import nbformat
import pytest

from pytorch_lab.errors import NotebookError, UsageError
from pytorch_lab.grading.authoring.leaks import refuse_leaks
from pytorch_lab.grading.authoring.release import release, student_source, student_version
from pytorch_lab.grading.notebooks import read, write
from tests.assignments import cell_of


@pytest.fixture
def edit(solution):
    """Change the source of one cell of the solution."""

    def change(grade_id, old, new):
        cell = next(c for c in solution.cells if c.id == grade_id)
        assert old in cell.source
        cell.source = cell.source.replace(old, new)
        return solution

    return change


def source_of(notebook, cell_id):
    return next(c for c in notebook.cells if c.id == cell_id).source


def test_answers_become_stubs_where_they_stood(solution):
    made = student_version(solution)
    assert source_of(made, "03-1") == "# YOUR CODE HERE\nraise NotImplementedError()"
    assert source_of(made, "03-2") == (
        "def closest(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
    )


def test_an_author_may_give_another_stub(solution):
    assert source_of(student_version(solution), "03-3") == (
        "def average(numbers):\n    # it forgets how many there are\n    return sum(numbers)"
    )


def test_several_answers_and_stubs_in_one_cell():
    cell = nbformat.v4.new_code_cell(
        "class A:\n    ### BEGIN SOLUTION\n    x = 1\n    ### END SOLUTION\n\n"
        "    ### BEGIN SOLUTION\n    y = 2\n    ### END SOLUTION\n    ### BEGIN STUB\n"
        "    # y = 3\n    #\n    # # a comment\n    ### END STUB\n    z = 4"
    )
    assert student_source(cell) == (
        "class A:\n    # YOUR CODE HERE\n    raise NotImplementedError()\n\n"
        "    y = 3\n    \n    # a comment\n    z = 4"
    )


def test_answers_in_words_become_a_line_to_replace():
    cell = nbformat.v4.new_markdown_cell("Why?\n\n### BEGIN SOLUTION\nSo.\n### END SOLUTION")
    assert student_source(cell) == "Why?\n\nYOUR ANSWER HERE"


def test_hidden_tests_are_gone_and_visible_checks_stay(solution):
    made = student_version(solution)
    assert source_of(made, "03-1-hidden") == "# Hidden check of exercise 03.1"
    assert source_of(made, "03-1-check") == source_of(solution, "03-1-check")


def test_outputs_counts_and_the_authors_machine_are_gone(solution):
    for cell in solution.cells:
        cell.metadata["execution"] = {"iopub.execute_input": "2026-01-01"}
        if cell.cell_type == "code":
            cell.execution_count = 7
            cell.outputs = [nbformat.v4.new_output("stream", text="secret")]
    solution.metadata = {"widgets": {"x": 1}, "language_info": {"name": "python", "version": "3.9"}}
    made = student_version(solution)
    assert "secret" not in json.dumps(made)
    assert all(not c.outputs and c.execution_count is None for c in made.cells if "outputs" in c)
    assert all("execution" not in c.metadata for c in made.cells)
    assert made.metadata["language_info"] == {"name": "python"}
    assert "widgets" not in made.metadata


def test_only_answers_can_be_edited_and_no_graded_cell_deleted(solution):
    made = student_version(solution)
    for cell in made.cells:
        known = cell.metadata.get("nbgrader")
        if known is None:
            assert "deletable" not in cell.metadata
            continue
        assert cell.metadata["deletable"] is False
        assert cell.metadata.get("editable", True) is known["solution"]


def test_releasing_twice_gives_the_same_bytes_and_ids(tmp_path: Path, assignment: Path):
    (first,) = release([assignment], tmp_path / "a")
    (second,) = release([assignment], tmp_path / "b")
    assert first == tmp_path / "a" / assignment.name
    assert first.read_bytes() == second.read_bytes()
    assert [c.id for c in read(first).cells] == [c.id for c in read(assignment).cells]
    nbformat.validate(read(first))


def test_cells_without_ids_get_the_same_ones_each_time(solution):
    for cell in solution.cells:
        del cell["id"]
    first, second = student_version(solution), student_version(solution)
    assert [c.id for c in first.cells] == [c.id for c in second.cells]
    assert first.cells[3].id == "03-1"


@pytest.mark.parametrize(
    ("cell", "old", "new", "says"),
    [
        ("03-1", "### END SOLUTION", "", r"expected '### END SOLUTION' in cell 4 \(03-1\) of"),
        ("03-1", "### BEGIN SOLUTION", "", "expected '### BEGIN SOLUTION' before line 4 of"),
        ("03-1", "def twice", "### BEGIN SOLUTION\ndef twice", "cannot stand inside each other"),
        ("03-1", "def twice", "### END HIDDEN TESTS\ndef twice", "remove '### END HIDDEN TESTS'"),
        (
            "03-1",
            "SOLUTION",
            "STUB",
            r"expected '### BEGIN SOLUTION' in cell 4 \(03-1\).*found none",
        ),
        ("03-1", "SOLUTION", "HIDDEN TESTS", "BEGIN SOLUTION"),
        ("03-1-check", "raise", "### BEGIN SOLUTION\n### END SOLUTION\nraise", "answer cells only"),
        ("03-3", "#     return sum(numbers)", "return 1", "to begin with '# ', got 'return 1'"),
        (
            "03-2",
            "    ### END SOLUTION",
            "    ### END SOLUTION\n### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS",
            "expected hidden tests in a locked cell",
        ),
    ],
)
def test_faults_of_an_author_are_told(edit, cell, old, new, says):
    with pytest.raises(NotebookError, match=says):
        student_version(edit(cell, old, new))


def test_ids_and_points_are_looked_at(solution):
    known = solution.cells[3].metadata["nbgrader"]
    known["grade_id"] = "03.1"
    with pytest.raises(NotebookError, match=r"got '03\.1'; write exercise 03\.2 as 03-2"):
        student_version(solution)
    known["grade_id"] = "03-2"
    with pytest.raises(NotebookError, match=r"every grade_id once in .*'03-2' in cells 4 and 8"):
        student_version(solution)
    known["grade_id"] = "03-1"
    del solution.cells[5].metadata["nbgrader"]["points"]
    with pytest.raises(NotebookError, match=r"expected points, .* cell 6 \(03-1-hidden\)"):
        student_version(solution)
    solution.cells[5].metadata["nbgrader"]["points"] = 1
    solution.cells[0].id = "03-1"
    with pytest.raises(NotebookError, match=r"a different cell id .* '03-1' in cells 1 and 4"):
        student_version(solution)


LEAKS = {
    "in a task": (
        "03-2-task",
        "Write the",
        "Write return x[nearest] after\nnearest = x.abs().argmin()",
    ),
    "in another cell": ("setup", "import torch", "import torch\n# return x[nearest]"),
    "in another answer": ("03-3", "### BEGIN SOLUTION", "# return x[nearest]\n### BEGIN SOLUTION"),
    "as code in its own check": ("03-2-check", "raise", "nearest = x.abs().argmin()\nraise"),
    "a hidden value": (
        "03-1-check",
        "raise",
        'checks.reveal("twice nothing", twice(torch.zeros(0)))\nraise',
    ),
    "in its own cell": ("03-2", "def closest(x):", "nearest  =  x.abs().argmin()\ndef closest(x):"),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_solution_that_would_leak_is_found(edit, leak):
    solution = edit(*LEAKS[leak])
    with pytest.raises(
        NotebookError, match=r"expected no line of cell .* in the student's version"
    ):
        student_version(solution)


def test_leaks_are_found_in_metadata_and_attachments_too(solution):
    solution.cells[0].metadata["note"] = ["see", {"deep": "nearest = x.abs().argmin()"}]
    with pytest.raises(NotebookError, match="in the metadata of cell 1; reword"):
        student_version(solution)
    solution.cells[0].metadata = {}
    solution.metadata["note"] = "nearest = x.abs().argmin()"
    with pytest.raises(NotebookError, match="in the notebook's metadata; reword"):
        student_version(solution)


@pytest.mark.parametrize(
    "told",
    [
        "nearest=x.abs().argmin()",
        "Index: `x.abs( ).min( ) + x[ nearest ]`.",
        "# x.abs().min()+x[nearest]",
    ],
)
def test_spaces_and_return_hide_nothing(edit, told):
    edit("03-2", "return x[nearest]", "return x.abs().min() + x[nearest]")
    with pytest.raises(NotebookError, match=r"in cell 3 \(03-1-task\); reword"):
        student_version(edit("03-1-task", "Write", f"{told}\n\nWrite"))


def test_the_solutions_expression_after_its_end_is_found(edit):
    end = "    ### END SOLUTION"
    edit("03-2", "return x[nearest]", "return x[x.abs().argmin()]")
    with pytest.raises(NotebookError, match=r"in cell 8 \(03-2\); reword"):
        student_version(edit("03-2", end, f"{end}\n    # x[x.abs().argmin()]"))


def test_a_hidden_assert_is_a_secret(edit):
    edit(
        "03-1-hidden",
        'checks.reveal("twice n',
        'assert twice(1234) == 2468\nchecks.reveal("twice n',
    )
    with pytest.raises(NotebookError, match="got 'assert twice"):
        student_version(edit("03-1-task", "Write", "Try `assert twice(1234)==2468`. Write"))


def test_what_could_not_be_graded_is_not_released(tmp_path, solution):
    for cell in solution.cells:
        known = cell.metadata.get("nbgrader", {})
        if known.get("grade_id", "").startswith("03-1") and known.get("solution"):
            known["grade_id"] = "twice"
    write(tmp_path / "it.ipynb", solution)
    with pytest.raises(NotebookError, match="found none; rename the test twice-hidden, after the"):
        release([tmp_path / "it.ipynb"], tmp_path / "out")


def test_hints_stubs_and_common_lines_are_no_leaks(edit):
    edit("03-2-check", "raise", 'hint = "start with `nearest = x.abs().argmin()`"\nraise')
    edit("03-3", "#     return sum(numbers)", "#     return sum(numbers) / len(numbers)")
    edit("03-1", "def twice(x):", "import torch\ndef twice(x):")
    student_version(edit("03-1-task", "Write", "`def twice(x):` is short. Write"))


def test_nothing_is_written_when_one_of_several_is_wrong(tmp_path: Path, assignment, solution):
    broken = tmp_path / "broken.ipynb"
    solution.cells[3].source = "x"
    write(broken, solution)
    with pytest.raises(NotebookError, match=r"of .*broken\.ipynb"):
        release([assignment, broken], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_solutions_themselves_are_never_replaced(tmp_path: Path, assignment: Path):
    before = assignment.read_bytes()
    with pytest.raises(UsageError, match="expected another folder than that of the solutions"):
        release([assignment], assignment.parent / ".")
    with pytest.raises(UsageError, match=r"different names, got two called 03_numbers\.ipynb"):
        release([assignment, tmp_path / assignment.name], tmp_path / "out")
    assert assignment.read_bytes() == before


SECRET = "nearest = x.abs().argmin()"
PACKED = base64.b64encode(zlib.compress(f"answer:\n{SECRET}\n".encode())).decode()
GUISES = {
    "in a sentence": f"First {SECRET}, then index.",
    "as a quoted comment": f"```\n>  # {SECRET}\n```",
    "over two lines": SECRET.replace(" = ", " =\n"),
    "in base64": base64.b64encode(f"\n{SECRET}\n".encode()).decode(),
    "in base64 for addresses": base64.urlsafe_b64encode(f"??>>{SECRET}".encode()).decode(),
    "in base64, broken into lines": "\n".join(re.findall(".{1,9}", PACKED)),
    "compressed": f"![](data:text/plain;base64,{PACKED})",
    "packed twice": base64.b64encode(PACKED.encode()).decode(),
    "as HTML": f"<code>{SECRET.replace('(', '&#40;')}</code>",
    "in an address": f"https://lab.example/?q={urllib.parse.quote(SECRET)}",
}


@pytest.mark.parametrize("guise", GUISES)
def test_a_line_of_twenty_characters_is_found_in_any_guise(solution, guise):
    assert 20 <= len(SECRET) < 30
    cell_of(solution, "03-1-task").source += f"\n\n{GUISES[guise]}"
    with pytest.raises(NotebookError, match=r"got 'nearest = .*' in cell 3 \(03-1-task\); reword"):
        student_version(solution)


def test_attachments_are_unpacked(solution):
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n\xff\xfe" + bytes(range(256))).decode()
    solution.cells[0].attachments = {"a.png": {"image/png": picture}}
    student_version(solution)  # a picture is no text
    solution.cells[0].attachments = {"a.txt": {"text/plain": PACKED}}
    with pytest.raises(NotebookError, match="in the metadata of cell 1; reword"):
        student_version(solution)


def test_outputs_would_be_searched_too(solution):
    shown = nbformat.v4.new_output("stream", text=f"hint: {SECRET}")
    released = student_version(solution)
    released.cells[1].outputs = [shown]
    with pytest.raises(NotebookError, match="in the outputs of cell 2; reword"):
        refuse_leaks(solution, released, "it")
