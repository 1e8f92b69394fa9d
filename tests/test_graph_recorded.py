"""Recording: the autograd graph, and backward in and after the run."""

import pytest
import torch
from torch import nn

from pytorch_lab.errors import UsageError
from pytorch_lab.graph import record
from tests.recorded import check, find, independent_walk, leaf, names, net, text_of


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


def test_what_ran_in_the_first_of_two_backwards_keeps_its_gradient() -> None:
    x = leaf(3)

    def step() -> torch.Tensor:
        torch.autograd.grad((x**3).sum(), x)
        return (x * 2).sum()

    rec = record(step, backward=True)
    assert sorted(rec.backward_order) == [node.index for node in rec.nodes if node.grads]
    check(rec)
