"""Recording: custom Functions, checkpoints, transforms, wrappers, generators."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from pytorch_lab.graph import record
from tests.recorded import Cube, check, find, leaf, names, net, text_of


class Halves(torch.autograd.Function):
    @staticmethod
    def forward(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[:1].clone(), x[1:].clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cat([a, b])


def test_custom_functions_hold_what_ran_in_them() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        a, b = Halves.apply(Cube.apply(x) * 2)
        return (a + b).sum()

    w = leaf(2)
    rec = record(run, w, backward=True)
    check(rec)
    outer = [(op.name, op.kind) for op in rec.ops if op.inside is None]
    assert outer == [
        ("Cube", "function"),
        ("mul", "op"),
        ("Halves", "function"),
        ("add", "op"),
        ("sum", "op"),
    ]
    cube, halves = find(rec, "Cube"), find(rec, "Halves")
    assert [op.name for op in rec.ops if op.inside == cube.index] == ["mul", "mul"]
    assert rec.nodes[cube.node or -1].name == "CubeBackward"
    assert rec.nodes[cube.node or -1].kind == "function"
    assert rec.nodes[cube.node or -1].op == cube.index
    assert [rec.values[i].name for i in cube.inputs] == ["x"]
    assert len(halves.outputs) == 2
    assert text_of(cube) == "Cube.apply(x)"
    assert torch.allclose(w.grad, 6 * w * w)


def test_a_function_called_twice_in_a_row_is_two_ops() -> None:
    rec = record(lambda x: Cube.apply(Cube.apply(x)), leaf(2))
    check(rec)
    assert [op.name for op in rec.ops if op.kind == "function"] == ["Cube", "Cube"]
    assert {op.node for op in rec.ops if op.kind == "function"} == {0, 1}


class Hidden(torch.autograd.Function):
    """Nothing in it is a torch function that could be seen."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


def test_a_function_that_nobody_saw_shows_by_its_node() -> None:
    apply = Hidden.apply

    def run(x: torch.Tensor) -> torch.Tensor:
        with torch._C.DisableTorchFunction():  # nothing inside is seen
            y = apply(x)
        return y * 2

    rec = record(run, leaf(2))
    check(rec)
    assert [op.name for op in rec.ops] == ["Hidden", "mul"]
    assert rec.ops[0].kind == "function"
    assert rec.ops[0].outputs == rec.ops[1].inputs[:1]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant: bool) -> None:
    model = net()
    x = leaf(2, 4)
    rec = record(lambda: checkpoint(model, x, use_reentrant=reentrant).sum(), backward=True)
    check(rec)
    region = find(rec, "checkpoint")
    assert region.kind == "checkpoint"
    inside = [op.name for op in rec.ops if op.inside == region.index]
    assert inside == ["linear", "relu", "linear"]
    assert any("checkpoint" in note for note in rec.notes)
    if reentrant:
        assert rec.nodes[region.node or -1].name == "CheckpointFunctionBackward"
        assert rec.nodes[region.node or -1].kind == "checkpoint"
    else:
        assert "AddmmBackward0" in [node.name for node in rec.nodes]
    plain = leaf(2, 4)
    model(plain).sum().backward()
    assert torch.equal(x.grad, plain.grad)


def test_hooks_of_the_reader_run_and_are_counted() -> None:
    w = leaf(2)
    w.register_hook(lambda gradient: gradient * 10)
    seen: list[str] = []
    model = nn.Linear(2, 1)
    model.register_forward_hook(lambda *_: seen.append("forward"))
    model.register_full_backward_hook(lambda *_: seen.append("backward"))
    rec = record(lambda: model(w[None] * 1).sum(), backward=True)
    check(rec)
    assert seen == ["forward", "backward"]
    assert torch.allclose(w.grad, 10 * model.weight[0])
    assert next(node for node in rec.nodes if node.parameter == "w").hooks == 1


def test_transforms_of_functions() -> None:
    def energy(v: torch.Tensor) -> torch.Tensor:
        return v.sin().sum()

    def run(x: torch.Tensor) -> torch.Tensor:
        return torch.func.vmap(torch.func.grad(energy))(x) * 2

    x = torch.ones(3, 2)
    rec = record(run, x)
    check(rec)
    vmap, grad = (op for op in rec.ops if op.kind == "transform")
    assert (vmap.name, grad.name, grad.inside) == ("vmap", "grad", vmap.index)
    assert find(rec, "sin").inside == grad.index
    last = rec.ops[-1]
    assert (last.name, last.inside) == ("mul", None)
    assert last.inputs[0] in vmap.outputs
    for transform in (torch.func.jacrev, torch.func.jacfwd, torch.func.hessian):
        check(record(lambda t=transform: t(energy)(x)))


def test_sparse_and_complex() -> None:
    rec = record(
        lambda w: (
            torch.sparse.mm(torch.eye(3).to_sparse(), w).sum()
            + torch.view_as_real(torch.fft.fft(w[0].to(torch.complex64))).sum()
        ),
        leaf(3, 3),
        values="full",
        backward=True,
    )
    assert rec.error is None
    check(rec)
    sparse = rec.values[find(rec, "to_sparse").outputs[0]]
    assert sparse.bytes == 3 * 4 + 6 * 8
    assert sparse.stats is not None
    assert sparse.stats.zeros == pytest.approx(2 / 3)
    assert "complex64" in {value.dtype for value in rec.values}


@pytest.mark.parametrize("unrolled", [False, True])
def test_recurrent_nets(unrolled: bool) -> None:
    fused, cell = nn.LSTM(3, 4), nn.LSTMCell(3, 4)

    def run(x: torch.Tensor) -> torch.Tensor:
        if not unrolled:
            return fused(x)[0]
        state = None
        for t in range(len(x)):
            state = cell(x[t], state)
        return state[0]

    rec = record(run, torch.ones(5, 2, 3), backward=True)
    check(rec)
    assert rec.error is None
    assert names(rec).count("lstm_cell" if unrolled else "lstm") == (5 if unrolled else 1)
    assert len(rec.backward_order) == len(rec.nodes)


def test_wrappers_parametrizations_and_tied_weights() -> None:
    model = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
    rec = record(nn.DataParallel(model), torch.ones(1, 3))
    check(rec)
    assert find(rec, "linear").module == "module"
    assert {value.name for value in rec.values if value.kind == "parameter"} == {
        "module.bias",
        "module.parametrizations.weight.original0",
        "module.parametrizations.weight.original1",
    }
    tied = net()
    tied[2] = nn.Linear(3, 4)
    tied[2].weight = nn.Parameter(torch.ones(4, 3))
    tied.add_module("3", nn.Linear(4, 3))
    tied[3].weight = tied[0].weight
    rec = record(tied, torch.ones(1, 4), backward=True)
    shared = [node for node in rec.nodes if node.parameter == "0.weight"]
    assert len(shared) == 1
    assert sum(node.next.count(shared[0].index) for node in rec.nodes) == 2


def test_a_wrapper_of_distributed_training(tmp_path: Any) -> None:
    file = tmp_path / "store"
    torch.distributed.init_process_group("gloo", init_method=f"file://{file}", rank=0, world_size=1)
    try:
        model = nn.parallel.DistributedDataParallel(net())
        rec = record(lambda x: model(x).sum(), torch.ones(1, 4), backward=True)
    finally:
        torch.distributed.destroy_process_group()
    check(rec)
    assert rec.error is None
    assert rec.ops[0].module == "model.module.0"
    assert rec.path_to("model.module.0.weight")


def test_generators() -> None:
    def steps(x: torch.Tensor) -> Iterator[torch.Tensor]:
        for _ in range(3):
            x = x * 2
            yield x

    rec = record(steps, leaf(2))
    assert names(rec) == ["mul"] * 3
    assert len(rec.outputs) == 3
    assert "3 items" in rec.notes[0]
