"""What check cells call: questions, verdicts, seeded inputs, values for the grader."""

import random
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

from pytorch_lab import checks, surroundings
from pytorch_lab.checks import registry
from pytorch_lab.checks.expect import Expect
from pytorch_lab.errors import CheckFailed, UsageError
from tests.cells import HINTS, Notebook

WHY = "Adding is not doubling."


@pytest.fixture
def notebook(monkeypatch):
    monkeypatch.setattr(registry, "_checks", {})
    return Notebook()


# ---------------------------------------------------------------- the questions


def fails(question, *args, **kwargs):
    with pytest.raises(CheckFailed) as caught:
        question(*args, **kwargs)
    return str(caught.value)


class Liar:
    def __eq__(self, other):
        return True

    def __bool__(self):
        return True

    def __str__(self):
        return "a liar"

    __hash__ = None


def test_equal():
    expect = Expect()
    expect.equal(torch.ones(2), torch.ones(2), WHY, name="y")
    assert fails(expect.equal, 3, 4, WHY, name="n") == (
        "Adding is not doubling. (n: expected 4, got 3)"
    )
    assert fails(expect.equal, Liar(), 4, WHY, name="n").startswith(
        "Adding is not doubling. (n: expected a tensor, number, "
    )
    assert "got numpy.ndarray; give a tensor" in fails(
        expect.equal, np.ones(2), torch.ones(2), WHY, name="n"
    )
    with pytest.raises(UsageError, match="got object"):
        expect.equal(4, object(), WHY, name="n")


@pytest.mark.parametrize("yes", [True, torch.tensor(True), torch.tensor([True])])
def test_true(yes):
    assert Expect().true(yes, WHY) is None


NOT_TRUE = [
    False,
    None,
    1,
    0,
    "yes",
    Liar(),
    torch.tensor(False),
    torch.ones(2) == 1,
    torch.ones(()),
]


@pytest.mark.parametrize("no", NOT_TRUE, ids=str)
def test_nothing_but_true_is_true(no):
    assert fails(Expect().true, no, WHY) == WHY


def test_raises():
    expect = Expect()
    error = expect.raises(ZeroDivisionError, lambda: 1 / 0, WHY)
    assert str(error) == "division by zero"
    assert fails(expect.raises, ValueError, lambda: None, WHY) == (
        "Adding is not doubling. (expected ValueError, got no error)"
    )
    assert fails(expect.raises, ValueError, lambda: 1 / 0, WHY) == (
        "Adding is not doubling. (expected ValueError, got ZeroDivisionError: division by zero)"
    )


# ---------------------------------------------------------------- registering


def test_registering_wants_an_id_and_three_hints():
    with pytest.raises(UsageError, match=r"an id like '03\.2' or 'mean', got 'the third'"):
        checks.visible("the third", hints=HINTS)
    for hints in (HINTS[:2], "abc", ("a", "b", " "), ("a", "b", 3)):
        with pytest.raises(UsageError, match=r"expected three sentences of growing help, got "):
            checks.visible("00.1", hints=hints)


def test_any_answers_id_names_a_check_and_hints_may_be_left_out():
    checks.visible("square-root_2")(lambda expect: expect.equal(1, 1, WHY, name="one"))
    assert str(checks.run("square-root_2")) == "square-root_2 ✓ passed"


def test_an_exercise_without_its_check(notebook):
    with pytest.raises(
        UsageError,
        match=r"expected an exercise whose check has been run here \(none so far\), got '09\.9'; "
        r"run the cell that begins with @checks\.visible",
    ):
        checks.exercise("09.9")
    notebook.check()
    with pytest.raises(UsageError, match=r"run here \(00\.1\), got '09\.9'"):
        checks.run("09.9")


def test_every_name_of_the_package_loads():
    for name in checks.__all__:
        assert callable(getattr(checks, name))
    with pytest.raises(AttributeError, match=r"pytorch_lab.checks has no 'nope'; it has Draw, "):
        checks.nope  # noqa: B018


# ---------------------------------------------------------------- verdicts

STATES = {
    # what stands in the answer cell: state, text
    "nothing yet": ("", "open", "The check looks for `double`. Run the cell that defines it."),
    "stub": (
        "def double(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()\n",
        "open",
        "Your turn: line 3 of the answer still raises `NotImplementedError`.",
    ),
    "wrong": (
        "def double(x):\n    return x + 2\n",
        "failed",
        "Adding is not doubling. (double(5): expected 10, got 7)",
    ),
    "wrong type": (
        "def double(x):\n    return 2.0 * x\n",
        "failed",
        "Adding is not doubling. (double(5): expected an int, got a float)",
    ),
    "raises": (
        "def helper(x):\n    return x + 'a'\n\ndef double(x):\n    return helper(x)\n",
        "raised",
        "TypeError in your line 2, `return x + 'a'`: unsupported operand type(s) for +: "
        "'int' and 'str'",
    ),
    "raises in torch": (
        "def double(x):\n    return torch.nn.Linear(2, 3)(torch.ones(x))\n",
        "raised",
        "RuntimeError in your line 2, `return torch.nn.Linear(2, 3)(torch.ones(x))`: "
        "mat1 and mat2 shapes cannot be multiplied (1x5 and 2x3)",
    ),
    "a name of its own is missing": (
        "def double(x):\n    return factor * x\n",
        "raised",
        "NameError in your line 2, `return factor * x`: name 'factor' is not defined",
    ),
    "torch has not implemented it": (
        "class Net(torch.nn.Module):\n    pass\n\ndef double(x):\n    return Net()(x)\n",
        "raised",
        "NotImplementedError in your line 5, `return Net()(x)`: Module [Net] is missing the "
        'required "forward" function',
    ),
    "not callable": (
        "double = 3\n",
        "raised",
        'TypeError while the check used your answer at `expect.equal(double(5), 10, "Adding is '
        'not doubling.", name="double(5)")`: \'int\' object is not callable',
    ),
    "exit": (
        "def double(x):\n    raise SystemExit(0)\n",
        "raised",
        "SystemExit in your line 2, `raise SystemExit(0)`: 0",
    ),
    "interrupted": (
        "def double(x):\n    raise KeyboardInterrupt\n",
        "raised",
        "Interrupted in your line 2, `raise KeyboardInterrupt`: is there a loop that never ends?",
    ),
    "endless recursion": (
        "def double(x):\n    return double(x)\n",
        "raised",
        "RecursionError in your line 2, `return double(x)`: maximum recursion depth exceeded",
    ),
    "an error of its own kind": (
        "class Mine(BaseException):\n    def __str__(self):\n        1 / 0\n\n"
        "def double(x):\n    raise Mine\n",
        "raised",
        "Mine in your line 6, `raise Mine`.",
    ),
    "warning as error": (
        "def double(x):\n    warnings.warn('careful')\n    return 2 * x\n",
        "passed",
        "",
    ),
    "right": ("def double(x):\n    return 2 * x\n", "passed", ""),
}


@pytest.mark.parametrize(("answer", "state", "message"), STATES.values(), ids=STATES)
def test_verdicts(notebook, answer, state, message):
    notebook.cell(answer)
    notebook.check()
    verdict = checks.run("00.1")
    assert (verdict.state, verdict.message) == (state, message)
    word = {"open": "○ open", "failed": "✗ not yet", "raised": "✗ error", "passed": "✓ passed"}
    assert str(verdict) == f"00.1 {word[state]}" + (f": {message}" if message else "")


def test_the_check_sees_the_latest_answer(notebook):
    notebook.check()
    assert checks.run("00.1").state == "open"
    notebook.cell("def double(x):\n    return x\n")
    assert checks.run("00.1").state == "failed"
    notebook.cell("def double(x):\n    return x + x\n")
    assert checks.run("00.1").state == "passed"


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("", "open"),
        ("def double(x):\n    raise NotImplementedError\n", "open"),
        ("def double(x):\n    return 1\n", "failed"),
        ("def double(x):\n    return missing\n", "failed"),
        ("def double(x):\n    raise ValueError\n", "passed"),
    ],
)
def test_raises_tells_a_missing_answer_from_a_wrong_one(notebook, answer, state):
    notebook.check(
        "def check(expect):\n"
        "    expect.raises(ValueError, lambda: double('a'), 'Text cannot be doubled.')\n"
    )
    notebook.cell(answer)
    assert checks.run("00.1").state == state


def test_what_the_answer_prints_is_kept_and_bounded(notebook, capsys):
    notebook.check()
    notebook.cell("def double(x):\n    print('x is', x)\n    warnings.warn('careful\\nnow')\n")
    assert checks.run("00.1").printed == "x is 5\nUserWarning: careful"
    notebook.cell("def double(x):\n    print('x' * 100_000)\n")
    printed = checks.run("00.1").printed
    assert printed == "x" * 4000 + "\n… and more"
    assert capsys.readouterr().out == ""


def state_of_everything():
    return {
        "torch": torch.get_rng_state().tolist(),
        "python": random.getstate(),
        "numpy": [np.asarray(x).tolist() for x in np.random.get_state()],  # noqa: NPY002
        "grad": torch.is_grad_enabled(),
        "dtype": torch.get_default_dtype(),
        "filters": list(warnings.filters),
        "stdout": sys.stdout,
    }


@pytest.mark.parametrize("end", ["return 10", "raise ValueError"])
def test_a_check_leaves_everything_as_it_was(notebook, end):
    notebook.check()
    notebook.cell(f"""
def double(x):
    torch.rand(3), random.random(), np.random.rand()
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)
    warnings.simplefilter("ignore")
    {end}
""")
    before = state_of_everything()
    assert checks.run("00.1").state in ("passed", "raised")
    assert state_of_everything() == before


def test_a_check_gives_the_same_verdict_each_time(notebook):
    notebook.check("def check(expect):\n    expect.equal(double(5), 0.0, 'Why.', name='random')\n")
    notebook.cell("def double(x):\n    return torch.rand(()).item() + random.random()\n")
    torch.rand(3), random.random()
    first = checks.run("00.1")
    assert first.state == "failed"
    torch.rand(3), random.random()
    assert checks.run("00.1") == first


# ---------------------------------------------------------------- seeded inputs

DRAWN = """
from pytorch_lab import checks
d = checks.draw("03.2")
print(d.integer(0, 1000), d.choice("abcdef"), d.randn(2).tolist(), d.rand(1).tolist())
"""


@pytest.fixture
def seeded():
    yield
    checks.seed(0)


def test_draws_are_the_same_in_every_process(seeded):
    outputs = {
        subprocess.run(
            [sys.executable, "-c", DRAWN],
            env={"PYTHONHASHSEED": hashing, "PATH": ""},
            capture_output=True, text=True, check=True,
        ).stdout
        for hashing in ("1", "2")
    }  # fmt: skip
    checks.draw("01.1").randn(100)
    d = checks.draw("03.2")
    here = f"{d.integer(0, 1000)} {d.choice('abcdef')} {d.randn(2).tolist()} {d.rand(1).tolist()}\n"
    assert outputs == {here}


def test_seed_and_exercise_make_the_stream(seeded):
    def stream(number, exercise):
        checks.seed(number)
        return tuple(checks.draw(exercise).randn(4).tolist())

    streams = {stream(n, e) for n in (0, 1, -1, 2**80) for e in ("03.2", "03.1", "13.2")}
    assert len(streams) == 12
    assert stream(1, "03.2") == stream(1, "03.2")
    with pytest.raises(UsageError, match=r"seed\(number\) expected an int, got '7'\."):
        checks.seed("7")


def test_draws_have_the_promised_range_and_kind():
    draw = checks.draw("00.1")
    assert {draw.integer(2, 5) for _ in range(200)} == {2, 3, 4}
    assert type(draw.integer(2, 5)) is int
    assert {draw.choice(("a", "b")) for _ in range(100)} == {"a", "b"}
    normal, even = draw.randn(10_000), draw.rand(10_000)
    assert (normal.shape, normal.dtype, normal.device.type) == ((10_000,), torch.float32, "cpu")
    assert abs(normal.mean().item()) < 0.05
    assert abs(normal.std().item() - 1) < 0.05
    assert 0 <= even.min().item() < 0.01
    assert 0.99 < even.max().item() < 1
    assert draw.rand(2, 0, dtype=torch.float64).dtype == torch.float64
    assert draw.randn().shape == ()
    with pytest.raises(UsageError, match=r"expected low < high, got 3 and 3\."):
        draw.integer(3, 3)
    with pytest.raises(UsageError, match="expected at least one option, got none"):
        draw.choice([])


def test_draws_do_not_hang_on_defaults_of_torch():
    want = checks.draw("00.1").randn(3)
    torch.set_default_dtype(torch.float64)
    try:
        got = checks.draw("00.1").randn(3)
    finally:
        torch.set_default_dtype(torch.float32)
    assert got.dtype == torch.float32
    assert got.tolist() == want.tolist()


def test_draw_seeds_what_the_answer_may_use():
    def drawn():
        checks.draw("00.1")
        return torch.rand(2).tolist(), random.random(), np.random.rand()  # noqa: NPY002

    with surroundings.kept():
        first = drawn()
        torch.rand(1), random.random()
        assert drawn() == first


# ---------------------------------------------------------------- showing values to the grader


def test_reveal_in_a_terminal(capsys):
    checks.reveal("the weight", torch.ones(2, 3))
    checks.reveal("names", ["a", "b"])
    checks.reveal("count", 3)
    assert capsys.readouterr().out == (
        "the weight: Tensor of shape (2, 3), float32\nnames: list of 2\ncount: int\n"
    )


def test_reveal_refuses_what_cannot_be_compared():
    with pytest.raises(
        UsageError, match=r"reveal\('net', value\): expected a tensor, .* got torch"
    ):
        checks.reveal("net", torch.nn.Linear(1, 1))
    with pytest.raises(UsageError, match=r"expected a label such as 'loss', got 3\."):
        checks.reveal(3, 4)
