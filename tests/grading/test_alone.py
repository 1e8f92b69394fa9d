"""Exercises stand alone: what one leaves behind costs no other its points, and each end is told."""

import dataclasses
from pathlib import Path

import pytest

from pytorch_lab.grading.authoring.assignment import exercises
from pytorch_lab.grading.book.gradebook import Gradebook
from pytorch_lab.grading.notebooks import text
from pytorch_lab.grading.running import anywhere, judging
from pytorch_lab.grading.running.cell import ALONE
from pytorch_lab.grading.running.overlay import overlay
from pytorch_lab.warm import provisioner
from tests.assignments import cell_of, make_solution, make_submission

pytestmark = pytest.mark.heavy
TWICE = "def twice(x):\n    return x + x\n"
LATE = """
import threading, time, os
def wait():
    while "average" not in globals():
        time.sleep(0.01)
    os._exit(3)
threading.Thread(target=wait, daemon=True).start()
"""
GUESS = "import os\ndef average(numbers):\n    return float(os.urandom(4)[0])"
TELLS = """
kept = []
def twice(x):
    kept.append(x)
    raise ValueError(f"given {[each.tolist() for each in kept]}")
"""
HAND_IN = {
    "shadows": make_submission(e1=TWICE + "sum = 3\nlen = 4\nimport torch\ntorch.abs = None"),
    "patches": make_submission(e1=TWICE + "torch.Tensor.argmin = lambda self: 0"),
    "settings": make_submission(
        e1=TWICE + "torch.set_default_dtype(torch.float64); torch.set_grad_enabled(False)",
        e2="def closest(x):\n    return (x * torch.ones(7))[x.abs().argmin()]",
    ),
    "late": make_submission(e1=TWICE + LATE),
    "wrong": make_submission(e1=TWICE + "sum = 3", e2="def closest(x):\n    return x[0]"),
    "greedy": make_submission(e1="x = bytearray(3 << 30)", e2="x = torch.zeros(10**9)"),
    "ends": make_submission(
        e1="import os\nos._exit(7)",
        e2="import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        e3="import ctypes\nctypes.string_at(0)",
    ),
    "tells": make_submission(e1=TELLS, e2="def closest(x):\n    return twice(x)"),
    "exits": make_submission(e1="exit()", e2="import os\nos.abort()", e3=GUESS),
}
PASSED, ALONE_PASSED = ("passed", ""), ("passed", ALONE)
WITHOUT = "run in a fresh kernel without the answer to 03.1, which ended the kernel"
EXPECTED = {
    "shadows": [PASSED, PASSED, ALONE_PASSED],
    "patches": [PASSED, ALONE_PASSED, PASSED],
    "settings": [("failed", "twice nothing: expected dtype float32"), ALONE_PASSED, PASSED],
    "late": [PASSED, PASSED, ALONE_PASSED],
    "wrong": [PASSED, ("failed", "the closest to zero: expected "), ALONE_PASSED],
    "greedy": [
        ("raised", "out of memory (MemoryError) in line 1, x = bytearray(3 << 30)"),
        ("raised", "out of memory (RuntimeError) in line 1, x = torch.zeros(10**9)"),
        PASSED,
    ],
    "ends": [
        ("kernel_died", "the kernel ended while the answer ran (exit with code 7)"),
        ("kernel_died", "the kernel ended while the answer ran (killed: out of memory, or by its"),
        ("kernel_died", "the kernel ended while the answer ran (a crash: SIGSEGV)"),
    ],
    "tells": [
        ("raised", "ValueError: given "),
        ("raised", "ValueError in line 2, return twi"),
        PASSED,
    ],
    "exits": [
        ("kernel_died", "the kernel ended while the answer ran (it called exit)"),
        ("kernel_died", "the kernel ended while the answer ran (aborted, as native code does"),
        ("failed", "the average: expected "),
    ],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The assignment, what was handed in, the verdicts, and what was heard meanwhile."""
    solutions, name = make_solution(), Path("03_numbers.ipynb")
    cell_of(solutions, "03-1-check").source = "twice(torch.ones(2))"
    cell_of(solutions, "03-2-check").source = "closest(2 * torch.ones(2))"
    assignment = judging.Assignment(
        solutions, name, exercises(solutions, name), 0, True, 15, memory_bytes=1 << 30
    )
    notebooks = {who: overlay(solutions, nb).notebook for who, nb in HAND_IN.items()}
    book = Gradebook(f"sqlite:///{tmp_path_factory.mktemp('book') / 'book.sqlite'}")
    totals, heard = [], {}
    verdicts, ended = judging.judge(
        assignment,
        notebooks,
        book,
        1,
        begun=totals.append,
        heard=lambda who, theirs, seconds: heard.update({who: (theirs, seconds)}),
    )
    assert ended == ""
    yield assignment, notebooks, verdicts, (totals, heard)
    book.close()


@pytest.mark.parametrize("student", EXPECTED)
def test_each_exercise_has_the_verdict_that_it_has_alone(run, student):
    verdicts = run[2]
    got = [verdicts[student, f"03.{number}"] for number in (1, 2, 3)]
    for said, (status, reason) in zip(got, EXPECTED[student], strict=True):
        assert said.status == status, got
        assert said.reason.startswith(reason), got
        assert bool(said.reason) == bool(reason), got


def test_what_a_hidden_check_gave_is_not_there_to_be_told_in_a_visible_one(run):
    shown = [run[2]["tells", exercise].shown for exercise in ("03.1", "03.2")]
    assert shown == ["ValueError: given [[1.0, 1.0]]", "ValueError: given [[1.0, 1.0], [2.0, 2.0]]"]


def test_each_submission_is_heard_of_as_it_settles(run):
    _, notebooks, verdicts, (totals, heard) = run
    assert totals == [len(HAND_IN)]
    assert list(heard) == list(notebooks)
    for student, (theirs, seconds) in heard.items():
        assert theirs == {e: said for (who, e), said in verdicts.items() if who == student}
        assert seconds > 0


def test_a_second_run_says_the_same_and_tells_where_it_does_not(run):
    assignment, notebooks, verdicts, _ = run
    some = {who: notebooks[who] for who in ("patches", "exits")}
    found = judging.unstable(assignment, some, verdicts, 1)
    assert [(who, exercise) for who, exercise, *_ in found] == [("exits", "03.3")]
    first, second = found[0][2:]
    assert first.status == second.status == "failed"
    assert first.reason != second.reason


def test_one_submission_runs_anywhere_from_bytes_alone():
    """As a worker on another machine does it: nothing but bytes goes in, and records come out."""
    solutions = make_solution()
    revealed = anywhere.run(
        [text(overlay(solutions, solutions).notebook).encode()], anywhere.How()
    )[0]
    assert [record["status"] for record in revealed] == ["failed"] * 3  # nothing to compare with
    reference = {record["exercise"]: record["reveals"] for record in revealed}
    notebook = judging.prepared(overlay(solutions, HAND_IN["patches"]).notebook, reference)
    door = provisioner.door()
    records, ended = anywhere.run([notebook], anywhere.How(timeout_cell=15, memory_bytes=1 << 30))
    assert ended == ""
    assert [record["status"] for record in records] == ["passed"] * 3
    assert records[1]["reason"] == ALONE
    assert provisioner.door() is door  # kept warm for the next


def test_an_answer_that_was_lost_once_is_judged_once_more(tmp_path):
    """By a busy machine, or one short of memory; nothing but the machine remembers it here."""
    solutions, mark = make_solution(), str(tmp_path / "mark")
    del solutions.cells[6:]
    e1 = (
        f"import os\nif not os.path.exists({mark!r}):\n    os.mkdir({mark!r}); os._exit(9)\n{TWICE}"
    )
    made = overlay(solutions, make_submission(e1=e1)).notebook
    how = anywhere.How(sandbox=False)
    reveals = anywhere.run([text(overlay(solutions, solutions).notebook).encode()], how)[0]
    notebook = judging.prepared(made, {"03.1": reveals[0]["reveals"]})
    records, ended = anywhere.run([notebook], how)
    assert ended == ""
    assert [record["status"] for record in records] == ["passed"]
    assert Path(mark).exists()


def test_a_verdict_holds_for_the_points_that_were_asked_for():
    solutions, name = make_solution(), Path("03_numbers.ipynb")
    asked = exercises(solutions, name)
    other = [dataclasses.replace(asked[0], points=7.0), *asked[1:]]
    one, two = (judging.Assignment(solutions, name, each, 0, True, 30) for each in (asked, other))
    assert one.key(solutions) != two.key(solutions)
