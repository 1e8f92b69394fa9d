"""Watching backward: against a hook of the official kind on every node."""

import weakref
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pytorch_lab.graph import record
from pytorch_lab.graph.schema import Node, Saved
from pytorch_lab.graph.stats import summarise
from pytorch_lab.graph.walking import backward
from pytorch_lab.graph.walking.autograd import walk
from pytorch_lab.graph.walking.backward import watch
from pytorch_lab.graph.walking.frozen import freeze
from pytorch_lab.graph.walking.memory import timeline
from pytorch_lab.graph.walking.nodes import freed
from tests.autograd_cases import CASES, bits, build


def length(gradient: torch.Tensor) -> float:
    return gradient.to_dense().abs().double().norm().item()


def official(name: str) -> tuple[list[int], dict[int, Any], list[Any]]:
    """Order and sums of gradients by `register_prehook` on each node, and the leaves' gradients."""
    loss, leaves = build(name)
    live = walk([loss])
    order: list[int] = []
    sums: dict[int, Any] = {}

    def hook(place: int):
        def note(gradients):
            order.append(place)
            sums[place] = [-1 if g is None else length(g) for g in gradients]

        return note

    for place, node in enumerate(live.nodes):
        node.register_prehook(hook(place))
    torch.manual_seed(1)
    loss.backward()
    return order, sums, bits(leaves)


@pytest.mark.parametrize("stats", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_order_and_gradients_are_those_of_hooks_on_every_node(name: str, stats: bool) -> None:
    order, norms, wanted = official(name)
    loss, leaves = build(name)
    live = walk([loss])
    nodes = freeze(live)
    torch.manual_seed(1)
    with watch(live, summarise if stats else None) as seen:
        loss.backward()
    assert seen.order == order
    assert bits(leaves) == wanted
    filled = seen.fill(nodes)
    for place, norm in norms.items():
        assert len(filled[place].grads) == len(norm) == len(nodes[place].shapes)
        if stats:
            got = [-1 if one is None else one.norm for one in filled[place].grads]
            assert got == pytest.approx(norm, rel=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_the_plan_of_torch_is_what_it_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backward, "handles_made", lambda: 0)  # other tests have put hooks
    order, _, wanted = official(name)
    loss, leaves = build(name)
    live = walk([loss])
    nodes = freeze(live)
    torch.manual_seed(1)
    with watch(live, whole_from=loss) as seen:
        loss.backward()
    assert seen.order == order
    assert bits(leaves) == wanted
    assert torch.autograd.is_multithreading_enabled()
    asked = freed(live.nodes, range(len(live)))
    assert [one.freed for one in seen.fill(nodes)] == [
        place in asked if nodes[place].saved else None for place in range(len(live))
    ]


@pytest.mark.parametrize("whole", [True, False])
def test_an_order_ends_at_the_node_that_raised(
    whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the plan it is the first that still keeps something."""
    monkeypatch.setattr(backward, "handles_made", lambda: 0)
    x = torch.ones(3, requires_grad=True)
    kept = x.exp()
    loss = (kept.square() + 1).sum()
    kept.add_(1)
    live = walk([loss])
    names = [node.name().rpartition(":")[2] for node in live.nodes]
    with (
        pytest.raises(RuntimeError, match="modified by an inplace operation"),
        watch(live, whole_from=loss if whole else None) as seen,
    ):
        loss.backward()
    assert [names[place] for place in seen.order] == [
        "SumBackward0",
        "AddBackward0",
        "PowBackward0",
    ]
    assert torch.autograd.is_multithreading_enabled()


@pytest.mark.parametrize("name", CASES)
def test_afterwards_nothing_is_left_on_the_nodes(name: str) -> None:
    loss, _ = build(name)
    live = walk([loss])
    with watch(live) as first:
        pass
    with watch(live, summarise) as second:
        pass
    loss.backward()
    assert (first.order, second.order, second.grads) == ([], [], {})


def test_freed_and_kept() -> None:
    x = torch.ones(2, requires_grad=True)
    loss = (x.exp() + x).sin().sum()
    live = walk([loss])
    nodes = freeze(live)
    with watch(live) as seen:
        loss.backward(retain_graph=True)
    assert {n.name: n.freed for n in seen.fill(nodes)} == {
        "SumBackward0": None,
        "SinBackward0": False,
        "AddBackward0": None,
        "ExpBackward0": False,
        "AccumulateGrad": None,
    }
    with watch(live) as seen:
        loss.backward()
    freed = {n.name: n.freed for n in seen.fill(nodes)}
    assert (freed["SinBackward0"], freed["ExpBackward0"], freed["AddBackward0"]) == (
        True,
        True,
        None,
    )


def test_a_number_that_a_node_keeps_is_freed_too() -> None:
    x = torch.ones(2, requires_grad=True)
    loss = (x * 3).sum()
    live = walk([loss])
    nodes = freeze(live)
    assert nodes[1].saved
    with watch(live) as seen:
        loss.backward()
    assert seen.fill(nodes)[1].freed is True


def test_set_or_added() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y.grad = torch.ones(2)
    z = torch.ones(2, requires_grad=True)
    loss = (x * y).sum()
    live = walk([loss, z.exp()])
    nodes = freeze(live, names=lambda leaf: "xyz"[[leaf is x, leaf is y, leaf is z].index(True)])
    with watch(live) as seen:
        loss.backward()
    assert {nodes[place].parameter: how for place, how in seen.accumulated.items()} == {
        "x": "set",
        "y": "added",
    }
    assert {n.name for n in seen.fill(nodes) if not n.grads} == {"ExpBackward0", "AccumulateGrad"}


def test_an_error_in_the_middle_leaves_what_ran_until_then() -> None:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            raise ValueError("broken on purpose")

    x = torch.ones(2, requires_grad=True)
    loss = Broken.apply(x.exp()).sum()
    live = walk([loss])
    with pytest.raises(ValueError, match="on purpose"), watch(live) as seen:
        loss.backward()
    assert [live.nodes[place].name() for place in seen.order] == ["SumBackward0", "BrokenBackward"]
    assert seen.accumulated == {}


def test_two_backwards_are_both_seen() -> None:
    x = torch.ones(2, requires_grad=True)
    loss = x.exp().sum()
    live = walk([loss])
    with watch(live) as seen:
        loss.backward(retain_graph=True)
        loss.backward()
    assert seen.order == [0, 1, 2, 0, 1, 2]


def test_the_readers_hooks_run_and_are_left() -> None:
    x = torch.ones(2, requires_grad=True)
    middle = x.exp()
    calls: list[str] = []
    middle.register_hook(lambda gradient: calls.append("tensor"))
    middle.grad_fn.register_prehook(lambda gradients: calls.append("before"))
    middle.grad_fn.register_hook(lambda inputs, outputs: calls.append("after"))
    middle.retain_grad()
    loss = middle.sum()
    live = walk([loss])
    for summary in (None, summarise):
        calls.clear()
        with watch(live, summary):
            loss.backward(retain_graph=True)
        assert calls == ["tensor", "before", "after"]
    assert middle.grad is not None


def test_seen_holds_no_tensor() -> None:
    loss, leaves = build("mlp")
    refs = [weakref.ref(one) for one in (loss, *leaves)]
    live = walk([loss])
    with watch(live) as seen:
        loss.backward()
    assert seen.order
    del loss, leaves, live
    assert [ref() for ref in refs] == [None] * len(refs)


def test_torchs_quick_way_to_hook_a_node_still_exists() -> None:
    """Without it `register_prehook` does the same at four times the cost: see `_note_order`."""
    x = torch.ones(2, requires_grad=True)
    assert hasattr(x.exp().grad_fn, "_register_hook_dict")
    assert callable(torch._C._current_autograd_node)


def test_without_the_quick_way_the_order_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    order, _, _ = official("gpt")
    monkeypatch.delattr(torch._C, "_current_autograd_node")
    loss, _ = build("gpt")
    live = walk([loss])
    with watch(live) as seen:
        loss.backward()
    assert seen.order == order


def node(index: int, op: int | None, *saved: tuple[int | None, int], freed: bool = True) -> Node:
    kept = tuple(Saved("self", (), "float32", size, storage, 0, None) for storage, size in saved)
    return Node(
        index,
        "X",
        "builtin",
        (),
        (),
        ((),),
        "",
        "",
        kept,
        freed if kept else None,
        None,
        op,
        0,
        (),
        0,
    )


def test_bytes_rise_in_forward_and_fall_in_backward() -> None:
    nodes = [node(0, 2), node(1, 1, (7, 100), (8, 20)), node(2, 0, (7, 100), (None, 3))]
    assert timeline(nodes, range(3), [0, 1, 2]) == [
        ("op", 0, 103),
        ("op", 1, 123),
        ("op", 2, 123),
        ("node", 0, 123),
        ("node", 1, 103),  # storage 7 is held by node 2
        ("node", 2, 0),
    ]


def test_two_views_of_a_storage_count_once_and_a_kept_graph_stays() -> None:
    nodes = [node(0, 0, (1, 40), freed=False), node(1, 0, (1, 100), freed=False)]
    assert timeline(nodes, range(1), [0, 1]) == [("op", 0, 100), ("node", 0, 100), ("node", 1, 100)]


@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.just(8)), max_size=4), max_size=8))
def test_what_rises_falls_to_nothing(saved: list[list[tuple[int, int]]]) -> None:
    """Against counting the held storages anew at every moment."""
    nodes = [node(i, i, *kept) for i, kept in enumerate(saved)]
    line = timeline(nodes, range(len(nodes)), reversed(range(len(nodes))))
    for i in range(len(nodes)):
        held = {storage for kept in saved[: i + 1] for storage, _ in kept}
        assert line[i] == ("op", i, 8 * len(held))
    for step, i in enumerate(reversed(range(len(nodes)))):
        held = {storage for kept in saved[:i] for storage, _ in kept}
        assert line[len(nodes) + step] == ("node", i, 8 * len(held))


@pytest.mark.parametrize("inside", [False, True])
def test_full_values_keep_the_elements_of_small_gradients(inside):
    w = torch.tensor([1.0, -2.0], requires_grad=True)
    big = torch.ones(65, requires_grad=True)

    def step():
        loss = (w * w * w).sum() + big.sum()
        if inside:
            loss.backward()
        return loss

    rec = record(step, values="full", backward=not inside)
    leaves = {node.parameter: node.numbers for node in rec.nodes if node.kind == "accumulate"}
    assert leaves == {"w": ((3.0, 12.0),), "big": (None,)}
    assert all(len(node.numbers) == len(node.grads) for node in rec.nodes)


def test_a_summary_keeps_no_elements_of_gradients():
    rec = record(lambda: torch.ones(2, requires_grad=True).exp().sum(), backward=True)
    assert {node.numbers for node in rec.nodes} == {()}
