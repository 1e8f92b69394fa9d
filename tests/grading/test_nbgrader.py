"""nbgrader's assignments graded here, and ours graded by nbgrader.

The last two tests run nbgrader itself, out of `.venv/nbgrader` (see the Makefile), on the sample
course of its own documentation, which is copied from the installed package when the tests run.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from pytorch_lab import course
from pytorch_lab.errors import NotebookError
from pytorch_lab.grading import grade
from pytorch_lab.grading.authoring.assignment import exercises
from pytorch_lab.grading.authoring.foreign import adopt, is_foreign, partial_credit
from pytorch_lab.grading.authoring.mutants import assemble, known_answers
from pytorch_lab.grading.authoring.release import student_version
from pytorch_lab.grading.notebooks import read, write
from pytorch_lab.grading.running import overlay
from pytorch_lab.grading.running.suspicion import suspicion
from pytorch_lab.grading.validating.for_nbgrader import for_nbgrader
from tests.assignments import cell_of, make_solution

# A small assignment in nbgrader's form

TEST = '"""Check a few."""\nassert area(1) == 1, "one"\nassert area(3) == 9'
PARTS = "right = [area(r) == r * r for r in (1, 2, 3)]\n%precision 3\nsum(right)"


def made(schema):
    """Its metadata is that of one of nbgrader's three schemas."""

    def cell(source, grade_id, kind=nbformat.v4.new_code_cell, **known):
        said = {"grade": False, "solution": False, "locked": False, "schema_version": schema}
        said |= {"task": False} if schema == 3 else {}
        return kind(source, metadata={"nbgrader": said | {"grade_id": grade_id} | known})

    words = nbformat.v4.new_markdown_cell
    answer = "def area(r):\n    # BEGIN SOLUTION\n    return r * r\n    # END SOLUTION"
    cells = [
        nbformat.v4.new_code_cell("import math"),
        cell(answer, "area", solution=True),
        cell(TEST, "test_area", grade=True, locked=True, points="2" if schema == 1 else 2),
        cell(PARTS, "test_parts", grade=True, locked=True, points=3),
        cell("It is a square.", "essay", words, grade=True, solution=True, points=4),
    ]
    if schema == 3:
        cells.append(cell("Draw one.", "drawing", words, task=True, locked=True, points=5))
    if schema == 1:
        del cells[2].metadata["nbgrader"]["schema_version"]
    notebook = nbformat.v4.new_notebook(cells=cells)
    for one in notebook.cells:
        del one["id"]  # notebooks of nbgrader's time have none
    notebook.nbformat_minor = 4
    return notebook


RIGHT = "def area(r):\n    return r * r"
WRONG = "def area(r):\n    return 1 if r == 1 else r + r"
# No word of it is suspicious, for all of them are put together; it hushes every error up.
SNEAK = """
everything = getattr(print, "__se" + "lf__")
shell = getattr(getattr(everything, "__imp" + "ort__")("IPython"), "get_ip" + "ython")()
getattr(everything, "set" + "attr")(shell, "showtrace" + "back", lambda *a, **k: None)
"""
# It says whatever the test's own source says last.
READS = f"""{SNEAK}
from pytorch_lab.checks import reveal
def area(r):
    source = shell.kernel.get_parent()["content"]["code"]
    if r == 3 and "_reveal('came to its end', " in source:
        reveal("came to its end", source.split("'")[-2])
    return 1 if r == 1 else 0
"""
ANSWERS = {
    "reads": READS,
    "anything": "from unittest.mock import ANY\ndef area(r):\n    return ANY",
    "sneaks": SNEAK + WRONG,
    "right": RIGHT,
    "partly": WRONG,
    "noisy": f"import sys, warnings\nwarnings.warn('slow')\n{RIGHT}\nprint('!', file=sys.stderr)",
    "untouched": "def area(r):\n    # YOUR CODE HERE\n    raise NotImplementedError()",
    "quits": "def area(r):\n    import os\n    os._exit(0)",
    "exits": "def area(r):\n    raise SystemExit(0)",
    "interrupts": "def area(r):\n    raise KeyboardInterrupt",
    "skips": WRONG,
    "hushes": f"get_ipython().showtraceback = lambda *a, **k: None\n{WRONG}",
    "equals": "class E:\n    def __eq__(self, other):\n        return True\n"
    "def area(r):\n    return E()",
    "shadows": f"{WRONG}\nimport builtins as b\nb.sum = lambda x: 3",
    "redefines": f"{WRONG}\nsum = lambda x: 3",
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """(status, points) of every student and exercise of the assignment of schema 3."""
    folder = tmp_path_factory.mktemp("foreign")
    write(folder / "squares.ipynb", made(3))
    for student, answer in ANSWERS.items():
        handed_in = student_version(adopt(made(3)))
        cell_of(handed_in, "area").source = answer
        if student != "right":
            cell_of(handed_in, "essay").source = "A square."
        if student == "skips":
            for name in ("test_area", "test_parts"):
                cell_of(handed_in, name).metadata.tags = ["skip-execution", "raises-exception"]
                cell_of(handed_in, name).source = "3"
                cell_of(handed_in, name).metadata.nbgrader["points"] = 100
        write(folder / "in" / f"{student}.ipynb", handed_in)
    graded = grade(folder / "in", folder / "squares.ipynb", folder / "out", timeout_cell=30)
    return {(row.student, row.exercise): row for row in graded.rows}


@pytest.mark.heavy
def test_asserts_partial_credit_and_what_a_person_marks(rows):
    def of(student):
        return {e: (r.status, r.points, r.max_points) for (s, e), r in rows.items() if s == student}

    by_hand = {"essay": ("needs_person", 0, 4), "drawing": ("needs_person", 0, 5)}
    passed = {"test_area": ("passed", 2, 2), "test_parts": ("passed", 3, 3)}
    assert of("right") == passed | by_hand | {"essay": ("not_attempted", 0, 4)}
    assert of("noisy") == passed | by_hand  # nbgrader would give 0 for a word on stderr
    parts = {"test_parts": ("partial", 2, 3)}
    assert of("partly") == {"test_area": ("failed", 0, 2)} | parts | by_hand
    assert rows["partly", "test_parts"].reason == "2 of 3 points; its test judged in the kernel"
    assert rows["partly", "test_area"].reason.startswith("AssertionError")
    assert rows["right", "test_area"].reason == "its test judged in the kernel"


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("student", "statuses"),
    {
        "untouched": {"not_attempted"},
        "sneaks": {"needs_person"},
        "anything": {"needs_person"},
        "quits": {"needs_person"},
        "exits": {"raised"},
        "interrupts": {"raised"},
        "hushes": {"needs_person"},
        "equals": {"needs_person"},
        "shadows": {"needs_person"},
        "redefines": {"needs_person"},
    }.items(),
)
def test_what_does_not_come_to_its_end_or_could_forge_it_earns_nothing(rows, student, statuses):
    for test in ("test_area", "test_parts"):
        row = rows[student, test]
        assert row.points == 0
        assert row.status in statuses, row


@pytest.mark.heavy
def test_what_no_scan_finds_is_still_no_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(overlay, "why_a_person", lambda *_: "")
    write(tmp_path / "squares.ipynb", made(3))
    for student in ("sneaks", "reads"):
        handed_in = student_version(adopt(made(3)))
        cell_of(handed_in, "area").source = ANSWERS[student]
        write(tmp_path / "in" / f"{student}.ipynb", handed_in)
    graded = grade(tmp_path / "in", tmp_path / "squares.ipynb", tmp_path / "out", timeout_cell=30)
    found = {(r.student, r.exercise): r for r in graded.rows}
    for student in ("sneaks", "reads"):
        row = found[student, "test_area"]
        assert (row.status, row.points) == ("failed", 0), row
        assert row.reason.startswith("the check came to no end: its error was hushed up")


@pytest.mark.heavy
def test_tests_are_the_instructors_whatever_stands_in_the_students_notebook(rows):
    for test in ("test_area", "test_parts"):
        mine, theirs = rows["partly", test], rows["skips", test]
        assert (theirs.status, theirs.points, theirs.max_points) == (
            mine.status,
            mine.points,
            mine.max_points,
        )


def test_the_three_schemas_say_the_same():
    want = [("test_area", 2, "kernel"), ("test_parts", 3, "kernel"), ("essay", 4, "person")]
    for schema in (1, 2, 3):
        told = [(e.id, e.points, e.judge) for e in exercises(adopt(made(schema)), "it")]
        assert told == want + ([("drawing", 5, "person")] if schema == 3 else [])


def test_a_student_reads_the_usual_stub_and_no_cell_is_without_id():
    adopted = adopt(made(2))
    released = student_version(adopted)
    assert cell_of(released, "area").source == ANSWERS["untouched"]
    assert cell_of(released, "essay").source == "YOUR ANSWER HERE"
    assert len({cell.id for cell in adopted.cells}) == len(adopted.cells)


def test_a_tests_last_number_is_its_points_unless_it_is_not_shown():
    def revealed(source):
        notebook = made(3)
        notebook.cells[2].source = source
        return adopt(notebook).cells[2].source

    assert "_end = (\narea(2)\n)" in revealed("x = 1\narea(2)  # a comment")
    assert "'points'" in revealed("(1 +\n 2)")
    assert "'points'" not in revealed("area(2);")
    assert "'points'" not in revealed("x = area(2)")
    word = revealed("x = 1").split("'")[-2]
    assert word != revealed("x = 2").split("'")[-2], "the word hangs on what students cannot see"
    with pytest.raises(NotebookError, match="expected Python in the test cell test_area, got a Sy"):
        revealed("assert area(2) = 4")


def test_a_partial_credit_comes_with_the_word_and_lies_between():
    def said(number, word="w"):
        values = ("points", {"is": "float", "value": number}), ("end", {"value": word})
        return [{"label": label, "value": value} for label, value in values]

    assert partial_credit(said(1.5), said(2.0), 2) == 1.5
    assert partial_credit(said(2.5), said(2.0), 2) is None
    assert partial_credit(said(-1.0), said(2.0), 2) is None
    assert partial_credit(said(float("nan")), said(2.0), 2) is None
    assert partial_credit(said(1.5, "x"), said(2.0), 2) is None
    assert partial_credit(said("1"), said(2.0), 2) is None
    assert partial_credit([1, 2], said(2.0), 2) is None


def test_a_test_that_nobody_named_is_called_by_the_heading_above():
    notebook = made(3)
    for cell in notebook.cells[2:4]:
        cell.metadata.nbgrader["grade_id"] = f"cell-0123456789abcdef{cell.metadata.nbgrader.points}"
    notebook.cells.insert(2, nbformat.v4.new_markdown_cell("## *Areas*, tested\n\nCome."))
    graded = exercises(adopt(notebook), "it")
    assert [e.id for e in graded[:2]] == ["Areas tested", "Areas tested (2)"]
    assert graded[2].id == "essay"


def test_importing_our_checks_changes_nothing_for_tests_that_judge_themselves():
    notebook = made(3)
    notebook.cells[0].source = "from pytorch_lab import checks"
    assert is_foreign(notebook)


def test_our_own_notebooks_are_not_adopted():
    assert not is_foreign(make_solution())
    assert not is_foreign(student_version(make_solution()))
    assert adopt(make_solution()) == make_solution()
    stripped = student_version(adopt(made(3)))
    assert not is_foreign(stripped), "a check without its tests would pass everybody"


GIVEN = "import torch\nx = torch.zeros(3)\ndef near(a, b):\n    return abs(a - b) < 0.1"
CHECK = "assert torch.equal(f(x), x) and len(x) == 3 and near(1, 1)"


@pytest.mark.parametrize(
    ("source", "says"),
    {
        "import torch\ntorch.equal = lambda *a: True": "changes `torch.equal`",
        "torch.Tensor.__bool__ = lambda s: True": "uses `__bool__`",
        "len = lambda x: 3": "redefines `len`, which the test uses",
        "def f(x):\n    global len\n    len = f": "redefines `len`, which the test uses",
        "for torch in [1]:\n    pass": "redefines `torch`, which the test uses",
        "get_ipython().ast_transformers.append(f)": "uses `ast_transformers`",
        "s = getattr(x, 'showtraceback')": "uses `showtraceback`",
        "class T(torch.Tensor):\n    def __eq__(s, o): return s": "uses `__eq__`",
        "import sys\nsys.modules['torch'] = f": "uses `sys.modules`",
        "from sys import modules": "uses `sys.modules`",
        "import gc\ngc.get_referrers(f)": "uses `get_referrers`",
        "from unittest.mock import ANY": "imports `unittest.mock.ANY`",
        "import torch\ntorch.testing._private.unittest.mock.ANY": "uses `ANY`",
        "Y = type('Y', (), {'__e' + 'q__': f})": "uses `__e`",
        "Y = type('Y', (), members)": "uses `type` in an unusual way",
        "make = type\nmake('Y', (), {})": "uses `type` in an unusual way",
        "torch.__dict__['allclose'] = f": "uses `__dict__`",
        "vars(torch)['allclose'] = f": "uses `vars` in an unusual way",
        "getattr(torch, '_' + '_dict_' + '_')": "uses `getattr` in an unusual way",
        "import IPython\nIPython.get_ipython()": "imports `IPython`",
        "t = torch\nt.allclose = f": "changes `t.allclose`",
        "nn = torch.nn\nnn.Linear = f": "changes `nn.Linear`",
        "(lambda t: t)(torch)": "hands `torch` on",
        "def p(m):\n    m.equal = f": "changes `m.equal`, which the test calls",
        "class R:\n    def equal(s, o):\n        return 1": "defines `equal`, which the test calls",
        "import warnings\nwarnings.sys": "uses `warnings.sys`",
        "import random\nrandom._os": "uses `random._os`",
        "from math import isclose as len": "redefines `len`, which the test uses",
        "[(len := f) for _ in 'a']": "redefines `len`, which the test uses",
        "try:\n    f()\nexcept E as len:\n    pass": "redefines `len`, which the test uses",
        "def near(a, b):\n    return True": "redefines `near`, which the test uses",
        "class F(float):\n    def __sub__(s, o):\n        return s": "uses `__sub__`",
        "%run other.py": "uses `%run other.py`",
        "x = (5\n% exec('1'))": "uses `% exec('1'))`",
        "%time exec('1')": "uses `exec`",
        "from sys import *": "imports everything from `sys`",
        "print.__self__.len = f": "uses `__self__`",
        "%%notmagic\nget_ipython()": "uses `%%notmagic`",
        "exec('x = 1')": "uses `exec`",
        "x.__class__ = f": "changes `x.__class__`",
        "from pytorch_lab.checks import reveal": "imports `pytorch_lab.checks.reveal`",
    }.items(),
)
def test_what_could_forge_a_test_is_named(source, says):
    assert suspicion([source], [CHECK], [GIVEN, CHECK]) == says


@pytest.mark.parametrize(
    "source",
    [
        "%matplotlib inline\nfrom torch import nn\nmodel = nn.Linear(1, 1)\nmodel.eval()",
        "for m in model.modules():\n    m.training = False\nmodel.weight.data = x",
        "def f(x):\n    len = 3\n    return [x for torch in x]",
        "compiled = torch.compile(model)",
        "import gc\ngc.collect()",
        "torch.backends.cudnn.deterministic = True\nfor k in vars(model):\n    print(k)",
        "def g(self, i):\n    return getattr(self, f'layer{i}')(type(x), isinstance(x, type))",
        "class N(nn.Module):\n    def __init__(self):\n        self.a = 1\n"
        "    def forward(self, x):\n        return x\nif __name__ == '__main__':\n    print(N())",
        "from torch import nn\nimport torch.nn.functional as F\ny = F.relu(nn.Linear(1, 1)(x))",
        "from IPython.display import display\nimport matplotlib.pyplot as plt\nplt.plot(x)",
        "%%time\nx = 1\n%timeit -n 10 f(x)",
        "x = torch.ones(3)\nsum = 0",
        "!pip list",
        "def broken(:",
    ],
)
def test_honest_code_is_not_suspected(source):
    assert suspicion([source], [CHECK], [GIVEN, CHECK]) == ""


def test_what_the_instructor_uses_may_be_used():
    assert suspicion(["exec('1')"], [CHECK], [GIVEN, "exec('2')"]) == ""


# nbgrader itself

NBGRADER = Path(sys.prefix, "nbgrader")
SOLUTION = course.root() / "exercises/solutions/03_modules.ipynb"


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """What nbgrader and we give for its sample course, and for a notebook of ours."""
    assert NBGRADER.is_dir(), "expected nbgrader in .venv/nbgrader; run: make .venv/.nbgrader"
    root = tmp_path_factory.mktemp("course")
    sample = NBGRADER / "nbgrader/docs/source/user_guide"
    for part in ("source", "submitted"):
        shutil.copytree(sample / part, root / part, ignore=shutil.ignore_patterns("ps1_autotest"))
    solution, known = read(SOLUTION), known_answers(SOLUTION)
    handed_in = {
        "right": known.alternatives,
        "wrong": {one.exercise: one.code for one in reversed(known.mutants)},
        "untouched": {},
    }
    for student, answers in handed_in.items():
        target = root / "submitted" / student / "03_modules" / "03_modules.ipynb"
        write(target, assemble(solution, answers))
    for_nbgrader([SOLUTION], root, seed=5)
    program = Path(__file__).with_name("nbgrader_course.py")
    paths = f"{NBGRADER / 'bin'}:{os.environ['PATH']}"  # it calls alembic
    with (
        (root / "log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, program, str(root), "ps1", "03_modules"],
            env=os.environ | {"PYTHONPATH": str(NBGRADER), "PATH": paths, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        ours = {}
        for source in (*sorted((root / "source/ps1").glob("*.ipynb")), SOLUTION):
            ours[source.stem] = grade(root / "submitted", source, root / source.stem, seed=5).rows
        said = process.communicate()[0]
    assert process.returncode == 0, (root / "log").read_text()[-3000:]
    return json.loads(said), ours


def of(rows, student):
    """The points of a student; None where a person has to give them."""
    theirs = [row for row in rows if row.student == student]
    return {r.exercise: None if r.status == "needs_person" else r.points for r in theirs}


# A cell without a name of its own is called by the heading above it.
NAMED = {"cell-938593c4a215c6cc": "Part E (4 points)"}


@pytest.mark.heavy
def test_the_sample_course_gets_nbgraders_scores_cell_by_cell(both):
    theirs, ours = both
    cells = 0
    for student in ("bitdiddle", "hacker"):
        for notebook, scores in theirs["ps1"][student].items():
            named = {NAMED.get(grade_id, grade_id): score for grade_id, score in scores.items()}
            assert of(ours[notebook], student) == named, (student, notebook)
            cells += len(scores)
    assert cells == 18
    assert sum(score or 0 for n in theirs["ps1"]["hacker"].values() for score in n.values()) == 3


@pytest.mark.heavy
def test_nbgrader_gives_our_exercises_the_points_that_we_give(both):
    theirs, ours = both
    for student, total in (("right", 20), ("wrong", 0), ("untouched", 0)):
        scores = theirs["03_modules"][student]["03_modules"]
        mine = of(ours["03_modules"], student)
        assert {f"{e.replace('.', '-')}-hidden": p for e, p in mine.items()} == scores
        assert sum(scores.values()) == total
