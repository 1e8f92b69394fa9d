"""Ops that are noted some dozens at a time, or by a plan: the record is that of looking at once."""

import weakref
from typing import Any

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pytorch_lab.graph import GraphRecord, record
from pytorch_lab.graph.recording import log
from tests.autograd_cases import CASES, build
from tests.recorded import check, find, leaf, names


class Mixed(nn.Module):
    """Ops of every sort: in place, by name, in lists, without gradients, out of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.BatchNorm1d(4))
        self.lstm = nn.LSTM(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(torch.cat([x, x.flip(0)]))
        with torch.no_grad():
            shift = y.mean(0, keepdim=True)
        z = F.dropout(y - shift, p=0.0, training=True, inplace=True)
        z[0] = 1
        halves = z.chunk(2)
        z = torch.add(input=halves[0], other=halves[1], alpha=2)
        if z.sum() > 1e6:
            z = -z
        return self.lstm(z.contiguous().unsqueeze(1))[0].square().mean()


def without_times(rec: GraphRecord) -> dict[str, Any]:
    told = rec.to_dict()
    for op in told["ops"]:
        del op["elapsed_ns"]
    first = min((node["sequence"] for node in told["nodes"] if node["sequence"] >= 0), default=0)
    for node in told["nodes"]:
        node["sequence"] -= first * (node["sequence"] >= 0)
    return told


def mixed(values: str) -> GraphRecord:
    torch.manual_seed(0)
    return record(Mixed(), torch.randn(3, 4), backward=True, values=values)


@pytest.mark.parametrize("values", ["none", "full"])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_it_makes_no_difference_how_many_ops_are_held(
    values: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = mixed(values)
    monkeypatch.setattr(log, "MOST", most)
    check(many)
    assert without_times(mixed(values)) == without_times(many)


@pytest.mark.parametrize("name", CASES)
def test_it_makes_no_difference_for_odd_graphs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> GraphRecord:
        torch.manual_seed(0)
        return record(lambda: build(name)[0], values="none")

    many = without_times(run())
    monkeypatch.setattr(log, "MOST", 1)
    assert without_times(run()) == many


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.add_(1),
        lambda y: torch.add(y, 1, out=y),
        lambda y: F.relu(y, inplace=True),
        lambda y: nn.ReLU(inplace=True)(y),
        lambda y: y.__iadd__(1),
        lambda y: y.__setitem__(0, 1),
    ],
)
def test_what_was_read_before_a_write_is_the_old_version(write: Any) -> None:
    x = torch.randn(4, 3)

    def run() -> torch.Tensor:
        y = x * 2
        z = y.exp()
        write(y)
        return z + y

    rec = record(run, values="none")
    check(rec)
    old = rec.values[find(rec, "exp").inputs[0]]
    new = rec.values[rec.ops[-1].inputs[1]]
    assert (old.version, old.storage) == (0, new.storage)
    assert new.version
    assert rec.values[rec.ops[0].outputs[0]] == old


def test_an_op_that_somebody_registered_may_write() -> None:
    """Nothing but its schema tells."""

    def bump(x: torch.Tensor) -> None:
        x.add_(1)

    with torch.library._scoped_library("graph_log", "DEF") as library:
        library.define("bump(Tensor(a!) x) -> ()")
        library.impl("bump", bump, "CPU")

        def run() -> torch.Tensor:
            y = torch.ones(3) * 2
            z = y.exp()
            torch.ops.graph_log.bump(y)
            return z + y

        rec = record(run, values="none")
    exp, add = find(rec, "exp"), find(rec, "add")
    assert rec.values[exp.inputs[0]].version == 0
    assert [rec.values[place].version for place in add.inputs] == [0, 1]


def test_what_was_read_before_it_asked_for_a_gradient_did_not() -> None:
    def run() -> torch.Tensor:
        x = torch.ones(3) * 2
        y = x.exp()
        x.requires_grad = True
        return x.sin() + y

    rec = record(run, values="none")
    assert [rec.values[find(rec, name).inputs[0]].requires_grad for name in ("exp", "sin")] == [
        False,
        True,
    ]


def test_the_calls_of_modules_have_their_ops() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Identity(), nn.Tanh()), nn.Linear(2, 1))
    rec = record(model, leaf(1, 2))
    assert [(call.path, call.first_op, call.end_op) for call in rec.calls] == [
        ("", 0, 3),
        ("0", 0, 1),
        ("1", 1, 2),
        ("1.0", 1, 1),
        ("1.1", 1, 2),
        ("2", 2, 3),
    ]


def test_an_op_that_raises_is_the_last() -> None:
    rec = record(lambda x: (x * 2) @ x.exp(), torch.ones(2, 3))
    assert names(rec) == ["mul", "exp", "matmul"]
    assert rec.ops[-1].outputs == ()
    assert rec.ops[-1].inputs == (1, 2)
    assert "mat1 and mat2" in (rec.error or "")


@pytest.mark.parametrize("change", [list.clear, list.reverse, lambda held: held.append(held[0])])
def test_a_list_is_what_it_was_when_the_op_got_it(change: Any) -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        held = [x, x * 2]
        both = torch.stack(held)
        change(held)
        return torch.stack(tensors=[both, both]).sum()

    rec = record(run, torch.ones(3), values="none")
    stack = find(rec, "stack")
    assert stack.inputs == (0, 1)
    assert rec.ops[2].inputs == (stack.outputs[0],) * 2


def test_figures_are_those_of_the_time() -> None:
    """Numpy writes to the memory of a tensor, and torch hears nothing of it."""

    def run(x: torch.Tensor) -> torch.Tensor:
        ones = torch.ones(3) * 1
        shared = ones.numpy()
        y = x * ones
        shared[:] = 7
        return y * ones

    rec = record(run, torch.ones(3))
    assert rec.values[find(rec, "mul").outputs[0]].stats.max == 1


@pytest.mark.parametrize("large", [True, False])
def test_a_large_tensor_is_held_no_longer_than_its_op(large: bool) -> None:
    held = []

    def run(x: torch.Tensor) -> None:
        gone = weakref.ref(x * 2)
        held.append(gone() is not None)
        x.shape  # noqa: B018 - a question is no op
        held.append(gone() is not None)

    record(run, torch.ones(2**22 if large else 2), values="none")
    assert held == [not large] * 2


def test_a_view_of_a_large_tensor_is_not_held() -> None:
    """A view takes no time, and holds all of the memory."""
    held = []

    def look() -> None:
        large = torch.from_numpy(numpy.empty(2**22, dtype=numpy.float32))
        gone = weakref.ref(large)
        large[0]
        del large
        held.append(gone() is not None)

    record(look, values="none")
    assert held == [False]


def test_away_from_the_cpu_nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """There an op returns before it has run; `meta` stands in for a GPU."""
    monkeypatch.setattr(log, "LONG_NS", 10**12)
    held = []

    def run(x: torch.Tensor) -> None:
        for _ in range(70):
            held.append(weakref.ref(x * 2)() is not None)

    record(run, torch.ones(2, device="meta"), values="none")
    assert not any(held[log.MOST :])
