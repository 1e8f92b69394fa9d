"""What is taken from a student's notebook, and what is not. No kernel runs here."""

import nbformat
import pytest

from pytorch_lab.checks.reveals import VALUE_MIME
from pytorch_lab.errors import NotebookError
from pytorch_lab.grading.authoring.assignment import exercises
from pytorch_lab.grading.authoring.release import student_source
from pytorch_lab.grading.notebooks import facts
from pytorch_lab.grading.running.overlay import MIME, overlay
from tests.assignments import cell_of, code, make_submission


def run(made):
    """What would be run: (role, exercise, first line of the source)."""
    return [
        (known["role"], known["exercise"], cell.source.split("\n")[0])
        for cell in made.notebook.cells
        if (known := cell.metadata["pytorch_lab"])
    ]


PLAIN = [
    ("given", "", "import torch"),
    ("answer", "03.1", "def twice(x):"),
    ("check", "03.1", "from pytorch_lab import checks"),
    ("answer", "03.2", "def closest(x):"),
    ("check", "03.2", "from pytorch_lab import checks"),
    ("answer", "03.3", "def average(numbers):"),
    ("check", "03.3", "from pytorch_lab import checks"),
]


def test_the_mime_type_is_that_of_reveal():
    assert MIME == VALUE_MIME


def test_answers_are_laid_between_the_instructors_cells(solution):
    made = overlay(solution, make_submission())
    assert run(made) == PLAIN
    assert (made.status, made.notes, made.worth_running) == ({}, [], True)


def test_hidden_checks_come_from_the_instructor_with_the_seed(solution):
    made = overlay(solution, make_submission(), seed=7)
    assert "checks.seed(7)\n" in made.notebook.cells[2].source
    assert "twice(draw.randn(3))" in made.notebook.cells[2].source


def test_only_sources_of_answers_are_taken(solution):
    def forge(notebook):
        cell_of(notebook, "03-1-hidden").source = "print('passed')"
        cell_of(notebook, "03-1-hidden").metadata["nbgrader"]["points"] = 100
        cell_of(notebook, "03-2-hidden").cell_type = "markdown"
        notebook.cells.remove(cell_of(notebook, "03-3-hidden"))
        cell_of(notebook, "03-1").outputs = [nbformat.v4.new_output("stream", text="x")]
        cell_of(notebook, "03-1").metadata |= {"lock": 1, "collapsed": True}
        notebook.metadata["kernelspec"] = {"name": "bogus", "display_name": "x"}

    honest, forged = make_submission(), make_submission(forge)
    assert overlay(solution, forged).notebook == overlay(solution, honest).notebook


def test_the_order_of_the_students_cells_does_not_matter(solution):
    assert run(overlay(solution, make_submission(lambda n: n.cells.reverse()))) == PLAIN


def test_cells_of_the_students_own_stay_after_the_cell_they_stood_after(solution):
    def add(notebook):
        for after, source in [
            (None, "first = 1"),
            ("setup", "helper = 2"),
            ("03-1", "test = 3"),
            ("03-2-check", "more = 4"),
            ("03-3-hidden", "last = 5"),
        ]:
            at = next((i + 1 for i, c in enumerate(notebook.cells) if c.id == after), 0)
            notebook.cells.insert(at, code(source))

    expected = list(PLAIN)
    for before, source in [(7, "last = 5"), (4, "more = 4"), (2, "test = 3"), (1, "helper = 2")]:
        expected.insert(before, ("own", "", source))
    expected.insert(0, ("own", "", "first = 1"))
    assert run(overlay(solution, make_submission(add))) == expected


def test_an_edited_open_cell_runs_after_the_instructors(solution):
    def edit(notebook):
        setup = next(c for c in notebook.cells if c.id == "setup")
        setup.source = "import math"

    assert run(overlay(solution, make_submission(edit)))[:3] == [
        ("given", "", "import torch"),
        ("own", "", "import math"),
        ("answer", "03.1", "def twice(x):"),
    ]


def test_a_notebook_without_cell_ids_gives_the_same(solution):
    def strip(notebook):
        for cell in notebook.cells:
            del cell["id"]

    assert run(overlay(solution, make_submission(strip))) == PLAIN


def test_missing_answers_are_told(solution):
    def delete(notebook):
        notebook.cells.remove(cell_of(notebook, "03-1"))
        cell_of(notebook, "03-2").cell_type = "markdown"

    made = overlay(solution, make_submission(delete))
    assert made.status == {
        "03.1": ("missing", "the answer cell 03-1 is not in the notebook"),
        "03.2": ("missing", "the answer cell 03-2 was made a markdown cell"),
    }
    assert [step for step in run(made) if step[0] != "given"] == PLAIN[-2:]


def test_a_split_answer_is_run_in_order_and_told(solution):
    def split(notebook):
        at = notebook.cells.index(cell_of(notebook, "03-1"))
        notebook.cells.insert(at + 1, code("# the rest", "03-1", solution=True, locked=False))

    made = overlay(solution, make_submission(split))
    assert run(made)[1:3] == [PLAIN[1], ("answer", "03.1", "# the rest")]
    assert made.notes_of == {"03.1": ["2 cells carry the id 03-1; they were run in their order"]}


MARKERS = [
    "# NBVAL_SKIP",
    "   ##NBVAL_RAISES_EXCEPTION",
    "# NBVAL_IGNORE_OUTPUT",
    "# NBVAL_CHECK_OUTPUT",
    "# PYTEST_VALIDATE_IGNORE_OUTPUT",
]
TAGS = ["nbval-skip", "nbval-raises-exception", "raises-exception", "skip-execution"]


@pytest.mark.parametrize("marker", MARKERS)
def test_control_comments_in_an_answer_are_refused(solution, marker):
    made = overlay(solution, make_submission(e2=f"def closest(x):\n    return x\n{marker}"))
    status, reason = made.status["03.2"]
    assert status == "refused"
    assert f"(cell 8) holds the control comment {marker.strip(' #')}, which would" in reason
    assert not any(step[1] == "03.2" for step in run(made))


@pytest.mark.parametrize("tag", TAGS)
def test_control_tags_on_an_answer_are_refused(solution, tag):
    def add_tag(notebook):
        cell_of(notebook, "03-2").metadata["tags"] = ["fine", tag]

    made = overlay(solution, make_submission(add_tag))
    assert made.status["03.2"][0] == "refused"
    assert f"holds the tag {tag}" in made.status["03.2"][1]


@pytest.mark.parametrize("tags", [["remember"], "nbval-skip", 7, [7, None], None])
def test_other_tags_and_odd_ones_are_ignored(solution, tags):
    def add_tag(notebook):
        cell_of(notebook, "03-2").metadata["tags"] = tags

    assert overlay(solution, make_submission(add_tag)).status == {}


def test_words_about_nbval_are_no_markers(solution):
    answer = "def closest(x):  # see NBVAL_SKIP\n    # nbval is nice, and pytest too\n    return x"
    assert overlay(solution, make_submission(e2=answer)).status == {}


def test_a_cell_of_their_own_with_a_marker_is_left_out_and_told(solution):
    def add(notebook):
        notebook.cells.insert(2, code("# NBVAL_SKIP\nx = 1"))

    made = overlay(solution, make_submission(add))
    assert run(made) == PLAIN
    assert made.notes == [
        "the student's cell 3 was not run: it holds the control comment NBVAL_SKIP"
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "  \n",
        "# only words\n\n# more",
        "def closest(x):\n    # YOUR CODE HERE  \n\n    raise NotImplementedError()\n\n",
    ],
)
def test_an_empty_answer_or_the_stub_is_not_attempted(solution, answer):
    made = overlay(
        solution,
        make_submission(
            e1="# YOUR CODE HERE\nraise NotImplementedError()",
            e2=answer,
            e3=stub_of(solution, "03-3"),
        ),
    )
    assert [c.metadata["pytorch_lab"].get("untouched") for c in made.notebook.cells[1:]] == [
        True
    ] * 6
    assert not made.worth_running


def stub_of(solution, grade_id):
    return student_source(cell_of(solution, grade_id))


def test_a_cell_marked_by_a_person_is_the_students(solution):
    """nbgrader's manually graded cells are answers too, and never the instructor's here."""
    written = code(
        "### BEGIN SOLUTION\nsecret = 1\n### END SOLUTION",
        "essay",
        solution=True,
        locked=False,
        grade=True,
        points=3,
    )
    solution.cells.append(written)
    assert [e.id for e in exercises(solution, "a")] == ["03.1", "03.2", "03.3"]
    theirs = make_submission()
    theirs.cells.append(code("mine = 1", "essay", solution=True, locked=False, grade=True))
    assert run(overlay(solution, theirs))[-1] == ("own", "", "mine = 1")
    assert run(overlay(solution, make_submission())) == PLAIN


def test_a_notebook_that_cannot_be_graded_by_is_refused(solution):
    with pytest.raises(NotebookError, match="expected '### BEGIN SOLUTION' in cell 4"):
        exercises(make_submission(), "theirs")
    second = code("### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS", "03-1-b", grade=True, points=1)
    solution.cells.append(second)
    with pytest.raises(
        NotebookError, match=r"one hidden check for exercise 03\.1 in a, got 03-1-h"
    ):
        exercises(solution, "a")
    second.metadata["nbgrader"]["grade_id"] = "03-9-hidden"
    with pytest.raises(NotebookError, match="expected an answer cell for 03-9-hidden in a, found"):
        exercises(solution, "a")
    solution.cells.pop()
    cell_of(solution, "03-2-hidden").source = "assert True"
    with pytest.raises(NotebookError, match="BEGIN HIDDEN TESTS' in cell 03-2-hidden of a, found"):
        exercises(solution, "a")
    solution.cells = [c for c in solution.cells if (f := facts(c)) is None or not f.grade]
    with pytest.raises(NotebookError, match="expected graded cells in a, found none; give the"):
        exercises(solution, "a")
