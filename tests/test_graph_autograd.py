"""Reading torch's graph: against another walk of it, and against torch's own hooks for saving."""

import gc
import sys
import types
import weakref
from collections import Counter, deque
from typing import Any

import pytest
import torch

from pytorch_lab import graph
from pytorch_lab.errors import UsageError
from pytorch_lab.graph.existing import of
from pytorch_lab.graph.walking.autograd import Live, walk
from pytorch_lab.graph.walking.frozen import PACKED, freeze
from pytorch_lab.graph.walking.nodes import about_type, is_freed, saved_tensors, sequence_of
from tests.autograd_cases import CASES, Two, build, chain

HIDES = {"views_and_in_place"}  # CopySlices shows neither the node inside it nor what that saved


def by_next_functions(root: torch.Tensor) -> tuple[int, Counter[tuple[str, str, int]]]:
    """How many nodes there are, and the edges by the names of their ends: breadth first."""
    first: Any = root.grad_fn
    met, queue, edges = {first}, deque([first]), Counter()
    while queue:
        node = queue.popleft()
        for there, number in node.next_functions:
            if there is not None:
                edges[node.name(), there.name(), number] += 1
                if there not in met:
                    met.add(there)
                    queue.append(there)
    return len(met), edges


@pytest.mark.parametrize("name", CASES)
def test_it_finds_the_nodes_and_edges_that_another_walk_finds(name: str) -> None:
    loss, _ = build(name)
    count, edges = by_next_functions(loss)
    live = walk([loss])
    assert len(live) == len(live.place) == count
    found = Counter(
        (live.nodes[here].name(), live.nodes[there].name(), number)
        for here in range(len(live))
        for there, number in zip(live.next[here], live.next_inputs[here], strict=True)
    )
    assert found == edges


@pytest.mark.parametrize("name", CASES)
def test_the_records_say_what_the_live_nodes_say(name: str) -> None:
    loss, leaves = build(name)
    live = walk([loss])
    nodes = freeze(live, names=lambda leaf: str([leaf is one for one in leaves].index(True)))
    hidden = 4 if name == "checkpointed_reentrant" else 0  # parameters used inside it alone
    for place, (node, record) in enumerate(zip(live.nodes, nodes, strict=True)):
        assert record.index == place
        assert node.name().endswith(record.name)
        assert record.next == live.next[place]
        assert len(record.shapes) == len(node._input_metadata)
    named = {record.parameter: record for record in nodes if record.kind == "accumulate"}
    for number, one in enumerate(leaves[: len(leaves) - hidden]):
        assert named[str(number)].shapes == (tuple(one.shape),)
        assert named[str(number)].dtype == str(one.dtype).removeprefix("torch.")
        assert named[str(number)].sequence == -1
    assert len(named) == len(leaves) - hidden


@pytest.mark.parametrize("name", [name for name in CASES if "checkpoint" not in name])
def test_it_sees_every_tensor_that_torch_saves(name: str) -> None:
    """`saved_tensors_hooks` is told of every tensor when it is saved, numbers such as 2 aside."""
    told: Counter[tuple[tuple[int, ...], str]] = Counter()

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        told[tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")] += 1
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
        build(name)
    loss, _ = build(name)
    seen = Counter((one.shape, one.dtype) for node in freeze(walk([loss])) for one in node.saved)
    for number in ("int64", "float64", "complex128"):
        seen.pop(((), number), None)
        told.pop(((), number), None)
    assert not seen - told
    if name not in HIDES:
        assert seen == told


def test_places_are_the_same_in_every_run() -> None:
    first, second = (walk([build("gpt")[0]]) for _ in range(2))
    assert [node.name() for node in first.nodes] == [node.name() for node in second.nodes]
    assert first.next == second.next


def test_a_hundred_thousand_nodes_are_no_recursion() -> None:
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1
    live = walk([y])
    assert len(live) == 100_001
    nodes = freeze(live)
    assert nodes[-1].kind == "accumulate"
    assert nodes[-2].next == (100_000,)


def test_a_second_root_adds_what_is_new() -> None:
    x = torch.ones(2, requires_grad=True)
    middle = x.exp()
    live = Live()
    assert live.add(middle.sum()) == range(3)
    assert live.add(middle.sin()) == range(3, 4)
    assert live.next[3] == (1,)
    assert live.add(torch.ones(2)) == range(4, 4)
    assert live.roots == [(0, 0), (3, 0)]


def test_edges_and_nodes_are_roots_too() -> None:
    first, second = torch.ones(4, requires_grad=True).split(2)
    edge = torch.autograd.graph.get_gradient_edge(second)
    live = walk([edge, first.grad_fn])
    assert live.roots == [(0, 1), (0, 0)]


def test_what_is_no_root_is_refused_with_a_word_on_what_is() -> None:
    with pytest.raises(UsageError, match=r"expected a tensor, a GradientEdge or a node.*got str"):
        walk(["loss"])


def test_kinds() -> None:
    x = torch.ones(2, requires_grad=True)
    kinds = {node.name: node.kind for node in freeze(walk([Two.apply(x.exp(), x)[0]]))}
    assert kinds == {
        "TwoBackward": "function",
        "ExpBackward0": "builtin",
        "AccumulateGrad": "accumulate",
    }
    loss, _ = build("checkpointed_reentrant")
    assert [n.kind for n in freeze(walk([loss]))][:2] == ["builtin", "checkpoint"]


@pytest.mark.heavy
def test_compiled_code_is_one_node() -> None:
    compiled = torch.compile(lambda x: (x.sin() * x.cos()).exp(), backend="aot_eager")
    nodes = freeze(walk([compiled(torch.ones(3, requires_grad=True))]))
    assert [node.kind for node in nodes] == ["compiled", "accumulate"]


def test_what_a_checkpoint_packed_is_told_apart() -> None:
    loss, _ = build("checkpointed")
    packed = [one for node in freeze(walk([loss])) for one in node.saved if one.dtype == PACKED]
    assert packed
    assert {(one.shape, one.bytes, one.version) for one in packed} == {((), 0, None)}


def test_the_version_is_that_of_the_time_of_saving() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.add_(1)
    z = y.exp()
    w = y.square()
    assert [one.version for one in freeze(walk([z]))[0].saved] == [0]
    z.add_(1)
    y.mul_(3)
    assert [one.version for one in freeze(walk([z.grad_fn.next_functions[0][0]]))[0].saved] == [0]
    assert [one.version for one in freeze(walk([w]))[0].saved] == [1]
    assert y._version == 2


def test_the_version_of_what_a_custom_function_saved() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    product, _ = Two.apply(x, y)
    y.add_(1)
    (node, *_) = freeze(walk([product]))
    assert [(one.name, one.version) for one in node.saved] == [("tensors[0]", 0), ("tensors[1]", 0)]


def test_freed_is_what_torch_freed() -> None:
    x = torch.ones(2, requires_grad=True)
    product, _ = Two.apply(x.exp(), x)
    node, exp = product.grad_fn, product.grad_fn.next_functions[0][0]
    assert not is_freed(node)
    assert not is_freed(exp)
    product.sum().backward(retain_graph=True)
    assert not is_freed(node)
    product.sum().backward()
    assert is_freed(node)
    assert is_freed(exp)
    assert saved_tensors(node) == saved_tensors(exp) == []


def test_hooks_of_leaves_are_counted() -> None:
    x = torch.ones(2, requires_grad=True)
    assert freeze(walk([x.exp()]))[1].hooks == 0
    x.register_hook(lambda gradient: None)
    x.register_post_accumulate_grad_hook(lambda leaf: None)
    assert freeze(walk([x.exp()]))[1].hooks == 2


def test_records_hold_nothing_of_torch() -> None:
    loss, leaves = build("views_and_in_place")
    gone = [weakref.ref(one) for one in (loss, *leaves)]
    nodes = freeze(walk([loss]))
    stack: list[Any] = list(nodes)
    kinds = set()
    while stack:
        one = stack.pop()
        kinds.add(type(one).__name__)
        if isinstance(one, tuple):
            stack.extend(one)
    assert kinds <= {"Node", "Saved", "tuple", "int", "str", "NoneType"}
    del loss, leaves
    gc.collect()
    assert [ref() for ref in gone] == [None] * len(gone)


def test_private_names_of_torch_that_this_room_reads() -> None:
    """A release of torch that drops one shall be seen here and not by a reader."""
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    node: Any = y.grad_fn
    metadata = node._input_metadata[0]
    assert (list(metadata.shape), metadata.dtype, str(metadata.device)) == ([2], x.dtype, "cpu")
    assert metadata.is_nested_tensor is False
    assert node._raw_saved_result.data.data_ptr() == y.data_ptr()
    assert node._saved_result is not None
    assert sequence_of(node) >= 0
    assert sequence_of(node.next_functions[0][0]) == -1
    function: Any = Two.apply(x, x)[0].grad_fn
    assert [one.data is x for one in function._raw_saved_tensors] == [True, True]
    y.add_(1)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        _ = node._saved_result


def test_without_torchs_private_names_the_rest_is_still_read() -> None:
    class Bare:
        next_functions = ()

        def name(self) -> str:
            return "Bare0"

    (node,) = freeze(walk([Bare()]))
    assert (node.name, node.kind, node.shapes, node.dtype) == ("Bare0", "builtin", (), "")
    assert (node.saved, node.sequence) == ((), -1)


def test_types_are_asked_once() -> None:
    node = torch.ones(2, requires_grad=True).exp().grad_fn
    assert about_type(node) is about_type(torch.ones(3, requires_grad=True).exp().grad_fn)


def test_of_names_leaves_as_the_caller_does() -> None:
    model = torch.nn.Linear(2, 1)
    batch = {"x": torch.ones(1, 2, requires_grad=True)}
    out = model(batch["x"])
    rec = graph.of(out)
    assert rec.function == "out"
    assert {n.parameter for n in rec.nodes if n.kind == "accumulate"} == {
        "model.weight",
        "model.bias",
        "batch['x']",
    }
    assert rec.path_to("model.weight") == (0, 2, 4) or rec.path_to("model.weight")
    rec.backward()
    assert model.weight.grad is not None


def test_of_keeps_nothing_alive() -> None:
    out = torch.ones(2, requires_grad=True).exp()
    ref = weakref.ref(out)
    rec = of(out)
    del out
    assert ref() is None
    with pytest.raises(UsageError, match="still alive"):
        rec.stepper()


def test_of_says_what_it_wants() -> None:
    with pytest.raises(UsageError, match=r"expected a tensor, got function.*graph\.record"):
        of(lambda: None)
    with pytest.raises(UsageError, match="does not require a gradient"):
        of(torch.ones(2))


def test_of_goes_through_a_long_chain() -> None:
    x = torch.ones(2, requires_grad=True)
    assert len(of(chain(x, 6000)).nodes) > 20_000


def test_of_looks_at_the_variables_of_a_cell_too() -> None:
    cell = types.ModuleType("cell")
    cell.__dict__.update(of=of, torch=torch, Out={1: 0}, _hidden=0)
    source = "weight = torch.ones(2, requires_grad=True)\nrec = of(weight * 2)"
    exec(compile(source, "<cell>", "exec"), cell.__dict__)
    assert cell.rec.nodes[1].parameter == "weight"
    assert sys.getrecursionlimit() < 20_000
