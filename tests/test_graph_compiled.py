"""Compiled code is one op and one node, runs as compiled, and has the gradients it has alone."""

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules import module as nn_module

from pytorch_lab.graph import GraphRecord, compare, record, why_none
from pytorch_lab.graph.torch_private import open_modes


@pytest.fixture(autouse=True)
def _nothing_compiled() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def wave(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x * w).sin().exp()


def leaf() -> torch.Tensor:
    return torch.tensor([0.1, 0.5, 0.9], requires_grad=True)


def compiled_ops(rec: GraphRecord) -> list[str]:
    return [op.name for op in rec.ops if op.kind == "compiled"]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_function_is_one_op(backend: str) -> None:
    compiled, w, x = torch.compile(wave, backend=backend), leaf(), torch.ones(3)
    plain = leaf()
    (compiled(x, plain) * 2).sum().backward()
    torch._dynamo.reset()
    rec = record(lambda: (compiled(x, w) * 2).sum(), backward=True)
    assert rec.error is None
    assert [op.name for op in rec.ops] == ["compiled wave", "mul", "sum"]
    op = rec.ops[0]
    assert [rec.values[place].name for place in op.inputs] == ["x", "w"]
    assert rec.ops[1].inputs == op.outputs
    assert op.site.function.endswith("<lambda>")
    assert any(note.startswith("compiled code is one op") for note in rec.notes)
    assert torch.equal(w.grad, plain.grad)
    if backend == "aot_eager":
        assert [rec.nodes[place].name for place in op.nodes] == ["CompiledFunctionBackward"]
        assert rec.nodes[op.node].kind == "compiled"
        assert any("one op and one node" in note for note in rec.notes)
        assert op.saved_bytes > 0
    else:
        assert len(op.nodes) == 3


def test_it_really_runs_compiled_and_only_once() -> None:
    runs: list[str] = []

    def backend(module: torch.fx.GraphModule, _: Any) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            runs.append("compiled")
            return module(*args)

        return run

    compiled = torch.compile(wave, backend=backend)
    rec = record(compiled, torch.ones(3), leaf())
    assert runs == ["compiled"]
    assert [op.name for op in rec.ops] == ["compiled wave"]


def test_what_is_compiled_before_is_not_compiled_again_for_a_recording() -> None:
    compiled_for: list[int] = []

    def backend(module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        compiled_for.append(len(inputs))
        return module

    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    compiled = torch.compile(net, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(torch.ones(1, 3))
        record(compiled, torch.ones(1, 3))
        compiled(torch.ones(1, 3))
    assert len(compiled_for) == 1


@pytest.mark.parametrize("way", ["torch.compile", "module.compile"])
def test_a_compiled_module_has_its_path_and_its_parameters(way: str) -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    if way == "module.compile":
        net.compile(backend="aot_eager")
        model: Any = net
    else:
        model = torch.compile(net, backend="aot_eager")
    rec = record(model, torch.ones(1, 3))
    op = rec.ops[0]
    assert len(rec.ops) == 1
    assert op.name == "compiled Sequential"
    assert rec.calls[op.call].type == "Sequential"
    prefix = "" if way == "module.compile" else "_orig_mod."
    read = [rec.values[place].name for place in op.inputs]
    assert read[1:] == [prefix + "0.weight", prefix + "0.bias"]
    assert {node.parameter for node in rec.nodes if node.kind == "accumulate"} == set(read[1:])


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # dynamo asks for it
def test_between_other_ops_and_after_them_the_recording_goes_on() -> None:
    compiled = torch.compile(wave, backend="eager")
    net = nn.Linear(3, 3)

    def step(x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = compiled(net(x), x)
        return net(x).sum()

    rec = record(step, torch.ones(3))
    assert rec.error is None
    assert [op.name for op in rec.ops] == [*["linear", "compiled wave"] * 2, "linear", "sum"]
    assert [op.module for op in rec.ops if op.name == "linear"] == ["net"] * 3


def test_an_error_inside_ends_the_op_and_is_kept() -> None:
    @torch.compile(backend="eager")
    def broken(x: torch.Tensor) -> torch.Tensor:
        return x @ x

    def caught(x: torch.Tensor) -> torch.Tensor:
        try:
            broken(x)
        except RuntimeError:
            return x * 2
        return x

    rec = record(caught, torch.ones(2, 3))
    assert [(op.name, op.outputs != ()) for op in rec.ops] == [
        ("compiled broken", False),
        ("mul", True),
    ]
    rec = record(broken, torch.ones(2, 3))
    assert rec.error is not None
    assert compiled_ops(rec) == ["compiled broken"]


def test_recordings_in_one_another() -> None:
    """All of them step aside, and come back in their order."""
    compiled = torch.compile(wave, backend="eager")
    inner: list[GraphRecord] = []

    def inside(x: torch.Tensor) -> torch.Tensor:
        inner.append(record(lambda: compiled(x, x) + 1))
        return compiled(x, x) + 2

    outer = record(inside, torch.ones(3))
    assert [op.name for op in inner[0].ops] == ["compiled wave", "add"]
    assert [op.name for op in outer.ops] == ["compiled wave", "add"] * 2
    assert open_modes() == []


def test_everything_is_as_it_was() -> None:
    from torch._dynamo import eval_frame

    before = eval_frame._maybe_set_eval_frame, torch.compile
    record(torch.compile(wave, backend="eager"), torch.ones(3), torch.ones(3))
    assert (eval_frame._maybe_set_eval_frame, torch.compile) == before
    assert not nn_module._global_forward_hooks
    assert not nn_module._global_forward_pre_hooks


def test_compiling_inside_of_a_first_recording() -> None:
    """In a fresh Python nothing of the compiler is loaded when the recording starts."""
    program = """
import sys, torch
from pytorch_lab.graph import record
assert "torch._dynamo" not in sys.modules
plain = torch.compile
def step(x):
    return torch.compile(lambda y: y.sin() * 2, backend="eager")(x) + 1
rec = record(step, torch.ones(3, requires_grad=True))
assert rec.error is None, rec.error
assert torch.compile is plain
from torch._dynamo import eval_frame
assert "torch_lab" not in eval_frame._maybe_set_eval_frame.__module__
print([op.name for op in rec.ops])
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "['compiled <lambda>', 'add']\n", run.stderr


def test_a_torch_that_does_not_say_when_compiled_code_begins_runs_it_op_by_op(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pytorch_lab.graph.recording.compiled._TELLS", "_gone")
    rec = record(torch.compile(wave, backend="eager"), torch.ones(3), leaf())
    assert [op.name for op in rec.ops] == ["mul", "sin", "exp"]
    assert torch._dynamo.eval_frame._stance.stance == "default"


def test_told_not_to_compile_it_runs_op_by_op_and_that_is_said() -> None:
    compiled = torch.compile(wave, backend="eager")
    with torch.compiler.set_stance("force_eager"):
        rec = record(compiled, torch.ones(3), leaf())
    assert [op.name for op in rec.ops] == ["mul", "sin", "exp"]
    assert any("uncompiled" in note for note in rec.notes)


def test_comparing_and_explaining_look_into_compiled_code() -> None:
    @torch.compile(backend="eager")
    def branch(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = x * 2
        return x.exp()

    diff = compare(branch, torch.ones(3), -torch.ones(3))
    assert diff.branch is not None
    assert diff.branch.condition == "x.sum() > 0"

    w = leaf()
    cut = torch.compile(lambda: (w.detach() * 2).sum(), backend="eager")
    assert why_none(w, cut).cause == "detached"
