"""Faults planted in an assignment are found, each where it is; the real exercises have none."""

import re

import nbformat
import pytest

from pytorch_lab import cli, course
from pytorch_lab.errors import UsageError
from pytorch_lab.grading.authoring.assignment import Exercise
from pytorch_lab.grading.authoring.mutants import Known
from pytorch_lab.grading.notebooks import write
from pytorch_lab.grading.validating.hollow import hollow_source
from pytorch_lab.grading.validating.tryout import Fault
from pytorch_lab.grading.validating.validate import Report, told, validate
from tests.assignments import code, make_solution

SOLUTIONS = course.root() / "exercises" / "solutions"

DOUBLE = "### BEGIN SOLUTION\ndef f(x):\n    return x + x\n### END SOLUTION"
REVEALS = 'checks.reveal("f", f(draw.randn(3)))'
HINTS = 'hints=("Look.", "Add.", "x + x")'

# (answer, hidden check, what the visible check asks for) of each exercise
EXERCISES = {
    "04.1": (DOUBLE, REVEALS, "expect.equal(f(2), 4, 'Twice.', name='f(2)')"),
    "04.2": (DOUBLE, 'checks.reveal("f", callable(f))', ""),
    "04.3": (DOUBLE, 'checks.reveal("f", list({f(c) for c in "abcdefgh"}))', ""),
    "04.4": (DOUBLE, REVEALS, "expect.equal(f(2), 5, 'Twice.', name='f(2)')"),
    "04.5": (DOUBLE, f'{REVEALS}\nchecks.reveal("names", list(f.__code__.co_varnames))', ""),
    "04.6": (
        f"{DOUBLE}\n### BEGIN STUB\n# def f(x):\n#     return 2 * x\n### END STUB",
        REVEALS,
        "expect.equal(f(2), 4, 'Twice.', name='f(2)')",
    ),
    "04.7": (DOUBLE, f"assert draw.integer(0, 4) < 3\n{REVEALS}", ""),
    "04.8": (DOUBLE, f'{REVEALS}\nchecks.reveal("threads", torch.get_num_threads())', ""),
    "04.9": (DOUBLE, REVEALS, ""),
    "04.0": (DOUBLE, REVEALS, "broken"),
}
MUTANTS = """
from pytorch_lab.grading.authoring.mutants import Mutant

def mutant(exercise, name, code):
    return Mutant(exercise, name, "more is more", says="no", code=code)

MUTANTS = [
    mutant("04.1", "thrice", "def f1(x):\\n    return 3 * x"),
    mutant("04.1", "nothing", "def f1(x):\\n    return None"),
    mutant("04.2", "thrice", "def f2(x):\\n    return 3 * x"),
]
ALTERNATIVES = {
    "04.1": "f1 = lambda y: y * 2",
    "04.5": "def f5(y):\\n    return y + y",
}
"""


def _renamed(source, exercise):
    """Each exercise has its own function: else the stub of one would pass by that of another."""
    return re.sub(r"\bf\b(?=[(., )]|\.__| =)", f"f{exercise[-1]}", source)


def planted():
    """An assignment of one good exercise and nine that have a fault."""
    setup = code("import torch\nimport pytorch_lab as lab\nfrom pytorch_lab import checks")
    head = nbformat.v4.new_markdown_cell("# Doubles\n\nTen exercises, 19 points.", id="head")
    setup.id = "setup"
    notebook = nbformat.v4.new_notebook(cells=[head, setup])
    for exercise, sources in EXERCISES.items():
        answer, hidden, visible = (_renamed(source, exercise) for source in sources)
        name = exercise.replace(".", "-")
        points = 3 if exercise == "04.9" else 2
        task = code("", f"{name}-task")
        text = f"## {exercise}\n\n*Write · {points} points*"
        task = nbformat.v4.new_markdown_cell(text, metadata=task.metadata, id=task.id)
        check = "pass"
        if visible == "broken":
            check = 'checks.visible("not an id")'
        elif visible:
            check = (
                f'@checks.visible("{exercise}", {HINTS})\ndef check(expect):\n    {visible}\n\n\n'
                f'lab.exercise("{exercise}")'
            )
        hidden = f'draw = checks.draw("{exercise}")\n{hidden}'
        notebook.cells += [
            task,
            code(answer, name, solution=True, locked=False),
            code(check, f"{name}-check"),
            code(
                f"### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS",
                f"{name}-hidden",
                grade=True,
                points=2,
            ),
        ]
    return notebook


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    write(folder / "04_doubles.ipynb", planted())
    (folder / "mutants").mkdir()
    (folder / "mutants/04_doubles.py").write_text(MUTANTS)
    (made,) = validate([folder / "04_doubles.ipynb"])
    return made


def faults(report, exercise):
    return [fault.what for fault in report.faults if fault.exercise == exercise]


@pytest.mark.heavy
def test_a_good_exercise_has_no_fault(report):
    assert faults(report, "04.1") == []


@pytest.mark.heavy
def test_a_check_that_never_calls_the_answer_is_found(report):
    assert faults(report, "04.2") == [
        "its hidden check passes an answer whose functions only raise, so it never calls them",
        "its hidden check passes the mistake 'thrice' (more is more)",
    ]


@pytest.mark.heavy
def test_values_that_hang_on_the_process_or_its_threads_are_found(report):
    (said,) = faults(report, "04.3")
    assert said.startswith("its solution gives other values when it is run again: seed 0, f[")
    (said,) = faults(report, "04.8")
    assert said.endswith("seed 0, threads: expected 1, got 2")


@pytest.mark.heavy
def test_checks_that_disagree_are_found(report):
    assert faults(report, "04.4") == [
        "its visible check says of the solution: ✗ not yet: Twice. (f4(2): expected 5, got 4)"
    ]
    assert faults(report, "04.6") == [
        "its hidden check passes the stub",
        "its visible check says of the stub: ✓ passed",
    ]


@pytest.mark.heavy
def test_a_visible_check_that_only_raises_is_found(report):
    (said,) = faults(report, "04.0")
    assert said.startswith(
        "its visible check ends with an error on the solution: visible(exercise)"
    )


@pytest.mark.heavy
def test_a_check_that_is_too_strict_is_found(report):
    assert faults(report, "04.5") == [
        "its hidden check fails a right answer in another style: names[0]: expected 'x', got 'y'"
    ]


@pytest.mark.heavy
def test_a_seed_on_which_the_solution_fails_is_found(report):
    (said,) = faults(report, "04.7")
    assert said.startswith("its solution fails on seed ")
    assert said.endswith(": AssertionError")


@pytest.mark.heavy
def test_points_that_do_not_add_up_are_found(report):
    assert faults(report, "04.9") == ["its task says 3 points, its hidden check gives 2"]
    assert faults(report, "") == ["the text says 19 points, the checks give 20 together"]
    assert {fault.exercise for fault in report.faults} == {"", *EXERCISES} - {"04.1"}
    assert all(fault.do for fault in report.faults)


@pytest.mark.heavy
def test_the_real_exercises_are_all_right():
    (report,) = validate([SOLUTIONS / "03_modules.ipynb"])
    assert not report.faults, told([report])
    assert len(report.known.mutants) >= 50
    assert len(report.known.alternatives) == len(report.exercises) == 5


# What is found without running anything


@pytest.fixture
def leaky(tmp_path):
    """A notebook whose task gives the solution away."""
    solution = make_solution()
    solution.cells[2].source += "\n\nWrite `nearest = x.abs().argmin()` first."
    write(tmp_path / "leaky.ipynb", solution)
    return tmp_path / "leaky.ipynb"


def test_a_leak_and_a_broken_notebook_are_faults_not_errors(leaky, tmp_path):
    solution = make_solution()
    del solution.cells[5].metadata.nbgrader["points"]
    write(tmp_path / "pointless.ipynb", solution)
    first, second = validate([leaky, tmp_path / "pointless.ipynb"])
    (fault,) = first.faults
    assert "got 'nearest = x.abs().argmin()' in cell 3 (03-1-task)" in fault.what
    assert fault.do.startswith("reword it there")
    (fault,) = second.faults
    assert fault.what.startswith("expected points, a number from 0 up, in the metadata of cell 6")


def test_the_command_says_what_to_do_in_eighty_columns_and_ends_with_1(leaky, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["validate", str(leaky)])
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert said.startswith("leaky.ipynb: no exercises, no points, no known mistakes\n")
    assert said.endswith("\n1 fault in 1 of 1 notebook.\n")
    assert "markers." in said
    assert max(map(len, said.splitlines())) <= 80


def test_mistakes_of_one_file_belong_to_one_notebook(leaky):
    with pytest.raises(UsageError, match="expected one notebook with --mutants, got 2; validate"):
        validate([leaky, leaky], mutants=leaky)


def test_a_report_without_faults_says_so_for_each_exercise():
    graded = [Exercise("03.1", (), "", 1.0), Exercise("essay", (), "", 2.5, "person")]
    assert told([Report(SOLUTIONS / "a.ipynb", graded, Known())]).splitlines() == [
        "a.ipynb: 2 exercises, 3.5 points, no known mistakes",
        "  ✓ 03.1   1 point",
        "  ✓ essay  2.5 points  marked by a person",
        "1 notebook all right.",
    ]
    unseen = Report(SOLUTIONS / "a.ipynb", graded[:1], unseen=frozenset({"03.1"}))
    assert "  ✓ 03.1  1 point  has no visible check, no cell `03-1-check`" in told([unseen])
    two = [Report(SOLUTIONS / "a.ipynb", graded[:1], faults=[Fault("03.1", "x " * 60, "do")] * 2)]
    assert told(two).splitlines()[-1] == "2 faults in 1 of 1 notebook."
    assert max(map(len, told(two).splitlines())) <= 80


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    '''Doc.'''\n    return 2 * x",
        "class A:\n    def f(self):\n        return 1",
        "f = lambda x: 2 * x",
        "async def f(x):\n    return 1",
    ],
)
def test_a_hollow_answer_defines_the_same_names_and_each_raises(source):
    space: dict = {}
    exec(hollow_source(source), space)
    what = space["A"]().f if "A" in space else space["f"]
    call = what if "A" in space else lambda: what(1)
    with pytest.raises(RuntimeError, match="hollow"):
        call().send(None)  # only a coroutine comes so far as to be sent anything
