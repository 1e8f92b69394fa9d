"""What `grade` says before and beside the run; nothing is run here."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytorch_lab.errors import UsageError
from pytorch_lab.grading import grade, grader
from pytorch_lab.grading.notebooks import write
from pytorch_lab.grading.pages.figures import figures
from tests.assignments import cell_of, make_solution, make_submission


@pytest.fixture
def assignment(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(grader, "judge", lambda *args, **more: ({}, ""))
    path = tmp_path / "03_numbers.ipynb"
    write(path, make_solution())
    return path


def graded(assignment: Path, notebooks, **more):
    for student, notebook in notebooks.items():
        write(assignment.parent / "in" / f"{student}.ipynb", notebook)
    out = assignment.parent / "out"
    return grade(assignment.parent / "in", assignment, out, sandbox=False, **more)


def another():
    notebook = make_submission()
    for number in (1, 2, 3):
        cell_of(notebook, f"03-{number}").metadata.nbgrader.grade_id = f"02-{number}"
        notebook.cells.remove(cell_of(notebook, f"03-{number}-check"))
        notebook.cells.remove(cell_of(notebook, f"03-{number}-hidden"))
    return notebook


def test_another_lesson_is_named_once(assignment):
    (assignment.parent / "in").mkdir()
    found = graded(assignment, {"ada": another(), "bob": make_submission()}, seed=1)
    assert found.notes == ["ada handed in another notebook, with the exercises 02.1, 02.2, 02.3"]


def test_the_solutions_as_a_submission_are_looked_at(assignment):
    (assignment.parent / "in").mkdir()
    found = graded(assignment, {"ada": make_solution(), "bob": make_submission()}, seed=1)
    assert found.notes == ["ada handed in the solutions themselves, markers and all"]
    assert {row.student for row in found.rows if "look at it" in row.reason} == {"ada"}
    found.rows = [replace(row, status="passed") for row in found.rows]
    assert {(run.student, run.why) for run in figures(found).odd_runs} == {("ada", "suspicious")}


def test_the_assignment_among_the_submissions_is_refused(assignment):
    (assignment.parent / "handed_in").mkdir()
    write(assignment.parent / "handed_in" / "ada.ipynb", make_submission())
    with pytest.raises(UsageError, match=r"found the assignment 03_numbers.* such as .*/handed_in"):
        grade(assignment.parent, assignment, assignment.parent / "out", sandbox=False)


def test_a_seed_by_chance_is_told_once_and_kept(assignment):
    (assignment.parent / "in").mkdir()
    first = graded(assignment, {"bob": make_submission()})
    assert first.notes == [
        f"the hidden inputs are those of seed {first.seed}, drawn by chance; the gradebook keeps "
        "it for the next runs"
    ]
    again = graded(assignment, {})
    assert (again.seed, again.notes) == (first.seed, [])
    assert graded(assignment, {}, seed=7).seed == 7
    assert graded(assignment, {}).seed == 7
    fresh = grade(assignment.parent / "in", assignment, assignment.parent / "other", sandbox=False)
    assert fresh.seed != first.seed


def test_no_kernel_may_use_more_memory_than_there_is(assignment, monkeypatch):
    (assignment.parent / "in").mkdir()
    asked = []
    monkeypatch.setattr(
        grader,
        "judge",
        lambda assigned, *a, **m: (asked.append(assigned.memory_bytes), ({}, ""))[1],
    )
    found = graded(assignment, {"bob": make_submission()}, seed=1, memory="900T")
    assert asked[0] < 900 << 40
    assert found.notes[0].startswith("--memory 900T is more than this machine has; a kernel may")
    assert graded(assignment, {}, seed=1, memory="64M").notes == []
    assert asked[1] == 64 << 20
    graded(assignment, {}, seed=1, memory="900T", dask="tcp://elsewhere")  # not this machine's
    assert asked[2] == 900 << 40
