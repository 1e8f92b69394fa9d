"""Recording: what ran, on which line, in which module, and that nothing is left behind."""

import gc
import itertools
import json
import linecache
import random
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import Any, ClassVar

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules import module as nn_module
from torch.utils.checkpoint import checkpoint

from pytorch_lab.errors import UsageError
from pytorch_lab.graph import GraphRecord, record
from pytorch_lab.graph.recording.sites import decode, is_readers
from pytorch_lab.graph.schema import KINDS, Op
from pytorch_lab.modules.outputs import tensors_of


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def leaf(*shape: int) -> torch.Tensor:
    return torch.linspace(0.1, 0.9, max(1, int(numpy.prod(shape)))).reshape(shape).requires_grad_()


def names(rec: GraphRecord) -> list[str]:
    return [op.name for op in rec.ops]


def find(rec: GraphRecord, name: str) -> Op:
    return next(op for op in rec.ops if op.name == name)


def text_of(op: Op) -> str:
    """The characters that the op's site points to."""
    assert op.columns is not None
    lines = linecache.getlines(op.file)[op.line - 1 : op.site.end_line]
    if len(lines) == 1:
        return lines[0][slice(*op.columns)]
    return "".join([lines[0][op.columns[0] :], *lines[1:-1], lines[-1][: op.columns[1]]])


def independent_walk(*results: torch.Tensor) -> tuple[int, int]:
    """How many nodes and edges are behind some results, by recursion's slow cousin."""
    nodes = {result.grad_fn for result in results if result.grad_fn is not None}
    edges = 0
    todo = list(nodes)
    while todo:
        for node, _ in todo.pop().next_functions:
            if node is not None:
                edges += 1
                if node not in nodes:
                    nodes.add(node)
                    todo.append(node)
    return len(nodes), edges


def check(rec: GraphRecord) -> None:
    """What holds of every record: all references lead somewhere, and back."""
    for i, op in enumerate(rec.ops):
        assert op.index == i
        assert op.kind in KINDS
        assert all(place < len(rec.values) for place in (*op.inputs, *op.outputs))
        assert op.inside is None or op.inside < i
        for place in op.nodes:
            assert rec.nodes[place].op == i
    for i, value in enumerate(rec.values):
        assert value.index == i
        assert value.storage < len(rec.storage_bytes)
        assert value.view_of is None or rec.values[value.view_of].storage == value.storage
        if value.op is not None:
            assert i in rec.ops[value.op].outputs
    for i, node in enumerate(rec.nodes):
        assert node.index == i
        assert len(node.next) == len(node.next_inputs)
        assert node.op is None or i in rec.ops[node.op].nodes
    for call in rec.calls:
        assert 0 <= call.first_op <= call.end_op <= len(rec.ops)
    json.dumps(rec.to_dict())


# the ops


def test_the_ops_of_a_module_in_order() -> None:
    model, x = net(), torch.ones(5, 4)
    rec = record(model, x)
    check(rec)
    assert [(op.name, op.module, op.kind) for op in rec.ops] == [
        ("linear", "0", "op"),
        ("relu", "1", "op"),
        ("linear", "2", "op"),
    ]
    first = rec.ops[0]
    assert [rec.values[i].name for i in first.inputs] == ["input", "0.weight", "0.bias"]
    assert [rec.values[i].kind for i in first.inputs] == ["input", "parameter", "parameter"]
    (out,) = first.outputs
    assert rec.values[out].shape == (5, 3)
    assert rec.ops[1].inputs == (out,)
    assert rec.outputs == rec.ops[2].outputs
    assert [(c.path, c.type, c.parent) for c in rec.calls] == [
        ("", "Sequential", None),
        ("0", "Linear", 0),
        ("1", "ReLU", 0),
        ("2", "Linear", 0),
    ]


def test_each_op_of_one_line_has_its_own_columns() -> None:
    x = leaf(2, 2)

    def both() -> torch.Tensor:
        return (x @ x.t()).relu() * 2 + x.exp().sum()

    rec = record(both)
    assert [(op.name, text_of(op)) for op in rec.ops] == [
        ("t", "x.t()"),
        ("matmul", "x @ x.t()"),
        ("relu", "(x @ x.t()).relu()"),
        ("mul", "(x @ x.t()).relu() * 2"),
        ("exp", "x.exp()"),
        ("sum", "x.exp().sum()"),
        ("add", "(x @ x.t()).relu() * 2 + x.exp().sum()"),
    ]
    assert {op.line for op in rec.ops} == {both.__code__.co_firstlineno + 1}
    assert rec.ops[0].site.function.endswith("both")
    assert rec.ops[0].site.where.startswith("test_graph_capture.py:")


def test_an_expression_over_several_lines() -> None:
    x = leaf(2)
    rec = record(
        lambda: torch.cat(
            [x, x],
        )
    )
    assert text_of(rec.ops[0]).startswith("torch.cat(\n")
    assert text_of(rec.ops[0]).endswith(")")


def test_columns_are_characters_and_not_bytes() -> None:
    x = leaf(2)
    rec = record(lambda: ("äöü→", x.exp())[1])
    assert text_of(rec.ops[0]) == "x.exp()"


def test_decode_says_nowhere_for_what_has_no_columns() -> None:
    code = compile("x = 1", "somewhere.py", "exec").replace(co_linetable=b"")
    assert decode(code, 0).columns is None


def test_the_line_is_the_readers_and_not_torchs() -> None:
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    rec = record(lambda x: model(x), torch.ones(1, 3, 8))
    assert {op.file for op in rec.ops} == {__file__}


def test_getters_are_no_ops() -> None:
    x = leaf(3)

    def ask() -> torch.Tensor:
        _ = x.shape, x.dtype, x.requires_grad, len(x), x.dim(), x.size(0), x.numel(), x.is_leaf
        _ = x.stride(), x.grad, x.grad_fn, x.device, repr(x), f"{x.shape}", x.untyped_storage()
        return x * 2

    assert names(record(ask)) == ["mul"]


def test_exits_are_kept() -> None:
    def leave(x: torch.Tensor) -> list[Any]:
        return [x.sum().item(), float(x[0]), int(x[0]), bool(x[0] > 0), x.tolist(), x.numpy()]

    rec = record(leave, torch.ones(2))
    assert [op.name for op in rec.ops if op.kind == "exit"] == [
        "item",
        "float",
        "int",
        "bool",
        "tolist",
        "numpy",
    ]
    assert all(op.outputs == () for op in rec.ops if op.kind == "exit")


def test_a_branch_on_a_value_shows() -> None:
    def branch(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return x - 1

    assert names(record(branch, torch.ones(2))) == ["sum", "gt", "bool", "mul"]
    assert names(record(branch, -torch.ones(2))) == ["sum", "gt", "bool", "sub"]


def test_operators_have_the_names_of_functions() -> None:
    def operate(x: torch.Tensor) -> torch.Tensor:
        y = 1 - x
        y += x
        y = 2 / (-y)
        y[0] = 1
        return y[1:] ** 2

    assert names(record(operate, torch.ones(3))) == [
        "rsub",
        "add_",
        "neg",
        "rdiv",
        "setitem",
        "getitem",
        "pow",
    ]


def test_detached_data_and_modes_are_visible() -> None:
    w = leaf(2)

    def modes() -> torch.Tensor:
        a = w.detach() * 2
        b = w.data * 2
        with torch.no_grad():
            c = w * 2
        with torch.inference_mode():
            d = w * 2
        return a + b + c + d + w

    rec = record(modes)
    check(rec)
    assert [(op.name, op.kind, op.grad_mode) for op in rec.ops][:6] == [
        ("detach", "detach", "grad"),
        ("mul", "op", "grad"),
        ("data", "detach", "grad"),
        ("mul", "op", "grad"),
        ("mul", "op", "no_grad"),
        ("mul", "op", "inference"),
    ]
    shared = rec.values[rec.ops[0].outputs[0]]
    assert rec.values[rec.ops[5].outputs[0]].version is None
    assert shared.storage == rec.values[rec.ops[0].inputs[0]].storage
    assert shared.view_of == rec.ops[0].inputs[0]
    assert not shared.requires_grad


def test_autocast_is_noted() -> None:
    def cast(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return x @ x

    rec = record(cast, torch.ones(2, 2))
    assert rec.ops[0].autocast == "bfloat16"
    assert rec.values[rec.outputs[0]].dtype == "bfloat16"
    assert record(lambda x: x @ x, torch.ones(2, 2)).ops[0].autocast is None


# values: identity, views, versions


def test_an_op_in_place_makes_a_new_value_of_the_same_tensor() -> None:
    def write(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.relu_()
        y[0] = 1
        y += 1
        F.relu(y, inplace=True)
        return y

    rec = record(write, leaf(3))
    check(rec)
    assert [op.in_place for op in rec.ops] == [False, True, True, True, True]
    chain = [rec.values[op.outputs[0]] for op in rec.ops]
    assert [value.version for value in chain] == [0, 1, 2, 3, 4]
    assert len({value.storage for value in chain}) == 1
    for before, after in itertools.pairwise(rec.ops):
        assert before.outputs[0] in after.inputs


def test_views_share_storage_and_a_write_through_one_changes_the_base() -> None:
    def views(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        row = y.view(4)[1:3].t()
        row.mul_(3)
        return y.sum()

    rec = record(views, leaf(2, 2))
    check(rec)
    base = rec.ops[0].outputs[0]
    view = rec.values[find(rec, "view").outputs[0]]
    assert view.view_of == base
    read = rec.values[find(rec, "sum").inputs[0]]
    written = find(rec, "mul_")
    assert read.index != base
    assert read.op == written.index
    assert read.version == 1
    assert rec.nodes[read.node or 0].name == "CopySlices"
    assert "AsStridedBackward0" not in [rec.nodes[i].name for i in rec.path_to("x")]


def test_an_input_given_back_is_the_same_value() -> None:
    rec = record(lambda x: x.contiguous().to(torch.float32).exp(), torch.ones(2))
    assert names(rec) == ["contiguous", "to", "exp"]
    assert rec.ops[0].outputs == rec.ops[0].inputs == rec.ops[1].outputs == rec.ops[2].inputs


def test_ids_and_addresses_that_are_used_again_do_not_mix_up_values() -> None:
    def churn(x: torch.Tensor) -> torch.Tensor:
        total = x.sum()
        for _ in range(50):
            total = total + torch.ones(1000).mul(2).sum()  # freed at once, its place taken again
        return total

    with torch.no_grad():
        rec = record(churn, torch.ones(3))
    check(rec)
    fresh = [rec.values[op.outputs[0]] for op in rec.ops if op.name in ("ones", "mul")]
    assert len({value.storage for value in fresh}) == len(fresh) == 100


def test_several_results_and_lists() -> None:
    def split(x: torch.Tensor) -> list[torch.Tensor]:
        a, b = x.split([1, 2])
        top, where = x.max(dim=0, keepdim=True)
        first, *_ = x
        return [torch.cat([a, b]), top, where, first]

    rec = record(split, leaf(3))
    check(rec)
    assert len(find(rec, "split").outputs) == 2
    assert len(find(rec, "max").outputs) == 2
    assert len(find(rec, "unbind").outputs) == 3
    assert set(find(rec, "cat").inputs) == set(find(rec, "split").outputs)
    assert len(rec.outputs) == 4


@pytest.mark.parametrize(
    ("call", "least"),
    [
        (lambda x: F.cross_entropy(x, torch.tensor([0, 1])), 2),
        (lambda x: torch.einsum("ij,kj->ik", x, x), 3),
        (lambda x: torch.gru_cell(x, x, torch.ones(9, 3), torch.ones(9, 3)), 5),
        (lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]), 1),
    ],
)
def test_a_composite_op_owns_all_its_nodes(call: Any, least: int) -> None:
    x = leaf(2, 3)
    rec = record(lambda: call(x))
    check(rec)
    made = [i for i, node in enumerate(rec.nodes) if node.kind != "accumulate"]
    assert sorted(i for op in rec.ops for i in op.nodes) == made
    assert len(rec.ops[-1].nodes) >= least
    assert rec.ops[-1].node == rec.roots[0]


def test_what_is_saved_is_counted_once_and_known_as_a_value() -> None:
    def twice(x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        return (y.square() + y.square() + y.view(-1).square()).sum()

    rec = record(twice, leaf(4))
    assert [op.saved_bytes for op in rec.ops if op.name in ("exp", "square")] == [16, 0, 0, 0]
    (kept,) = rec.nodes[find(rec, "exp").node or 0].saved
    assert (kept.name, kept.bytes, kept.version, kept.value) == (
        "result",
        16,
        0,
        find(rec, "exp").outputs[0],
    )
    assert rec.memory()[-1] == ("op", len(rec.ops) - 1, 16)


def test_values_none_summary_full() -> None:
    x = torch.tensor([[3.0, -4.0], [0.0, float("nan")]])
    big = torch.ones(100)
    rec = record(lambda: (x * 1, big * 1), values="full")
    small, large = (rec.values[op.outputs[0]] for op in rec.ops)
    assert small.numbers is not None
    assert small.numbers[:3] == (3.0, -4.0, 0.0)
    assert large.numbers is None
    assert small.stats is not None
    assert (small.stats.min, small.stats.max, small.stats.norm) == (-4.0, 3.0, 5.0)
    assert (small.stats.zeros, small.stats.nan, small.stats.inf) == (0.25, 1, 0)
    none = record(lambda: x * 1, values="none").values[1]
    assert (none.stats, none.numbers) == (None, None)


# names


def test_names_of_what_a_function_uses() -> None:
    model, scale = net(), leaf(2)

    def loss(batch: torch.Tensor, *, target: torch.Tensor) -> torch.Tensor:
        return (model(batch) * scale - target).sum()

    rec = record(loss, torch.ones(1, 4), target=torch.ones(2))
    named = {value.name: value.kind for value in rec.values if value.name}
    assert named == {
        "batch": "input",
        "target": "input",
        "scale": "constant",
        "model.0.weight": "parameter",
        "model.0.bias": "parameter",
        "model.2.weight": "parameter",
        "model.2.bias": "parameter",
    }
    assert [op.module for op in rec.ops[:3]] == ["model.0", "model.1", "model.2"]
    assert rec.path_to("model.0.weight")
    assert rec.path_to("scale")
    assert rec.path_to("nobody") == ()


class Holder:
    def __init__(self) -> None:
        self.model = net()
        self.parts = {"gain": leaf(2)}

    def run(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x) * self.parts["gain"]


def test_names_of_a_bound_method() -> None:
    rec = record(Holder().run, torch.ones(1, 4))
    known = {value.name for value in rec.values}
    assert {"model.0.weight", "parts['gain']", "x"} <= known


def test_a_module_called_twice_and_one_that_nobody_named() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.Tanh()(self.layer(self.layer(x)))

    rec = record(Twice(), torch.ones(1, 2))
    check(rec)
    assert [(c.path, c.count) for c in rec.calls] == [
        ("", 0),
        ("layer", 0),
        ("layer", 1),
        ("Tanh", 0),
    ]


# the autograd graph and backward


def test_nodes_and_edges_are_those_of_an_independent_walk() -> None:
    model = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    kept: list[torch.Tensor] = []

    def run(x: torch.Tensor) -> torch.Tensor:
        kept.append(model(x))
        return kept[0]

    rec = record(run, torch.ones(3, 1, 8))
    nodes, edges = independent_walk(kept[0])
    assert len(rec.nodes) == nodes
    assert sum(len(node.next) for node in rec.nodes) == edges


def test_shapes_of_gradients_are_those_that_torch_says() -> None:
    """They are taken from the results, not asked for: see `autograd.freeze`."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(True), nn.MaxPool2d(2))
    kept: list[torch.Tensor] = []

    def run(x: torch.Tensor) -> torch.Tensor:
        a, b = model(x).double().chunk(2, 1)
        a = a.clone().squeeze_(0)
        kept.append((a.t() if a.dim() == 2 else a.transpose(0, 1)).sum() + b.max(-1)[0].sum())
        return kept[0]

    rec = record(run, torch.randn(1, 1, 8, 8))
    assert rec.error is None
    told = [node for node in rec.nodes if node.kind != "accumulate"]
    by_sequence = {node.sequence: node for node in told}
    todo, seen = [kept[0].grad_fn], set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo += [target for target, _ in node.next_functions]
        mine = by_sequence.get(node._sequence_nr())
        if mine is not None:
            expected = [(tuple(m.shape), str(m.dtype)) for m in node._input_metadata]
            assert [(shape, f"torch.{mine.dtype}") for shape in mine.shapes] == expected
    assert len(seen) == len(rec.nodes)


def test_backward_gives_the_gradients_of_plain_torch() -> None:
    plain, watched = net(), net()
    x = torch.ones(5, 4)
    plain(x).sum().backward()
    rec = record(lambda: watched(x).sum(), backward=True)
    check(rec)
    for one, other in zip(plain.parameters(), watched.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)
    assert len(rec.backward_order) == len(rec.nodes)
    assert rec.nodes[rec.backward_order[0]].name == "SumBackward0"
    weight = next(node for node in rec.nodes if node.parameter == "watched.0.weight")
    assert weight.grads[0] is not None
    assert weight.grads[0].norm == pytest.approx(plain[0].weight.grad.norm().item())
    assert dict(rec.accumulated)[weight.index] == "set"
    assert {node.freed for node in rec.nodes if node.saved} == {True}
    assert rec.memory()[-1][2] == 0
    again = record(lambda: watched(x).sum(), backward=True)
    assert {how for _, how in again.accumulated} == {"added"}


def test_backward_from_ones_from_a_loss_and_from_nothing() -> None:
    w = leaf(3)
    rec = record(lambda: w * 2, backward=True)
    assert w.grad is not None
    assert w.grad.tolist() == [2, 2, 2]
    assert "ones" in rec.notes[0]
    w.grad = None
    record(lambda: {"logits": w * 2, "loss": (w * 3).sum()}, backward=True)
    assert w.grad.tolist() == [3, 3, 3]
    rec = record(lambda x: x * 2, torch.ones(2), backward=True)
    assert rec.backward_order == ()
    assert "no result requires a gradient" in rec.notes[0]


def test_backward_later_while_the_graph_lives() -> None:
    w = leaf(3)
    held: list[torch.Tensor] = []

    def run() -> torch.Tensor:
        held.append((w * w).sum())
        return held[0]

    rec = record(run)
    assert rec.backward() is rec
    assert rec.backward_order
    assert torch.allclose(w.grad, 2 * w)
    lost = record(lambda: (w * w).sum())
    with pytest.raises(UsageError, match="expected a graph that is still alive"):
        lost.backward()
    kept = record(lambda: (w * w).sum(), keep_graph=True)
    kept.backward(retain_graph=True)
    kept.backward()
    with pytest.raises(UsageError, match="keep_graph=True"):
        kept.backward()
    with pytest.raises(UsageError, match="backward=True"):
        lost.stepper()


def test_the_stepper_speaks_of_the_records_places() -> None:
    w = leaf(3)
    rec = record(lambda: (w * w).exp().sum(), keep_graph=True)
    stepper = rec.stepper()
    stepper.run()
    assert [rec.nodes[place].name for place in stepper.order] == [
        "SumBackward0",
        "ExpBackward0",
        "MulBackward0",
        "AccumulateGrad",
    ]
    assert torch.allclose(w.grad, 2 * w * (w * w).exp())


def test_an_error_in_backward_is_kept() -> None:
    w = leaf(3)

    def wrong() -> torch.Tensor:
        y = w.exp()
        y.add_(1)
        return y.sum()

    rec = record(wrong, backward=True)
    assert rec.error is not None
    assert "modified by an inplace operation" in rec.error
    assert rec.error.endswith("(in backward)")
    assert names(rec) == ["exp", "add_", "sum"]


def test_a_training_step_with_its_own_backward() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x: torch.Tensor) -> float:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    rec = record(step, torch.ones(2, 4))
    check(rec)
    back = find(rec, "backward")
    assert back.kind == "backward"
    assert {rec.values[i].name for i in back.outputs} == {
        f"{name}.grad"
        for name in ("model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias")
    }
    moved = [op for op in rec.ops if op.kind == "optimizer"]
    assert moved
    assert all(op.index > back.index for op in moved)
    assert {text_of(op) for op in moved} == {"optimizer.step()"}
    assert len(rec.backward_order) == len(rec.nodes)
    assert all(node.freed for node in rec.nodes if node.saved)
    assert any(node.saved for node in rec.nodes)
    assert rec.ops[-1].name == "item"


def test_a_closure_of_an_optimizer_is_not_the_optimizers_work() -> None:
    w = leaf(2)
    optimizer = torch.optim.SGD([w], lr=0.1)

    def closure() -> torch.Tensor:
        loss = (w * 3).sum()
        loss.backward()
        return loss

    rec = record(lambda: optimizer.step(closure))
    assert find(rec, "mul").kind == "op"
    assert "optimizer" in {op.kind for op in rec.ops}


def test_grad_of_a_grad() -> None:
    w = leaf(3)
    kept: list[torch.Tensor] = []

    def second() -> torch.Tensor:
        (g,) = torch.autograd.grad((w**3).sum(), w, create_graph=True)
        kept.append(g.sum())
        return kept[0]

    rec = record(second, backward=True)
    check(rec)
    assert find(rec, "grad").kind == "backward"
    assert find(rec, "grad").nodes  # those of the first derivative
    assert torch.allclose(w.grad, 6 * w)


# regions


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * gradient


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


# exceptions, nesting, and what is left behind


def test_an_exception_halfway_keeps_what_ran() -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 3)
            self.second = nn.Linear(5, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x))

    rec = record(Broken(), torch.ones(2, 4), backward=True)
    check(rec)
    line = Broken.forward.__code__.co_firstlineno + 1
    assert rec.error is not None
    assert rec.error.startswith("RuntimeError: mat1 and mat2 shapes")
    assert rec.error.endswith(f"at test_graph_capture.py:{line}")
    assert [(op.name, op.module, op.outputs != ()) for op in rec.ops] == [
        ("linear", "first", True),
        ("linear", "second", False),
    ]
    assert "AddmmBackward0" in [node.name for node in rec.nodes]
    assert [call.end_op for call in rec.calls] == [2, 1, 2]


def test_the_stack_of_modules_is_right_after_an_exception_that_was_caught() -> None:
    inner = nn.Linear(4, 3)

    class Careful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            try:
                return self.inner(x)
            except RuntimeError:
                return x * 2

    rec = record(Careful(), torch.ones(1, 2))
    check(rec)
    assert rec.error is None
    assert [(op.name, op.module) for op in rec.ops] == [("linear", "inner"), ("mul", "")]


def test_an_interrupt_goes_through_and_leaves_nothing() -> None:
    def stop(x: torch.Tensor) -> None:
        x.exp()
        raise KeyboardInterrupt

    before = surroundings()
    with pytest.raises(KeyboardInterrupt):
        record(stop, torch.ones(1))
    assert surroundings() == before


def test_one_recording_inside_another() -> None:
    seen: list[GraphRecord] = []

    def outer(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        seen.append(record(lambda: (y + 1).exp(), backward=True))
        return y.sum()

    w = leaf(2)
    rec = record(outer, w)
    check(rec)
    check(seen[0])
    assert names(seen[0]) == ["add", "exp"]
    assert names(rec)[:3] == ["mul", "add", "exp"]
    assert names(rec)[-1] == "sum"
    assert "backward" in names(rec)
    assert not any(name.startswith(("aminmax", "count_nonzero")) for name in names(rec))
    assert w.grad is not None


class Shouting(torch.Tensor):
    heard: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.heard.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_class_of_the_readers_hears_only_its_own_calls() -> None:
    x = torch.ones(2).as_subclass(Shouting)
    Shouting.heard.clear()
    (x * 2).exp()
    plain = list(Shouting.heard)
    Shouting.heard.clear()
    rec = record(lambda x: (x * 2).exp(), x)
    assert Shouting.heard == plain
    assert names(rec) == ["mul", "exp"]


def surroundings() -> dict[str, Any]:
    return {
        "hooks": {
            name: len(value)
            for name, value in vars(nn_module).items()
            if name.startswith("_global_") and isinstance(value, dict)
        },
        "modes": len(torch.overrides._get_current_function_mode_stack()),
        "collector": gc.isenabled(),
        "grad": torch.is_grad_enabled(),
        "rng": torch.get_rng_state().tolist(),
        "python": random.getstate(),
        "numpy": repr(numpy.random.get_state()),  # noqa: NPY002
        "forward": nn.Module.__call__,
        "apply": torch.autograd.Function.apply,
        "filters": len(__import__("warnings").filters),
    }


@pytest.mark.parametrize("collects", [True, False])
def test_everything_is_as_it_was(collects: bool) -> None:
    model, x = net(), torch.ones(2, 4)
    (gc.enable if collects else gc.disable)()
    try:
        before = surroundings()
        record(model, x, backward=True)
        record(lambda: model(torch.ones(3)))
        assert surroundings() == before
    finally:
        gc.enable()


def test_random_numbers_are_those_of_a_plain_run() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    x = torch.ones(3, 4)
    kept: list[torch.Tensor] = []
    torch.manual_seed(3)
    plain = model(x)
    torch.manual_seed(3)
    record(lambda: kept.append(model(x)), values="full")
    assert torch.equal(plain, kept[0])


def dropped(how: str) -> list[weakref.ref[Any]]:
    """Weak references to all that a recorded function made."""
    refs: list[weakref.ref[Any]] = []
    model = net()

    def run() -> torch.Tensor:
        x = torch.ones(2, 4)
        a = model(x)
        refs.extend(weakref.ref(t) for t in (x, a))
        if how == "raises":
            raise ValueError(a)
        if how == "function":
            a = Cube.apply(a)
        if how == "step":
            a.sum().backward()
        loss = a.sum()
        refs.append(weakref.ref(loss))
        return loss

    if how == "later":
        kept = record(run, keep_graph=True)
        assert refs[-1]() is not None
        kept.release()
        records.append(kept)
    elif how == "walked":
        records.append(record(run, keep_graph=True).backward())
    else:
        records.append(record(run, backward=how == "backward", values="full"))
    refs.extend(weakref.ref(p) for p in model.parameters())
    return refs


records: list[GraphRecord] = []


@pytest.mark.parametrize(
    "how", ["plain", "backward", "raises", "later", "walked", "function", "step"]
)
def test_no_tensor_is_kept_alive(how: str) -> None:
    gc.collect()
    gc.disable()  # what only the collector finds is kept too long already
    try:
        refs = dropped(how)
        if how == "raises":
            gc.collect()  # an exception and its frames point at each other
        assert [ref() for ref in refs] == [None] * len(refs)
    finally:
        gc.enable()
        records.clear()


def test_a_long_graph_needs_no_recursion() -> None:
    def long(x: torch.Tensor) -> torch.Tensor:
        for _ in range(20_000):
            x = x + 1
        return x.sum()

    rec = record(long, leaf(1), values="none", backward=True)
    assert len(rec.ops) == 20_001
    assert len(rec.backward_order) == 20_002
    assert len(rec.path_to("x")) == 20_002


def test_what_record_refuses() -> None:
    with pytest.raises(UsageError, match=r"expected something to call, got 'Tensor'.*graph\.of"):
        record(torch.ones(1))  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="expected one of none, summary, full, got 'all'"):
        record(lambda: None, values="all")


def test_equal_runs_give_equal_records() -> None:
    texts = set()
    for _ in range(2):
        given = record(net(), torch.ones(2, 4), backward=True).to_dict()
        for op in given["ops"]:
            del op["elapsed_ns"]
        for node in given["nodes"]:
            del node["sequence"]
        texts.add(json.dumps(given))
    assert len(texts) == 1


def test_importing_costs_nothing_and_patches_nothing() -> None:
    code = (
        "import torch; before = dict(vars(torch.Tensor)); import pytorch_lab.graph;"
        "assert vars(torch.Tensor) == before;"
        "import sys; assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["bert", "gpt2", "t5", "llama", "vit", "whisper", "mamba", "unet"])
def test_models_that_nobody_here_wrote(models: ModuleType, name: str) -> None:
    model, inputs = models.LIBRARY_MODELS[name]()
    model.eval()
    kept: list[Any] = []

    def run(**given: Any) -> Any:
        kept.append(model(**given))
        return kept[0]

    before = models.as_found(model)
    rec = record(run, **inputs)
    assert rec.error is None
    check(rec)
    assert models.as_found(model) == before
    roots = [t for t in tensors_of(kept[0]) if t.grad_fn is not None]
    nodes, edges = independent_walk(*roots)
    assert (len(rec.nodes), sum(len(node.next) for node in rec.nodes)) == (nodes, edges)
    assert sum(op.columns is not None for op in rec.ops) >= 0.95 * len(rec.ops)
    assert all(op.line for op in rec.ops)
    assert all("/torch/" not in op.file for op in rec.ops)
    called = [op for op in rec.ops if op.module]
    assert len(called) > 0.5 * len(rec.ops)


def test_without_compiled_code_nothing_is_said_of_it() -> None:
    import torch._dynamo

    assert record(net(), torch.ones(1, 4)).notes == ()


def test_a_tensor_from_nowhere_is_not_taken_for_a_dead_one() -> None:
    """`from_numpy` is not seen by a function mode, and its tensor gets the id of a dropped one."""
    array = numpy.ones(3, dtype=numpy.float32)
    taken = 0

    def run(x: torch.Tensor) -> None:
        nonlocal taken
        for _ in range(50):
            gone = x * 2
            number = id(gone)
            del gone
            fresh = torch.from_numpy(array)
            taken += id(fresh) == number
            fresh.exp()

    rec = record(run, torch.ones(2))
    check(rec)
    assert taken
    assert {rec.values[op.inputs[0]].shape for op in rec.ops if op.name == "exp"} == {(3,)}


def test_the_addresses_of_all_storages_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, given = [], []
    take, give = torch.UntypedStorage._weak_ref, torch.UntypedStorage._free_weak_ref
    monkeypatch.setattr(
        torch.UntypedStorage, "_weak_ref", lambda one: taken.append(take(one)) or taken[-1]
    )
    monkeypatch.setattr(
        torch.UntypedStorage, "_free_weak_ref", lambda weak: given.append(weak) or give(weak)
    )
    record(lambda x: (x.exp() + 1).sum(), torch.ones(3))
    assert len(taken) == 4
    assert given == taken


def test_the_lists_are_made_once_whichever_is_asked_for_first() -> None:
    x = torch.ones(3, requires_grad=True)
    recs = [record(lambda: (x.exp() + 1).sum(), backward=True) for _ in range(3)]
    lists = [recs[0].ops, recs[1].values, recs[2].nodes]
    for rec, first in zip(recs, lists, strict=True):
        assert any(first is one for one in (rec.ops, rec.values, rec.nodes))
        assert [node.freed for node in rec.nodes] == [None, None, True, None]
        assert rec.ops[0].saved_bytes == 12


# --- what a hostile reading found -----------------------------------------------------------------


def test_our_own_package_is_not_the_readers_code() -> None:
    import pytorch_lab.modules.outputs

    assert not is_readers(pytorch_lab.modules.outputs.__file__)


@pytest.mark.parametrize("size", [1e30, 1e-30, 1e38])
def test_the_length_of_very_large_and_small_values(size: float) -> None:
    values = torch.tensor([3.0, -4.0, 0.0]) * size if size < 1e38 else torch.full((3,), 1e38)
    stats = record(lambda: values.clone()).values[-1].stats
    assert stats is not None
    exact = values.double()
    assert stats.norm == pytest.approx(exact.norm().item(), rel=1e-6)
    assert stats.mean == pytest.approx(exact.mean().item(), rel=1e-6)
    assert stats.inf == 0


def test_an_error_that_cannot_be_said_is_recorded_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    def fails() -> None:
        raise Mute

    assert str(record(fails).error).startswith("Mute: its message could not be read")


def test_modules_of_other_threads_are_not_in_the_record() -> None:
    other = nn.Linear(2, 2)

    def fn(x: torch.Tensor) -> torch.Tensor:
        thread = threading.Thread(target=other, args=(torch.ones(1, 2),))
        thread.start()
        thread.join()
        return x * 2

    rec = record(fn, torch.ones(2))
    assert (rec.calls, {op.module for op in rec.ops}) == ((), {""})


def test_a_mode_that_the_code_leaves_open_does_not_keep_ours_installed() -> None:
    def opens() -> Iterator[torch.Tensor]:
        with torch.device("cpu"):
            while True:
                yield torch.ones(2)

    source = opens()
    before = torch._C._len_torch_function_stack()
    rec = record(lambda: next(source) * 2)
    modes = [type(mode).__name__ for mode in torch.overrides._get_current_function_mode_stack()]
    source.close()
    assert "Recorder" not in modes
    assert torch._C._len_torch_function_stack() == before
    assert len(rec.ops) == 2
