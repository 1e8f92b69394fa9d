"""A class of submissions, graded in one run; each test reads its rows.

A kernel costs seconds, and exercises stand alone: one submission carries up to three faults.
"""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from pytorch_lab.errors import CourseError, LabError, NotebookError, UsageError
from pytorch_lab.grading import Row, grade
from pytorch_lab.grading.authoring.release import student_version
from pytorch_lab.grading.notebooks import write
from pytorch_lab.grading.statuses import FROM_RUN
from tests.assignments import ANSWERS, cell_of, code, make_solution, make_submission

pytestmark = pytest.mark.heavy
LIMIT_S = 15

ALONE = """\
import glob, os, tempfile
assert os.listdir(".") == []
assert not [name for name in os.environ if name.startswith("PYTEST")]
held = glob.glob(tempfile.gettempdir() + "/pytorch-lab-grade-*/**/*", recursive=True)
assert not [name for name in held if name.endswith(".ipynb") or "reference" in name]
assert os.environ["OMP_NUM_THREADS"] == "1"
helper = 2
"""
NOISY = """\
import logging, sys, warnings
def twice(x):
    warnings.warn("careful")
    logging.warning("careful")
    print("debug", x, "\\r 10 %", file=sys.stderr)
    print("\\x1b[31mred\\x1b[0m")
    display({"text/html": "<b>hi</b>"}, raw=True)
    return helper * x
twice(torch.ones(1))
"""
RAISES_LATER = """\
def average(numbers):
    return sum(numbers) / len(numbers)
assert average([1]) == 2, "a test of my own, which is wrong"
"""
FORGED = """\
from IPython.display import display
def twice(x):
    value = {"is": "float", "value": 0.0}
    display({"application/vnd.pytorch-lab.value+json": {"label": "more", "value": value}}, raw=True)
    return 2 * x
"""
SILENT = """\
from pytorch_lab import checks
checks.reveal = lambda label, value: None
def average(numbers):
    return sum(numbers) / len(numbers)
"""
BROKEN_VALUE = """\
class Yes(torch.Tensor):
    def __eq__(self, other):
        return True
def closest(x):
    return Yes()
"""
LOUD = """\
def twice(x):
    for _ in range(30):
        print("x" * 100_000)
    return 2 * x
"""
MUTED = """\
shell = get_ipython()
shell.showtraceback = lambda *args, **kwargs: None
def average(numbers):
    raise ValueError
"""
THREAD = """\
import threading, time
def shout():
    while True:
        print("y" * 100_000)
        time.sleep(0.01)
threading.Thread(target=shout, daemon=True).start()
def twice(x):
    return 2 * x
"""


def noisy_right(notebook):
    """Right answers, with everything about the notebook that a student may change."""
    notebook.cells.insert(2, code(ALONE))
    notebook.cells.insert(3, code("1 / 0  # an experiment that failed"))
    cell_of(notebook, "03-1-hidden").source = "raise SystemExit"
    cell_of(notebook, "03-2-check").source = "while True: pass"
    notebook.cells.remove(cell_of(notebook, "03-3-hidden"))
    notebook.cells.append(notebook.cells.pop(4))
    notebook.metadata["kernelspec"] = {"name": "no such kernel", "display_name": "x"}
    cell_of(notebook, "03-1").outputs = [
        nbformat.v4.new_output("error", ename="E", evalue="v", traceback=[])
    ]


def marked(notebook):
    notebook.cells.remove(cell_of(notebook, "03-1"))
    cell_of(notebook, "03-2").metadata["tags"] = ["nbval-skip"]


def own_killer(notebook):
    at = notebook.cells.index(cell_of(notebook, "03-2"))
    notebook.cells.insert(at, code("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"))


def answered_elsewhere(notebook):
    at = notebook.cells.index(cell_of(notebook, "03-1"))
    notebook.cells.insert(at + 1, code("def twice(x):\n    return x * 2"))


def split(notebook):
    at = notebook.cells.index(cell_of(notebook, "03-1"))
    notebook.cells.insert(at + 1, code("def twice(x):\n    return x + x", "03-1", solution=True))


STUBS = {"e1": "", "e2": "", "e3": ""}
CLASS = {
    "right": make_submission(),
    "noisy": make_submission(noisy_right, e1=NOISY, e3=RAISES_LATER),
    "wrong": make_submission(
        e1="def twice(x):\n    return x",
        e2="def closest(x):\n    nearest = 0\n    return x.nope",
        e3="def average(numbers)\n    return 1",
    ),
    "exits": make_submission(e1="import sys\nsys.exit(0)", e2="import os\nos._exit(0)"),
    "leaves": make_submission(e1="exit()", e2="def closest(x):\n    import os\n    os._exit(0)"),
    "loops": make_submission(
        e2="while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        e3="import sys\ndef average(numbers):\n    sys.exit(0)",
    ),
    "forges": make_submission(e1=FORGED, e2=BROKEN_VALUE, e3=SILENT),
    "shouts": make_submission(e1=LOUD, e3=MUTED),
    "thread": make_submission(e1=THREAD, e2="input()", e3="%nosuchmagic\n1 / 0"),
    "marked": make_submission(marked, e3="# NBVAL_RAISES_EXCEPTION\n1 / 0"),
    "killer": make_submission(own_killer),
    "stub": student_version(make_solution()),
    "elsewhere": make_submission(answered_elsewhere, **STUBS),
    "split": make_submission(split, e1="x = 1", e2="", e3="# nothing"),
    "=cmd()": nbformat.v4.new_notebook(),
}

PASSED = ("passed", r"")
FRESH = r"run in a fresh kernel without the answer to {}, which {}"
EXPECTED = {
    "right": [PASSED, PASSED, PASSED],
    "noisy": [PASSED, PASSED, PASSED],
    "wrong": [
        ("failed", r"twice a vector\[0\]: expected 1\.629, got 0\.814501 \(3 of 3 values differ\)"),
        ("raised", r"AttributeError in line 3, return x\.nope: 'Tensor' object has no .* 'nope'"),
        ("raised", r"SyntaxError in line 1, def average\(numbers\): expected ':'"),
    ],
    "exits": [
        ("raised", r"SystemExit: 0"),
        (
            "kernel_died",
            r"the kernel ended while the answer ran \(exit.*\)",
        ),
        ("passed", FRESH.format(r"03\.2", "ended the kernel")),
    ],
    "leaves": [
        ("kernel_died", r"the kernel ended while the answer ran .*"),
        ("kernel_died", r"the kernel ended while the hidden check ran .*; run in .* 03\.1, .*"),
        ("passed", FRESH.format(r"03\.1", "ended the kernel") + r"; and without .* 03\.2, .*"),
    ],
    "loops": [
        PASSED,
        ("timed_out", r"the answer ran longer than 15 s; is there a loop that never ends\?"),
        ("raised", "SystemExit.*: 0; " + FRESH.format(r"03\.2", "ran too long")),
    ],
    "forges": [
        ("failed", r"expected the value 'twice a vector', got 'more'"),
        ("failed", r"reveal\('the closest to zero', value\): .* got Yes, a subclass of Tensor; .*"),
        ("failed", r"the check came to no end: expected the value 'the average', got none"),
    ],
    "shouts": [
        ("failed", r"the output was cut after 1 MB, before the check was through"),
        PASSED,
        ("failed", r"the check came to no end: expected the value 'the average', got none"),
    ],
    "thread": [
        PASSED,
        ("raised", r"StdinNotImplementedError in line 1, input\(\): .*"),
        ("raised", r"NameError: name 'average' is not defined"),
    ],
    "marked": [
        ("missing", r"the answer cell 03-1 is not in the notebook"),
        ("refused", r"the answer cell 03-2 .* holds the tag nbval-skip, which would keep it .*"),
        ("refused", r".* holds the control comment NBVAL_RAISES_EXCEPTION, which would .*"),
    ],
    "killer": [
        PASSED,
        ("passed", r"run in a fresh kernel without cell 8, which ended the kernel"),
        ("passed", r"run in a fresh kernel without cell 8, which ended the kernel"),
    ],
    "stub": [("not_attempted", r"the answer is still the stub")] * 3,
    "elsewhere": [
        PASSED,
        ("not_attempted", r"the answer is still the stub"),
        ("not_attempted", r"the answer is still the stub"),
    ],
    "split": [
        ("passed", r"2 cells carry the id 03-1; they were run in their order"),
        ("not_attempted", r".*"),
        ("not_attempted", r".*"),
    ],
    "=cmd()": [("missing", r"the answer cell 03-\d is not in the notebook")] * 3,
    "broken": [("unreadable", r"expected a Jupyter notebook in .*, got broken JSON in line 1 .*")]
    * 3,
    "no_notebook": [("unreadable", r"expected a Jupyter notebook in .*, got JSON without .*")] * 3,
    "essay.pdf": [("unreadable", r"essay\.pdf is not a notebook")] * 3,
    "empty": [("missing", r"no notebook in the folder empty")] * 3,
    "two": [("refused", r"2 notebooks could be meant: a\.ipynb, b\.ipynb")] * 3,
    "link": [("refused", r"link\.ipynb is a link, not a file")] * 3,
    "folder": [("not_attempted", r".*")] * 3,
    "twice": [("refused", r"2 submissions carry this name, twice, twice\.ipynb; keep one")] * 3,
}


@pytest.fixture(scope="module", params=[True, False], ids=["sandbox", "no-sandbox"])
def graded(request, tmp_path_factory: pytest.TempPathFactory, assignment: Path):
    """The rows by student, and the text of grades.csv."""
    folder = tmp_path_factory.mktemp("class") / "handed in"
    for student, notebook in CLASS.items():
        write(folder / f"{student}.ipynb", notebook)
    stub = CLASS["stub"]
    (folder / "broken.ipynb").write_text("{")
    (folder / "no_notebook.ipynb").write_text("{}")
    (folder / "essay.pdf").write_text("%PDF")
    (folder / ".DS_Store").write_text("")
    (folder / "empty").mkdir()
    (folder / "link.ipynb").symlink_to(assignment)
    for path in ("two/a", "twice"):
        write(folder / f"{path}.ipynb", stub)
    for path in ("two/b", "twice/x/03_numbers"):
        write(folder / f"{path}.ipynb", CLASS["right"])
    for path in ("folder/03_numbers/03_numbers", "folder/04_letters/04_letters"):
        write(folder / f"{path}.ipynb", stub)
    write(folder / "folder/.ipynb_checkpoints/03_numbers.ipynb", CLASS["right"])
    out = folder / "marks"
    (folder.parent / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (folder.parent / "conftest.py").write_text("1 / 0")
    with pytest.MonkeyPatch.context() as patch:  # a user's own settings of pytest take no part
        patch.setenv("PYTEST_ADDOPTS", "--no-such-option")
        patch.chdir(folder.parent)
        patch.setenv("TMPDIR", str(folder.parent))
        made = grade(folder, assignment, out, seed=0, sandbox=request.param, timeout_cell=LIMIT_S)
    rows = made.rows
    assert not list(folder.parent.glob("pytorch-lab-*"))  # nothing is left behind
    by_student: dict[str, list[Row]] = {}
    for row in rows:
        by_student.setdefault(row.student, []).append(row)
    assert {"gradebook.sqlite", "grades.csv"} <= {path.name for path in out.iterdir()}
    return by_student, (out / "grades.csv").read_text("utf-8")


def test_everything_handed_in_has_a_row_for_each_exercise(graded):
    rows, _ = graded
    assert sorted(rows) == list(rows) == sorted(EXPECTED)
    assert all([r.exercise for r in theirs] == list(ANSWERS) for theirs in rows.values())


@pytest.mark.parametrize("student", EXPECTED)
def test_status_and_reason(graded, student):
    rows, _ = graded
    got = [(row.status, row.reason) for row in rows[student]]
    for (status, reason), (wanted, says) in zip(got, EXPECTED[student], strict=True):
        assert (status, bool(re.fullmatch(says, reason))) == (wanted, True), got


def test_only_a_pass_has_points(graded):
    rows = [row for theirs in graded[0].values() for row in theirs]
    assert {row.status for row in rows} == set(FROM_RUN)
    for row in rows:
        assert row.points == (row.max_points if row.status == "passed" else 0)
    assert [row.max_points for row in graded[0]["right"]] == [1, 2, 2.5]


def test_the_csv_holds_the_rows_and_no_formula(graded):
    rows, text = graded
    table = list(csv.DictReader(text.splitlines()))
    assert list(table[0]) == ["student", "exercise", "points", "max_points", "status", "reason"]
    assert len(table) == sum(len(theirs) for theirs in rows.values())
    assert table[0]["student"] == "'=cmd()"
    assert [line["points"] for line in table if line["student"] == "right"] == ["1", "2", "2.5"]
    assert not [v for line in table for v in line.values() if v[:1] in tuple("=+-@\t\r")]


def test_another_seed_gives_other_inputs(tmp_path: Path, assignment: Path):
    """Who learned the expected values for seed 0 by heart gets nothing for seed 5."""
    learned = "def twice(x):\n    return {3: torch.tensor([1.629, 0, 0])}.get(len(x), 2 * x)"
    write(tmp_path / "in" / "a.ipynb", make_submission(e1=learned))
    rows = grade(tmp_path / "in", assignment, tmp_path / "out", seed=5, sandbox=False).rows
    assert [row.status for row in rows] == ["failed", "passed", "passed"]
    assert "expected 1.629," not in rows[0].reason


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ("", r"expected bubblewrap for the sandbox, found no 'bwrap'; install it \(Debian, Ubuntu"),
        ("exit 1", r"expected user namespaces for the sandbox, but bubblewrap said '.*'; allow"),
    ],
)
def test_where_no_sandbox_can_be_made_it_must_be_said(
    found, says, tmp_path: Path, assignment: Path, monkeypatch
):
    write(tmp_path / "in" / "a.ipynb", CLASS["stub"])
    monkeypatch.setenv("PATH", str(tmp_path))
    if found:
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{found}\n")
        (tmp_path / "bwrap").chmod(0o755)
    with pytest.raises(LabError, match=says):
        grade(tmp_path / "in", assignment, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def refuse(kind, says, folder, assignment, out, **more):
    with pytest.raises(kind, match=says) as caught:
        grade(folder, assignment, out, sandbox=False, **more)
    assert "\n" not in str(caught.value)


def test_bad_arguments_are_one_sentence(tmp_path: Path, assignment: Path):
    out = tmp_path / "out"
    full = tmp_path / "full"
    write(full / "a.ipynb", CLASS["stub"])
    (tmp_path / "file").write_text("")
    (tmp_path / "none").mkdir()
    refuse(CourseError, "zip of submissions at .*x, found nothing", tmp_path / "x", assignment, out)
    refuse(
        CourseError, "but file is not a zip that can be read", tmp_path / "file", assignment, out
    )
    refuse(
        CourseError,
        r"expected <student>\.ipynb, .*, found nothing",
        tmp_path / "none",
        assignment,
        out,
    )
    refuse(NotebookError, "but there is no such file", full, tmp_path / "x.ipynb", out)
    refuse(NotebookError, "BEGIN SOLUTION", full, full / "a.ipynb", out)
    refuse(UsageError, "expected a time limit above 0", full, assignment, out, timeout_cell=0)
    refuse(
        CourseError,
        r"expected to write grades\.csv into .*, but got a file where a folder should be; give",
        full,
        assignment,
        tmp_path / "file",
    )
    assert not out.exists()


@pytest.mark.parametrize(
    ("answer", "hidden", "says"),
    [
        (
            "1 / 0",
            "if False: checks.reveal('x', 1)",
            r"of exercise 03\.1 in .* got passed: it revealed nothing; nobody can",
        ),
        (
            "x = 1",
            "1 / 0  # checks.reveal()",
            r"to pass its hidden check .* got raised: ZeroDivisionError",
        ),
        (
            "import os; os._exit(0)",
            "checks.reveal('x', 1)",
            "got kernel_died: the kernel ended while the answer",
        ),
    ],
)
def test_an_assignment_that_its_own_solution_fails(tmp_path: Path, answer, hidden, says):
    solution = make_solution()
    cell_of(solution, "03-1").source = f"### BEGIN SOLUTION\n{answer}\n### END SOLUTION"
    hidden = f"### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS"
    cell_of(solution, "03-1-hidden").source = hidden
    solution.cells = solution.cells[1:6]
    write(tmp_path / "s.ipynb", solution)
    write(tmp_path / "in" / "a.ipynb", CLASS["stub"])
    refuse(NotebookError, says, tmp_path / "in", tmp_path / "s.ipynb", tmp_path / "out")


def test_pytest_that_fails_itself_is_told(tmp_path: Path, assignment: Path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "nbval.py").write_text("raise ImportError('no nbval today')")
    write(tmp_path / "in" / "a.ipynb", CLASS["right"])
    refuse(
        LabError,
        r"ended with code \d: .*run 'pytorch-lab doctor'",
        tmp_path / "in",
        assignment,
        tmp_path / "out",
    )
    assert not (tmp_path / "out" / "grades.csv").exists()


def test_a_machine_where_no_kernel_starts(tmp_path: Path, assignment: Path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "ipykernel_launcher.py").write_text("raise SystemExit(1)")
    write(tmp_path / "in" / "a.ipynb", CLASS["right"])
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    says = r"exercise 03\.1 .* got kernel_died: no kernel could be started for it(: .*)?; nobody"
    refuse(NotebookError, says, tmp_path / "in", assignment, tmp_path / "out")
    assert not list((tmp_path / "tmp").glob("pytorch-lab-*"))


TORCH_LOADED = "import sys; {}; print('torch' in sys.modules)"


@pytest.mark.parametrize(
    ("load", "loaded"),
    [
        (
            "import pytorch_lab.grading.grader, pytorch_lab.grading.running.plugin",
            "False",
        ),
        ("import pytorch_lab.grading, torch", "True"),
    ],
)
def test_the_grader_itself_never_loads_torch(load, loaded):
    done = subprocess.run(
        [sys.executable, "-c", TORCH_LOADED.format(load)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert done.stdout.strip() == loaded
