"""Read torch's own graph: from a result back to the leaves, and what every node keeps.

    live = walk([loss])         # torch's nodes, held alive
    nodes = freeze(live)        # records: numbers and strings, nothing of torch

`Live` holds torch's nodes, and with them every tensor that they saved: keep it for as long as it is
looked at, no longer. A node that is let go may hand its `id` to the next one, so nodes are known by
their place in `Live`, and a record knows places alone.

What is private in torch is read in this file alone: `_input_metadata`, `_raw_saved_*`,
`_sequence_nr`. Where a release of torch lacks one, its part of the record is empty.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from pytorch_lab.errors import UsageError
from pytorch_lab.graph.record import Node, Saved, Shape

Namer = Callable[[torch.Tensor], Any]

_LEAF_SEQUENCE = 2**64 - 1  # what torch gives AccumulateGrad, so that it runs first
_SAVED = "_raw_saved_"


class Live:
    """The nodes of a graph that still lives, each known by its place.

    Places are given as nodes are met, so they are the same in every run of the same code.
    `next[place]` and `next_inputs[place]` are the edges, as in `record.Node`.

    Example:
        >>> import torch
        >>> x = torch.ones(3, requires_grad=True)
        >>> live = Live()
        >>> live.add((2 * x).sum())
        range(0, 3)
        >>> [node.name() for node in live.nodes]
        ['SumBackward0', 'MulBackward0', 'torch::autograd::AccumulateGrad']
        >>> live.next
        [(1,), (2,), ()]
        >>> live.add(x)  # known already
        range(3, 3)
    """

    __slots__ = ("next", "next_inputs", "nodes", "place", "roots")

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.place: dict[Any, int] = {}
        self.next: list[tuple[int, ...]] = []
        self.next_inputs: list[tuple[int, ...]] = []
        self.roots: list[tuple[int, int]] = []  # place, and which output of that node

    def __len__(self) -> int:
        return len(self.nodes)

    def add(self, root: Any) -> range:
        """Go back from `root` and take in what is not here yet; the new places.

        Args:
            root: a tensor, a `GradientEdge` or a node. A tensor without a graph adds nothing.
        """
        start = len(self.nodes)
        edge = edge_of(root)
        if edge is None:
            return range(start, start)
        node = edge[0]
        if node not in self.place:
            self._meet(node)
            self._follow(start)
        self.roots.append((self.place[node], edge[1]))
        return range(start, len(self.nodes))

    def _meet(self, node: Any) -> None:
        self.place[node] = len(self.nodes)
        self.nodes.append(node)
        self.next.append(())
        self.next_inputs.append(())

    def _follow(self, start: int) -> None:
        """A stack and no recursion: Python's own stack ends at about a thousand calls."""
        place, nodes = self.place, self.nodes
        stack = [start]
        while stack:
            here = stack.pop()
            targets: list[int] = []
            inputs: list[int] = []
            for node, number in nodes[here].next_functions:
                if node is None:
                    continue
                there = place.get(node)
                if there is None:
                    there = len(nodes)
                    self._meet(node)
                    stack.append(there)
                targets.append(there)
                inputs.append(number)
            self.next[here] = tuple(targets)
            self.next_inputs[here] = tuple(inputs)


def edge_of(root: Any) -> tuple[Any, int] | None:
    """The node behind `root` and which of its outputs; None if no graph leads there.

    Example:
        >>> import torch
        >>> edge_of(torch.ones(2)) is None
        True
        >>> edge_of(torch.ones(2, requires_grad=True).exp())[0].name()
        'ExpBackward0'
    """
    if isinstance(root, torch.Tensor):
        if not root.requires_grad:
            return None
        edge = get_gradient_edge(root)
        return edge.node, edge.output_nr
    if isinstance(root, GradientEdge):
        return root.node, root.output_nr
    if hasattr(root, "next_functions"):
        return root, 0
    raise UsageError(
        f"expected a tensor, a GradientEdge or a node as the root of a graph, "
        f"got {type(root).__name__}; pass the result that you would call backward() on"
    )


def walk(roots: Iterable[Any]) -> Live:
    """All nodes behind some results; see `Live`.

    Args:
        roots: tensors, gradient edges or nodes.

    Example:
        >>> import torch
        >>> layer = torch.nn.Linear(3, 2)
        >>> len(walk([layer(torch.ones(1, 3))]))
        4
    """
    live = Live()
    for root in roots:
        live.add(root)
    return live


def nothing(tensor: torch.Tensor) -> None:
    """What is known of a tensor when nobody was asked."""


def freeze(
    live: Live,
    *,
    names: Namer = nothing,
    storages: Namer = nothing,
    values: Namer = nothing,
    op_of_node: Callable[[int], int | None] = lambda place: None,
    places: Iterable[int] | None = None,
) -> tuple[Node, ...]:
    """Records of live nodes, which keep nothing of torch.

    The version of a saved tensor is the one it has now: freeze right after the op, before somebody
    writes to it.

    Args:
        live: the graph.
        names: gives the name of a leaf tensor, or None.
        storages: gives the number of a tensor's storage, or None.
        values: gives the place of a tensor among the values recorded, or None.
        op_of_node: gives the op that made the node at a place.
        places: which nodes; all of them if None.

    Example:
        >>> import torch
        >>> x = torch.ones(3, requires_grad=True)
        >>> nodes = freeze(walk([x.exp().sum()]), names=lambda leaf: "x")
        >>> [(node.name, node.shapes, node.parameter) for node in nodes]
        [('SumBackward0', ((),), None), ('ExpBackward0', ((3,),), None), ('AccumulateGrad', ((3,),), 'x')]
        >>> nodes[1].saved
        (Saved(name='result', shape=(3,), dtype='float32', bytes=12, storage=None, version=0, value=None),)
    """
    freezer = _Freezer(names, storages, values)
    chosen = range(len(live)) if places is None else places
    return tuple(freezer.node(live, place, op_of_node(place)) for place in chosen)


class _Freezer:
    """Makes records; equal shapes and names are one object."""

    def __init__(self, names: Namer, storages: Namer, values: Namer) -> None:
        self.names = names
        self.storages = storages
        self.values = values
        self.shapes: dict[Shape, Shape] = {}

    def node(self, live: Live, place: int, op: int | None) -> Node:
        node = live.nodes[place]
        name, kind, _ = about_type(node)
        metadata = getattr(node, "_input_metadata", ())
        leaf = kind == "accumulate"
        return Node(
            index=place,
            name=name,
            kind=kind,
            next=live.next[place],
            next_inputs=live.next_inputs[place],
            shapes=tuple(map(self._shape_of, metadata)),
            dtype=spell(metadata[0].dtype) if metadata else "",
            device=spell(metadata[0].device) if metadata else "",
            saved=() if leaf else self._saved(node),
            freed=None,
            parameter=(self.names(node.variable) or "") if leaf else None,
            op=op,
            sequence=sequence_of(node),
            grads=(),
            hooks=hooks_of(node.variable) if leaf else 0,
        )

    def _shape_of(self, metadata: Any) -> Shape:
        shape = tuple(metadata.shape)
        return self.shapes.setdefault(shape, shape)

    def _saved(self, node: Any) -> tuple[Saved, ...]:
        return tuple(self._save(name, tensor) for name, tensor in saved_of(node))

    def _save(self, name: str, tensor: torch.Tensor) -> Saved:
        shape = tuple(tensor.shape)
        return Saved(
            name,
            self.shapes.setdefault(shape, shape),
            spell(tensor.dtype),
            tensor.numel() * tensor.element_size(),
            self.storages(tensor),
            None if tensor.is_inference() else tensor._version,
            self.values(tensor),
        )


_types: dict[type, tuple[str, str, tuple[tuple[str, str], ...]]] = {}
_spelled: dict[Any, str] = {}


def spell(thing: torch.dtype | torch.device) -> str:
    """`float32`, `cpu`."""
    text = _spelled.get(thing)
    if text is None:
        text = _spelled[thing] = str(thing).removeprefix("torch.")
    return text


def about_type(node: Any) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """The name and the kind of a node, and which attributes hold what it saved.

    Example:
        >>> import torch
        >>> about_type(torch.ones(2, requires_grad=True).exp().grad_fn)
        ('ExpBackward0', 'builtin', (('_raw_saved_result', 'result'),))
    """
    kind = type(node)
    known = _types.get(kind)
    if known is None:
        name = node.name().removeprefix("torch::autograd::")
        attributes = tuple(
            (attribute, attribute.removeprefix(_SAVED))
            for attribute in dir(kind)
            if attribute.startswith(_SAVED)
        )
        known = name, _kind_of(node, name), attributes
        if not kind.__name__.endswith("CppFunction"):  # one type for all that torch didn't name
            _types[kind] = known
    return known


def _kind_of(node: Any, name: str) -> str:
    if hasattr(node, "variable"):
        return "accumulate"
    if not isinstance(node, torch.autograd.function.BackwardCFunction):
        return "builtin"
    if name == "CheckpointFunctionBackward":
        return "checkpoint"
    return "compiled" if name == "CompiledFunctionBackward" else "function"


def saved_of(node: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """What a node keeps for backward, without unpacking and without a check of versions.

    What a saved-tensor hook put in a tensor's place is left out unless it is a tensor.
    """
    for attribute, name in about_type(node)[2]:
        try:
            saved = getattr(node, attribute)
        except RuntimeError:  # a list of tensors that is freed
            continue
        if not isinstance(saved, (tuple, list)):
            if isinstance(saved.data, torch.Tensor):
                yield name, saved.data
            continue
        for number, item in enumerate(saved):
            if isinstance(item.data, torch.Tensor):
                yield f"{name}[{number}]", item.data


def is_freed(node: Any) -> bool | None:
    """Whether what the node saved is gone; None if it never saves anything."""
    attributes = about_type(node)[2]
    if not attributes:
        return None
    return next(saved_of(node), None) is None


def sequence_of(node: Any) -> int:
    """Torch's count of nodes when this one was made; -1 for AccumulateGrad."""
    number = node._sequence_nr() if hasattr(node, "_sequence_nr") else -1
    return -1 if number == _LEAF_SEQUENCE else number


def hooks_of(leaf: torch.Tensor) -> int:
    """How many hooks are on a leaf tensor."""
    return sum(
        len(getattr(leaf, name, None) or ())
        for name in ("_backward_hooks", "_post_accumulate_grad_hooks")
    )
