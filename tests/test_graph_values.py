"""Recording: which tensors were read and made, and what they are called."""

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from pytorch_lab.graph import record
from tests.recorded import check, find, leaf, names, net


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
