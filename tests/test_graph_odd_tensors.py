"""Tensors that are not dense, on no device, of no size, or huge: recorded, and plain in JSON."""

import copy
import json
import pickle
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from pytorch_lab.errors import UsageError
from pytorch_lab.graph import GraphRecord, of, record


def leaf(*shape: int) -> torch.Tensor:
    return torch.linspace(0.1, 0.9, torch.Size(shape).numel()).reshape(shape).requires_grad_()


def strided() -> torch.Tensor:
    parts = [leaf(2, 3).detach(), leaf(4, 3).detach()]
    nested = torch.nested.nested_tensor(parts, requires_grad=True)
    return torch.nested.to_padded_tensor(F.linear(nested.sin(), leaf(3, 3)) * 2, 0.0)


def jagged() -> torch.Tensor:
    parts = [leaf(2, 3).detach(), leaf(4, 3).detach()]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)
    return (F.linear(nested.sin(), leaf(3, 3)) * 2).values()


def out_argument() -> torch.Tensor:
    with torch.no_grad():
        out = torch.empty(3)
        torch.mul(leaf(3), 2, out=out)
    return out + leaf(3)


def foreach_optimizer() -> torch.Tensor:
    net = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(net.parameters(), foreach=True)
    net(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return net(torch.ones(1, 3)).sum()


def low_rank() -> torch.Tensor:
    """A parametrization as in LoRA."""

    class Low(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Parameter(torch.ones(3, 1)), nn.Parameter(torch.ones(1, 3))

        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return weight + self.a @ self.b

    net = nn.Linear(3, 3)
    nn.utils.parametrize.register_parametrization(net, "weight", Low())
    return net(torch.ones(1, 3)).sum()


def quantised() -> torch.Tensor:
    x = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)
    return x.dequantize() * leaf(3)


RUNS: dict[str, Callable[[], torch.Tensor]] = {
    "strided nested": strided,
    "jagged nested": jagged,
    "not a number": lambda: leaf(3) / 0 - leaf(3) / 0,
    "infinite": lambda: leaf(3) / 0,
    "no elements": lambda: (leaf(0, 3) * 2).sum(),
    "no dimensions": lambda: leaf(1).sum() * 2,
    "a million elements": lambda: (leaf(1000, 1000) * 2).exp(),
    "meta": lambda: torch.ones(3, device="meta", requires_grad=True).exp() * 2,
    "channels last": lambda: (leaf(1, 2, 3, 3).to(memory_format=torch.channels_last) * 2).sum(),
    "sparse product": lambda: torch.sparse.mm(torch.eye(3).to_sparse(), leaf(3, 2)).sum(),
    "sparse gradient": lambda: F.embedding(torch.tensor([0, 1]), leaf(4, 2), sparse=True).sum(),
    "compressed rows": lambda: (torch.eye(3).to_sparse_csr() @ leaf(3, 2)).sum(),
    "complex": lambda: torch.fft.fft(leaf(4)).abs().sum(),
    "complex result": lambda: torch.view_as_complex(leaf(3, 2)) * 2j,
    "quantised": quantised,
    "fake quantised": lambda: torch.fake_quantize_per_tensor_affine(leaf(3), 0.1, 0, 0, 255),
    "out=": out_argument,
    "foreach": foreach_optimizer,
    "functional_call": lambda: torch.func.functional_call(
        nn.Linear(3, 1), {"weight": leaf(1, 3), "bias": leaf(1)}, torch.ones(1, 3)
    ).sum(),
    "per-sample gradients": lambda: torch.func.vmap(
        torch.func.grad(lambda w, x: (w * x).sum().square()), (None, 0)
    )(leaf(3), leaf(2, 3)),
    "DataParallel": lambda: nn.DataParallel(nn.Linear(3, 1))(torch.ones(2, 3)).sum(),
    "LoRA": low_rank,
    "half precision": lambda: (leaf(3).bfloat16() * 2).sum(),
    "integers and booleans": lambda: (leaf(3) * (leaf(3) > 0.5) * torch.arange(3)).sum(),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.filterwarnings("ignore:quantize_per_tensor")
@pytest.mark.filterwarnings("ignore:.*[Qq]uanti")
@pytest.mark.parametrize("values", ["summary", "full"])
@pytest.mark.parametrize("run", RUNS)
def test_it_is_recorded_and_plain(run: str, values: str) -> None:
    rec = record(RUNS[run], backward=run != "meta", values=values)
    assert rec.error is None
    assert rec.ops
    plain(rec)
    result = RUNS[run]()
    if result.requires_grad:
        plain(of(result))


def plain(rec: GraphRecord) -> None:
    text = json.dumps(rec.to_dict(), allow_nan=False)
    assert json.loads(text) == rec.to_dict()
    assert max(map(len, str(rec).splitlines())) <= 80
    assert rec.to_svg().startswith("<svg")
    assert all(type(size) is int for value in rec.values for size in value.shape)
    assert all(type(size) is int for node in rec.nodes for s in node.shapes for size in s)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("make", [strided, jagged])
def test_sizes_that_differ_are_told_as_such_and_steps_give_what_backward_gives(
    make: Callable[[], torch.Tensor],
) -> None:
    w = leaf(3, 3)
    parts = [leaf(2, 3).detach(), leaf(4, 3).detach()]
    layout = torch.jagged if make is jagged else torch.strided
    x = torch.nested.nested_tensor(parts, layout=layout)

    def loss() -> torch.Tensor:
        y = F.linear(x, w).sin()
        return (y.values() if make is jagged else torch.nested.to_padded_tensor(y, 0.0)).sum()

    loss().backward()
    expected, w.grad = w.grad, None
    rec = record(loss, keep_graph=True)
    assert rec.values[rec.ops[1].inputs[0]].shape == (2, -1, 3)
    stepper = rec.stepper()
    while not stepper.done:
        stepper.step()
    assert w.grad is not None
    assert expected is not None
    assert torch.equal(w.grad, expected)


def test_json_has_words_for_what_it_has_no_numbers_for() -> None:
    made = record(lambda: leaf(3).detach() * torch.tensor([torch.nan, torch.inf, -torch.inf]),
                  values="full").to_dict()  # fmt: skip
    assert made["values"][-1]["numbers"] == ["NaN", "Infinity", "-Infinity"]
    assert made["storage_bytes"]
    assert float(made["values"][-1]["numbers"][1]) == float("inf")


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda rec: pickle.loads(pickle.dumps(rec))]
)
def test_a_record_can_be_copied_and_pickled(again: Callable[[GraphRecord], GraphRecord]) -> None:
    rec = record(lambda: (leaf(3) * 2).sum(), backward=True)
    assert again(rec).to_dict() == rec.to_dict()
    kept = record(lambda: (leaf(3) * 2).sum(), keep_graph=True)
    other = again(kept)
    assert other.to_dict() == kept.to_dict()
    with pytest.raises(UsageError, match="still alive"):
        other.backward()
    assert kept.backward().backward_order == (0, 1, 2)
