"""Recording: which ops ran, on which line, in which module."""

from typing import Any

import torch
from torch import nn

from pytorch_lab.graph import record
from pytorch_lab.graph.recording.sites import decode
from tests.recorded import check, leaf, names, net, text_of


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
    assert rec.ops[0].site.where.startswith("test_graph_ops.py:")


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
