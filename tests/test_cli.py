"""The command line: what it prints, how it exits, and what it does not wait for."""

import io
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

import pytorch_lab
from pytorch_lab import cli, errors
from pytorch_lab.grading import trouble
from pytorch_lab.grading.authoring.assignment import Exercise
from pytorch_lab.grading.book import marks
from pytorch_lab.grading.book.gradebook import Override
from pytorch_lab.grading.pages import meter

PAGES = "pytorch_lab.grading.pages.renewing"


@pytest.fixture
def command(capsys):
    """`command("doctor", "--json")` gives exit code, stdout and stderr."""

    def run(*words):
        with pytest.raises(SystemExit) as end:
            cli.main(list(words))
        said = capsys.readouterr()
        return end.value.code or 0, said.out, said.err

    return run


@pytest.fixture
def grading(monkeypatch):
    """A stand-in for the room of that name, which notes how it was called."""
    calls = []

    def note(answer):
        def function(*args, **kwargs):
            told = {name: value for name, value in kwargs.items() if not callable(value)}
            calls.append((args, told))
            if isinstance(answer, Exception):
                raise answer
            return answer

        return function

    room = SimpleNamespace(calls=calls, answers=lambda **f: vars(room).update(_noted(f, note)))
    monkeypatch.setitem(sys.modules, "pytorch_lab.grading", room)
    pages = SimpleNamespace(write_pages=lambda graded, out, feedback: out / "class.html")
    real = {part.__name__: part for part in (trouble, marks, meter)}
    for name, part in (real | {PAGES: pages}).items():
        monkeypatch.setitem(sys.modules, name, part)
    monkeypatch.setattr(pytorch_lab, "grading", room, raising=False)
    return room


def _noted(functions, note):
    return {name: note(answer) for name, answer in functions.items()}


# -------------------------------------------------------------------------------- the command line


def test_help_is_what_one_sees_without_a_command(command):
    code, said, _ = command()
    assert code == 0
    for name in ("open", "doctor", "check", "release", "grade", "run", "marks", "sample-class"):
        assert f"\n  {name} " in said
    assert "..." not in said.partition("Commands:")[2]  # no description is cut off
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["docter"], "No such command 'docter'. Did you mean 'doctor'? See: pytorch-lab --help"),
        (
            ["open", "--prot", "3"],
            "No such option: --prot. Did you mean --port? See: pytorch-lab open --help",
        ),
        (
            ["doctor", "--jsn"],
            "No such option: --jsn. Did you mean --json? See: pytorch-lab doctor --help",
        ),
        (["release"], "Missing argument 'SOLUTION...'. See: pytorch-lab release --help"),
        (["release", "a.ipynb"], "Missing option '--out'. See: pytorch-lab release --help"),
        (["open", "x", "y"], "Got unexpected extra argument(s) (y). See: pytorch-lab open --help"),
    ],
)
def test_a_slip_is_one_sentence_with_the_way_out(command, words, sentence):
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert err == f"pytorch-lab: {sentence}\n"


def test_a_port_that_is_none(command):
    code, _, err = command("open", "--port", "99999")
    assert code == 2
    assert "Invalid value for '--port'" in err
    assert err.count("\n") == 1


def test_the_version(command):
    assert command("--version") == (0, f"pytorch-lab {pytorch_lab.__version__}\n", "")


@pytest.mark.parametrize("kind", [errors.UsageError, errors.CourseError, errors.NotebookError])
def test_every_error_of_ours_is_one_sentence_and_exit_code_2(command, grading, kind):
    grading.answers(check=kind("expected a notebook, got a cat; feed it elsewhere."))
    said = "pytorch-lab: expected a notebook, got a cat; feed it elsewhere.\n"
    assert command("check", "cat.ipynb") == (2, "", said)


def test_an_error_that_is_not_ours_keeps_its_traceback(grading):
    grading.answers(check=ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError, match="a bug"):
        cli.main(["check", "x.ipynb"])


# ------------------------------------------------------------------------------------- commands


def verdict(exercise, state, message=""):
    return SimpleNamespace(exercise=exercise, state=state, message=message)


def test_check_prints_a_line_for_each_exercise_and_says_why_not(command, grading):
    why = "expected 4 parameter tensors, got 0; a plain list hides its layers from the optimizer."
    grading.answers(
        check=[
            verdict("03.1", "passed", "Right."),
            verdict("03.2", "failed", why),
            verdict("03.3", "raised", "NameError: name 'nn' is not defined"),
            verdict("03.4", "open"),
        ]
    )
    code, said, _ = command("check", "03_modules.ipynb")
    assert code == 1
    assert said == (
        "✓ 03.1  passed\n"
        "✗ 03.2  not yet\n"
        "        expected 4 parameter tensors, got 0; a plain list hides its layers from\n"
        "        the optimizer.\n"
        "✗ 03.3  error\n"
        "        NameError: name 'nn' is not defined\n"
        "○ 03.4  open\n"
        "1 of 4 passed\n"
    )
    assert grading.calls == [((Path("03_modules.ipynb"),), {})]


def test_check_exits_with_0_when_everything_passed(command, grading):
    grading.answers(check=[verdict("03.1", "passed")])
    assert command("check", "03_modules.ipynb") == (0, "✓ 03.1  passed\n1 of 1 passed\n", "")


def row(student, exercise, points, max_points, status="passed", override=None):
    return marks.Row(student, exercise, points, max_points, status, "", override=override)


def graded(*rows, **more):
    """A class; each exercise has as many points as its first row says."""
    points = {}
    for one in rows:
        points.setdefault(one.exercise, one.max_points)
    exercises = [Exercise(exercise, (), "", most) for exercise, most in points.items()]
    return marks.GradedClass(Path("03.ipynb"), exercises, list(rows), {}, **more)


GIVEN = Override(3, "fair", "ann", datetime(2026, 12, 1, tzinfo=UTC))


def test_grade_sums_up_and_says_where_the_marks_are(command, grading):
    found = graded(
        row("grace", "03.1", 0, 2, "timed_out"),
        row("grace", "03.2", 3, 3, "failed", GIVEN),
        row("ada", "03.1", 2, 2),
        row("ada", "03.2", 1.5, 3),
        sandbox=False,
        notes=["1 not found in the roster, or by a name of several there, and left out: grace"],
    )
    grading.answers(grade=found)
    words = "grade in --assignment 03.ipynb --out marks --seed 7 --no-sandbox --timeout-cell 9"
    more = "--exercise 03.2 --exercise 03.1 --late none --roster r.csv --db x.db --workers 2"
    code, said, _ = command(*words.split(), *more.split())
    assert code == 0
    assert said == (
        "ada    3.5 of 5       2 passed\n"
        "grace  3* of 5        1 failed, 1 timed out\n"
        "2 students: 2 passed, 1 failed, 1 timed out\n"
        "* with points given by hand\n"
        "1 not found in the roster, or by a name of several there, and left out: grace\n"
        "Without a sandbox: the students' code ran as you.\n"
        f"{Path('marks') / 'grades.csv'}\n"
        f"{Path('marks') / 'class.html'}\n"
    )
    assert grading.calls == [
        (
            (Path("in"), Path("03.ipynb"), Path("marks")),
            {
                **{
                    "seed": 7,
                    "sandbox": False,
                    "timeout_cell": 9,
                    "workers": 2,
                    "db": "x.db",
                    "dask": None,
                },
                **{"only": ["03.2", "03.1"], "late": "none", "roster": Path("r.csv")},
                **{"mutants": None, "memory": "4G", "check_stability": False},
            },
        )
    ]


def test_the_summary_fits_a_terminal(command, grading):
    statuses = ["passed", "failed", "raised", "timed_out", "kernel_died", "not_attempted"]
    rows = [row("x" * 200, str(n), 0, 1.25, status) for n, status in enumerate(statuses)]
    grading.answers(grade=graded(*rows, notes=["many words " * 20]))
    _, said, _ = command("grade", "in", "--assignment", "03.ipynb", "--out", "m")
    assert max(map(len, said.splitlines())) <= 80
    assert "0 of 7.5" in said
    assert said.count("x") - said.count("exe") >= 200  # nothing is cut off unsaid
    told = " ".join(said.split())
    assert told.count("1 failed, 1 kernel died, 1 not attempted, 1 raised, 1 timed out") == 2


def test_a_students_name_is_one_printable_line(command, grading):
    grading.answers(grade=graded(row("a\x1b[31m\nda\udcff", "03.1", 2, 2)))
    code, said, _ = command("grade", "in", "--assignment", "03.ipynb", "--out", "marks")
    assert code == 0
    assert said.startswith("a da  2 of 2         1 passed\n1 student: ")


def test_what_a_terminal_cannot_show_is_no_error(grading, monkeypatch):
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, "ascii", write_through=True))
    grading.answers(grade=graded(row("zoë", "03.1", 2, 2)))
    with pytest.raises(SystemExit) as end:
        cli.main(["grade", "in", "--assignment", "03.ipynb", "--out", "marks"])
    assert not end.value.code
    assert shown.getvalue().startswith(b"zo?  2 of 2")


def test_grade_asks_for_the_sandbox_unless_told_not_to(command, grading):
    grading.answers(grade=graded())
    command("grade", "in", "--assignment", "03.ipynb", "--out", "marks")
    defaults = {"seed": None, "sandbox": True, "timeout_cell": 30, "workers": 1, "db": None}
    defaults |= {"dask": None}
    defaults |= {"only": (), "late": None, "roster": None, "mutants": None}
    defaults |= {"memory": "4G", "check_stability": False}
    assert grading.calls[0][1] == defaults


def test_a_second_run_that_says_otherwise_is_told(command, grading):
    words = ["grade", "in", "--assignment", "03.ipynb", "--out", "m"]
    words += ["--check-stability", "--memory", "1G"]
    found = graded(row("ada", "03.1", 2, 2))
    grading.answers(grade=found)
    code, said, _ = command(*words)
    assert (code, said.splitlines()[-1]) == (0, "Both runs say the same.")
    found.unstable.append("ada, 03.1: first passed (no remark), then failed (x: expected 1, got 2)")
    code, said, _ = command(*words)
    assert (code, "otherwise of these:\n  ada, 03.1: first passed" in said) == (1, True)
    asked = grading.calls[0][1]
    assert (asked["memory"], asked["check_stability"]) == ("1G", True)


def test_release_prints_what_it_wrote(command, grading):
    grading.answers(release=[Path("out/03_modules.ipynb")])
    code, said, _ = command("release", "a.ipynb", "b.ipynb", "--out", "out")
    assert (code, said) == (0, f"{Path('out/03_modules.ipynb')}\n")
    assert grading.calls == [(([Path("a.ipynb"), Path("b.ipynb")], Path("out")), {})]


def test_run_goes_through_the_notebooks_one_by_one(command, grading):
    grading.answers(run=None)
    code, said, _ = command("run", "a.ipynb", "b.ipynb")
    assert (code, said) == (0, "a.ipynb\nb.ipynb\n")
    assert [args for args, _ in grading.calls] == [(Path("a.ipynb"),), (Path("b.ipynb"),)]


# ----------------------------------------------------------------------------- in a new interpreter


def imported_by(*words):
    """Which of the heavy packages a command imports, in an interpreter of its own."""
    code = f"""
import sys
from pytorch_lab import cli
try:
    cli.main({list(words)!r})
except SystemExit:
    pass
print("imported:", *sorted({{"torch", "numpy", "anywidget", "jupyterlab"}} & set(sys.modules)))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()[-1].split()[1:]


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["open", "--help"], ["docter"]])
def test_nobody_waits_for_torch_to_read_the_help(words):
    assert imported_by(*words) == []


def test_the_test_above_can_fail():
    """The doctor looks at torch."""
    assert "torch" in imported_by("doctor")


def test_the_program_is_installed_under_its_name():
    program = Path(sys.executable).with_name("pytorch-lab")
    ran = subprocess.run([program, "docter"], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.startswith("pytorch-lab: No such command 'docter'.")
