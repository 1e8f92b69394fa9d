"""A wrong answer is called by the known mistake that reveals the same values."""

from pathlib import Path

import pytest

from pytorch_lab.errors import LabError, UsageError
from pytorch_lab.grading import grade
from pytorch_lab.grading.authoring.mutants import Known, Mutant, known_answers, packed
from pytorch_lab.grading.book.gradebook import Gradebook, Verdict
from pytorch_lab.grading.notebooks import write
from pytorch_lab.grading.running.misconceptions import (
    Misconceptions,
    Signature,
    kept,
    match,
    signatures,
)
from tests.assignments import make_solution, make_submission

MUTANTS = """
from pytorch_lab.grading.authoring.mutants import Mutant

def mutant(exercise, name, code, hint=""):
    return Mutant(exercise, name, f"{name} is right", says="no", code=code, hint=hint)

MUTANTS = [
    mutant("03.1", "adds_one", "def twice(x):\\n    return x + 1"),
    mutant("03.1", "squares", "def twice(x):\\n    return x * x", hint="Two times is no power."),
    mutant("03.2", "farthest", "def closest(x):\\n    return x[x.abs().argmax()]"),
    mutant("03.2", "largest_size", "def closest(x):\\n    return max(x, key=abs)"),
    mutant("03.2", "position", "def closest(x):\\n    return x.abs().argmin()"),
    mutant("03.3", "words", "def average(numbers):\\n    raise ValueError('no: numbers')"),
    mutant("03.3", "twins", "def average(numbers):\\n    return numbers.mean()"),
    mutant("03.3", "twins_too", "def average(numbers):\\n    return numbers.mean() * 1"),
]
"""
CLASS = {
    "ada": {"e1": "def twice(x):\n    one = 1\n    return one + x"},
    "bob": {"e1": "twice = lambda x: x**2", "e2": "def closest(x):\n    return abs(x).argmin()"},
    "cleo": {"e2": "def closest(x):\n    return sorted(x, key=abs)[-1]"},
    "dan": {"e1": "def twice(x):\n    return x - 1", "e2": "def closest(x):\n    return x[0] * 0"},
    "eve": {
        "e3": "def average(numbers):\n    if numbers:\n        raise ValueError('no: numbers')",
        "e1": "def twice(x):\n    raise ValueError('else')",
    },
    "fay": {"e3": "def average(numbers):\n    a = 1\n    return numbers.mean()"},
    "gus": {},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("mistakes")
    write(root / "03_numbers.ipynb", make_solution())
    (root / "mutants").mkdir()
    (root / "mutants/03_numbers.py").write_text(MUTANTS)
    for student, answers in CLASS.items():
        write(root / "in" / f"{student}.ipynb", make_submission(**answers))
    return root


@pytest.fixture(scope="module")
def graded(folder):
    return grade(folder / "in", folder / "03_numbers.ipynb", folder / "out", seed=3)


NAMED = {
    ("ada", "03.1"): ("'adds one'", "adds one: adds_one is right"),
    ("bob", "03.1"): ("'squares'", "squares: squares is right"),
    ("bob", "03.2"): ("'position'", "position: position is right"),
    ("cleo", "03.2"): (
        "'farthest' or 'largest size'",
        "farthest: farthest is right / largest size: largest_size is right",
    ),
    ("eve", "03.3"): ("'words'", "words: words is right"),
}


@pytest.mark.heavy
def test_equal_values_are_called_by_the_mistakes_name(graded):
    found = {place: said for place, said in graded.verdicts.items() if said.misconception}
    assert {place: said.misconception for place, said in found.items()} == {
        place: misconception for place, (_, misconception) in NAMED.items()
    }
    rows = {(row.student, row.exercise): row for row in graded.rows}
    for place, (names, _) in NAMED.items():
        same = "error" if place[0] == "eve" else "values"
        assert rows[place].reason.endswith(f"; the same {same} as the mistake {names}")
    assert found["bob", "03.1"].hint == "Two times is no power."
    assert found["ada", "03.1"].hint == "Does your answer take for granted that adds_one is right?"
    assert rows["ada", "03.1"].status == "failed"
    assert rows["eve", "03.3"].status == "raised"


@pytest.mark.heavy
def test_a_name_changes_no_point_and_other_mistakes_get_none(graded):
    for row in graded.rows:
        assert (row.points > 0) == (row.status == "passed")
        named = (row.student, row.exercise) in NAMED
        assert named == ("the mistake" in row.reason)
    assert all(row.status == "passed" for row in graded.rows if row.student == "gus")


@pytest.mark.heavy
def test_mistakes_are_not_run_again_when_the_gradebook_knows_them(folder, graded, monkeypatch):
    write(folder / "in" / "hal.ipynb", make_submission(e1="def twice(x):\n    return 1 + x"))
    monkeypatch.setattr(
        "pytorch_lab.grading.running.judging.signatures", lambda *a: pytest.fail("again")
    )
    again = grade(folder / "in", folder / "03_numbers.ipynb", folder / "out", seed=3)
    assert again.verdicts["hal", "03.1"].misconception == "adds one: adds_one is right"
    assert graded.rows == [row for row in again.rows if row.student != "hal"]


def test_nothing_is_run_for_a_class_without_a_wrong_answer():
    known = Misconceptions(lambda: pytest.fail("run for nothing"))
    for status in ("passed", "not_attempted", "timed_out", "kernel_died", "refused", "missing"):
        said = Verdict(status, "")
        assert known.name("03.1", said, []) == said


def test_marks_do_not_wait_for_names():
    def broken():
        raise LabError("no")

    said = Verdict("failed", "x: expected 1, got 2")
    assert Misconceptions(broken).name("03.1", said, [1]) == said


def value(number):
    return {"label": "n", "value": {"is": "float", "value": number}}


def test_values_match_within_their_tolerance_and_only_whole():
    mutant = Mutant("03.1", "a", "a", says="a", code="a")
    known = [Signature(mutant, [value(1.0), value(2.0)])]
    assert match("failed", "", [value(1.0), value(2.0 + 1e-9)], known) == [mutant]
    assert match("failed", "", [value(1.0), value(2.1)], known) == []
    assert match("failed", "", [value(1.0)], known) == []
    assert match("failed", "", [], [Signature(mutant, [])]) == []
    assert match("raised", "", [value(1.0), value(2.0)], known) == []


def test_an_error_names_a_mistake_only_if_no_other_mistake_raises_it():
    first, second = (Mutant("03.1", name, "m", says="s", code="c") for name in "ab")
    one = Signature(first, None, ("ValueError", "bad: thing"))
    told = "ValueError in line 3, f(x): bad: thing"
    assert match("raised", told, [], [one]) == [first]
    assert match("raised", "ValueError: bad: thing", [], [one]) == [first]
    assert match("raised", "TypeError: bad: thing", [], [one]) == []
    assert match("raised", "ValueError: another bad: things", [], [one]) == []
    assert match("raised", told, [], [one, Signature(second, None, one.error)]) == []
    assert match("raised", "ValueError", [], [Signature(first, None, ("ValueError", ""))]) == []


def test_the_line_that_a_mistake_raised_in_is_not_its_signature():
    mutant = Mutant("03.1", "a", "m", says="s", code="\ndef twice(x):\n    return {1: x}[2]\n")
    reason = "KeyError in line 2, return {1: x}[2]: 2"
    record = {"status": "raised", "reason": reason, "reveals": []}
    (found,) = signatures(make_solution(), [mutant], lambda _: {("0", "03.1"): record}, 0)
    assert found.error == ("KeyError", "2")


def test_signatures_come_back_from_the_gradebook_as_they_were():
    mutants = [Mutant("03.1", name, "m", says="s", code="c") for name in "ab"]
    found = [Signature(mutants[0], [value(1.5)]), Signature(mutants[1], None, ("KeyError", "2"))]
    book = Gradebook("sqlite://")
    assert kept(book, "k", lambda: found, mutants) == found
    assert kept(book, "k", lambda: pytest.fail("again"), mutants) == found
    assert kept(book, "other", list, mutants) == []


def test_mistakes_of_exercises_that_are_not_there_are_left_out():
    mutant = Mutant("09.1", "a", "m", says="s", code="c")
    assert signatures(make_solution(), [mutant], lambda trials: {}, 0) == []


def test_one_answer_to_each_exercise_shares_a_notebook():
    rows = packed([("1", "a"), ("2", "b"), ("1", "c"), ("3", "d"), ("1", "e")])
    assert rows == [{"1": "a", "2": "b", "3": "d"}, {"1": "c"}, {"1": "e"}]


def test_where_mistakes_are_looked_for(tmp_path: Path):
    solutions = tmp_path / "solutions" / "03_numbers.ipynb"
    assert known_answers(solutions) == Known()
    for place in (tmp_path / "mutants", tmp_path / "solutions/mutants"):
        place.mkdir(parents=True)
        (place / "03_numbers.py").write_text(MUTANTS)
        assert len(known_answers(solutions).mutants) == 8
    other = tmp_path / "other.py"
    other.write_text(MUTANTS.replace("MUTANTS = [", "MUTANTS = []\nREST = ["))
    with pytest.raises(UsageError, match=r"expected a list MUTANTS of Mutant.* in .*other\.py"):
        known_answers(solutions, other)
    other.write_text("1 / 0")
    with pytest.raises(UsageError, match="but it raised ZeroDivisionError: division by zero; see"):
        known_answers(solutions, other)
    with pytest.raises(UsageError, match="but it raised FileNotFoundError"):
        known_answers(solutions, tmp_path / "no.py")
