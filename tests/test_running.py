"""What a snippet may do, what is said of it, and what it leaves behind."""

import random
import sys

import numpy
import pytest
import torch
from jupyter_client.manager import start_new_kernel

from pytorch_lab.widgets.running import OUTPUT_LIMIT, run, same

# ------------------------------------------------------------------------------ what is said of it

SAYS = {
    "prints": ("print('a')\nprint('b')", None, "a\nb"),
    "a value": ("x = 2", "x + 1", "→ 3"),
    "a float with six digits": ("x = 2 / 3", "x", "→ 0.666667"),
    "stderr as well": ("import sys\nsys.stderr.write('e')", None, "e"),
    "an error and its line": ("x = 1\n\nx.y", None, None),
    "a missing bracket": ("x = 1\ny = (2\n", None, "SyntaxError: '(' was never closed\n  line 2: "
                          "y = (2"),
    "a wrong measure": ("x = 1", "y", "NameError: name 'y' is not defined"),
    "exit": ("import sys\nprint(1)\nsys.exit(3)", None, "1\nSystemExit: 3\n  line 3: sys.exit(3)"),
    "nothing": ("x = 1", None, "It runs without a word."),
}  # fmt: skip
SAYS["an error and its line"] = (
    "x = 1\n\nx.y", None, "AttributeError: 'int' object has no attribute 'y'\n  line 3: x.y"
)  # fmt: skip


@pytest.mark.parametrize("name", SAYS)
def test_says(name):
    code, measure, expected = SAYS[name]
    assert str(run(code, measure=measure)) == expected


def test_error_inside_torch_names_the_line_of_the_snippet():
    fault = run("import torch\ndef f(x):\n    return x @ torch.ones(3)\n\nf(torch.ones(2))").fault
    assert fault.type == "RuntimeError"
    assert (fault.line, fault.source) == (3, "return x @ torch.ones(3)")


def test_traceback_shows_the_snippet():
    """linecache knows the snippet, so a traceback that a snippet prints reads well."""
    said = run("import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n"
               "    traceback.print_exc()").stdout  # fmt: skip
    assert 'File "<snippet>", line 3' in said
    assert "    1 / 0\n" in said


def test_warning_is_heard_each_time():
    code = "import torch\nfor _ in range(3):\n    torch.range(0, 1)"
    first, second = run(code), run(code)
    assert first.warnings == second.warnings
    assert len(first.warnings) == 1
    assert first.warnings[0].startswith("UserWarning: torch.range is deprecated")
    assert "Triggered" not in first.warnings[0]


def test_warning_of_torch_that_comes_once_per_process_is_heard_each_time():
    code = "import torch\ntorch.ones(2, 2, 2).T"
    first, second = run(code), run(code)
    assert "The use of `x.T` on tensors of dimension other than 2" in first.warnings[0]
    assert second == first


def test_a_deprecation_warning_is_heard_only_as_in_a_notebook():
    said = "import warnings\nwarnings.warn('old', DeprecationWarning)"
    assert run(said).warnings == ("DeprecationWarning: old",)
    hidden = "import torch\ntorch.jit.script(torch.nn.Linear(1, 1))"
    assert run(hidden).warnings == ()


def test_output_without_end_is_cut():
    said = run("for k in range(10**5):\n    print('line', k)").stdout
    assert len(said) < OUTPUT_LIMIT + 100
    assert said.endswith("… the rest is not shown\n")


def test_long_messages_are_broken():
    long = "word " * 60
    code = "import warnings\ntext = 'word ' * 60\nwarnings.warn(text)\nraise ValueError(text)"
    said = run(code)
    assert max(map(len, str(said).splitlines())) <= 76
    assert said.fault.message == long


def test_addresses_are_taken_out():
    said = run("class Net: pass\nprint(Net())", measure="Net()")
    assert said.stdout == "<__main__.Net object>\n"
    assert said.shown == "<__main__.Net object>"


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ("[3, 2.5, 2]", (3.0, 2.5, 2.0)),
        ("[torch.tensor(1.0), torch.tensor([0.5])]", (1.0, 0.5)),
        ("['a']", ()),
        ("[torch.ones(2)]", ()),
        ("(1, 2)", ()),
    ],
)
def test_losses(losses, expected):
    assert run(f"import torch\nlosses = {losses}").losses == expected


def test_losses_are_kept_when_a_later_line_raises():
    assert run("losses = [2, 1]\nlosses.fall()").losses == (2.0, 1.0)


def test_healed_is_true_false_or_doubted():
    assert run("x = 1", healed="x == 1").healed
    assert not run("x = 2", healed="x == 1").healed
    doubt = run("y = 1", healed="x == 1")
    assert (doubt.healed, doubt.doubt) == (False, "NameError: name 'x' is not defined")
    assert not run("x = 1\n1 / 0", healed="x == 1").healed


def test_pickle_finds_the_classes_of_a_snippet():
    code = "import pickle\nclass Net:\n    size = 3\nprint(pickle.loads(pickle.dumps(Net())).size)"
    assert run(code).stdout == "3\n"


# --------------------------------------------------------------------------- what it leaves behind


def global_states():
    return {
        "random": random.getstate(),
        "numpy": [str(part) for part in numpy.random.get_state()],  # noqa: NPY002
        "torch": torch.get_rng_state().tolist(),
        "grad": torch.is_grad_enabled(),
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "anomaly": torch.is_anomaly_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warn": torch.is_warn_always_enabled(),
        "main": sys.modules["__main__"],
        "stdout": sys.stdout,
        "modes": torch.overrides._get_current_function_mode_stack(),
    }


MESS = """
import random, numpy, torch, sys
random.random(), numpy.random.rand(3), torch.rand(3), torch.manual_seed(7)
torch.set_grad_enabled(False)
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
torch.autograd.set_detect_anomaly(True)
torch.use_deterministic_algorithms(True)
print(sys.stdout)
"""


@pytest.mark.parametrize("end", ["", "1 / 0", "raise KeyboardInterrupt", "sys.exit()"])
def test_leaves_the_kernel_as_it_was(end):
    torch.manual_seed(3)
    before = global_states()
    run(MESS + end)
    assert global_states() == before


def test_runs_alike_each_time_whatever_was_drawn_before():
    code = "import torch, random, numpy"
    measure = "(torch.rand(2).tolist(), random.random(), float(numpy.random.rand()))"
    torch.manual_seed(1)
    first = run(code, measure=measure).value
    torch.manual_seed(2)
    assert run(code, measure=measure).value == first


def test_namespace_is_fresh():
    run("leak = 1")
    assert run("leak").fault.type == "NameError"


# ---------------------------------------------------------------------------------------- equality


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        (0.1 + 0.2, 0.3, True),
        (1.0, 1.00001, False),
        (float("nan"), float("nan"), True),
        (float("inf"), float("inf"), True),
        (float("inf"), float("-inf"), False),
        ([1.0, [2]], [1.0, [2]], True),
        ([1], [1, 2], False),
        ({"a": 0.3}, {"a": 0.1 + 0.2}, True),
        ({"a": 1}, {"b": 1}, False),
        (torch.ones(2), torch.ones(2), True),
        (torch.ones(2), torch.ones(3), False),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), False),
        (torch.ones(2), torch.zeros(2), False),
        ("a", "a", True),
        (None, None, True),
    ],
)
def test_same(a, b, expected):
    assert same(a, b) is expected
    assert same(b, a) is expected


# --------------------------------------------------------------------------------- the interrupter


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore:.*TCP without encryption.*")
def test_kernel_interrupt_ends_a_run_that_does_not_end():
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        heard = []
        made = (
            "import pytorch_lab as lab\n"
            "patient = lab.clinic('x.c', 'Waits', code='done = False', healed='done',\n"
            "    causes={'a': 'b', 'c': 'd'}, cause='a', fix='done = True')\n"
            "print(patient.model_id)"
        )
        client.execute_interactive(made, timeout=120, output_hook=heard.append)
        model = next(m["content"]["text"] for m in heard if m["msg_type"] == "stream").strip()
        endless = "from IPython.display import display\ndisplay(1)\nwhile True: pass"
        question = {"ask": "run", "with": {"code": endless}}
        data = {"method": "custom", "content": question}
        client.shell_channel.send(client.session.msg("comm_msg", {"comm_id": model, "data": data}))
        result = None
        while result is None:
            message = client.get_iopub_msg(timeout=60)
            if message["msg_type"] == "display_data":  # the snippet is at it
                manager.interrupt_kernel()
            if message["msg_type"] == "comm_msg":
                state = message["content"]["data"].get("state", {}).get("state", {})
                result = state.get("result")
        assert result["run"]["interrupted"] is True
        assert result["healed"] is False
        assert state["running"] is False
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
