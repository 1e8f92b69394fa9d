"""Notebooks made of given answers."""

import pytest

from pytorch_lab.errors import UsageError
from pytorch_lab.grading.authoring.mutants import assemble
from pytorch_lab.grading.authoring.release import student_version
from tests.assignments import cell_of


def test_only_the_answers_given_differ_from_the_students_version(solution):
    made = assemble(solution, {"03.2": "\ndef closest(x):\n    return 0\n"})
    assert cell_of(made, "03-2").source == "def closest(x):\n    return 0"
    cell_of(made, "03-2").source = cell_of(student_version(solution), "03-2").source
    assert made == student_version(solution)


@pytest.mark.parametrize("exercise", ["03.9", "03.1-task", "03.1-hidden"])
def test_an_exercise_that_is_not_there_is_told(solution, exercise):
    with pytest.raises(
        UsageError, match=f"expected exercises of the notebook, got '{exercise}', for"
    ):
        assemble(solution, {exercise: ""})
