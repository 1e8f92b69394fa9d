"""What the tests of recordings share: small models, and what holds of every record."""

import json
import linecache
from typing import Any

import numpy
import torch
from torch import nn

from pytorch_lab.graph import GraphRecord
from pytorch_lab.graph.schema import KINDS, Op


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


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * gradient
