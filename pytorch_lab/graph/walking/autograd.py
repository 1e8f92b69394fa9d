"""Read torch's own graph: from a result back to the leaves, and what every node keeps.

    live = walk([loss])         # torch's nodes, held alive
    nodes = freeze(live)        # records: numbers and strings, nothing of torch

`Live` holds torch's nodes, and with them every tensor that they saved: keep it for as long as it is
looked at, no longer. A node that is let go may hand its `id` to the next one, so nodes are known by
their place in `Live`, and a record knows places alone.

Private in torch is `_input_metadata`, which tells shapes, dtypes and devices; without it these
parts of a record are empty. See `nodes.py` for the rest.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from pytorch_lab.errors import UsageError
from pytorch_lab.graph.schema import Node, Saved, Shape
from pytorch_lab.graph.stats import size_of, sizes_of
from pytorch_lab.graph.walking.letting_go import LONG, ease
from pytorch_lab.graph.walking.nodes import (
    KNOWN_TYPES,
    Attributes,
    about_type,
    hooks_of,
    sequence_of,
    spell,
    version_saved,
)

Namer = Callable[[torch.Tensor], Any]
Identity = tuple[Shape, str, int, int | None, int | None]  # shape, dtype, bytes, storage, value
_make = tuple.__new__  # half the time of calling the named tuple
UNKNOWN = (-1,)  # the shape of a gradient that is nested in the strided layout
PACKED = "packed"  # the dtype of what a saved-tensor hook put in a tensor's place


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

    __slots__ = ("_eased", "next", "next_inputs", "nodes", "place", "roots")

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.place: dict[Any, int] = {}
        self.next: list[tuple[int, ...]] = []
        self.next_inputs: list[tuple[int, ...]] = []
        self.roots: list[tuple[int, int]] = []  # place, and which output of that node
        self._eased = 0  # see `letting_go.py`

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
            if len(self.nodes) - self._eased > LONG:
                ease(self.nodes, self.next, self._eased)
                self._eased = len(self.nodes)
        self.roots.append((self.place[node], edge[1]))
        return range(start, len(self.nodes))

    def _meet(self, node: Any) -> None:
        self.place[node] = len(self.nodes)
        self.nodes.append(node)
        self.next.append(())
        self.next_inputs.append(())

    def _follow(self, start: int) -> None:
        """A stack and no recursion: Python's own stack ends at about a thousand calls."""
        place, nodes, nexts, next_inputs = self.place, self.nodes, self.next, self.next_inputs
        same: dict[tuple[int, ...], tuple[int, ...]] = {}
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
                    there = place[node] = len(nodes)  # as `_meet` does it
                    nodes.append(node)
                    nexts.append(())
                    next_inputs.append(())
                    stack.append(there)
                targets.append(there)
                inputs.append(number)
            if targets:
                nexts[here] = tuple(targets)
                numbers = tuple(inputs)
                next_inputs[here] = same.setdefault(numbers, numbers)


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
        try:
            edge = get_gradient_edge(root)
        except AttributeError:  # a leaf inside a transform of torch.func: it has no node there
            return None
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


def nothing(*_: Any) -> None:
    """What is known when nobody was asked."""


def freeze(
    live: Live,
    *,
    names: Namer = nothing,
    identify: Callable[[torch.Tensor, int | None], Identity | None] = nothing,
    op_of_node: Callable[[int, int], int | None] = nothing,
    received: Mapping[int, Any] = MappingProxyType({}),
    places: Iterable[int] | None = None,
) -> tuple[Node, ...]:
    """Records of live nodes, which keep nothing of torch.

    Args:
        live: the graph.
        names: gives the name of a leaf tensor, or None.
        identify: gives shape, dtype, bytes, storage and value of a saved tensor of an op's node, if
            it was met before: the last two are places among the storages and values recorded.
        op_of_node: gives the op that made a node, from its place and its sequence number.
        received: shape, dtype and device of the result that a node belongs to, by the node's
            sequence number; asking torch for them takes as long as all the rest.
        places: which nodes; all of them if None.

    Example:
        >>> import torch
        >>> x = torch.ones(3, requires_grad=True)
        >>> nodes = freeze(walk([x.exp().sum()]), names=lambda leaf: "x")
        >>> for node in nodes:
        ...     print(node.name, node.shapes, node.parameter)
        SumBackward0 ((),) None
        ExpBackward0 ((3,),) None
        AccumulateGrad ((3,),) x
        >>> kept = nodes[1].saved[0]
        >>> kept.name, kept.shape, kept.dtype, kept.bytes, kept.version
        ('result', (3,), 'float32', 12, 0)
    """
    freezer = _Freezer(live, names, identify, op_of_node, received)
    return tuple(map(freezer.node, range(len(live)) if places is None else places))


class _Freezer:
    """Makes records; equal shapes and names are one object.

    `node` and what it calls run for each of tens of thousands, so they ask for nothing twice.
    """

    def __init__(
        self, live: Live, names: Namer, identify: Any, op_of_node: Any, received: Mapping[int, Any]
    ) -> None:
        self.live = live
        self.names = names
        self.identify = identify
        self.op_of_node = op_of_node
        self.received = received
        self.shapes: dict[Shape, Shape] = {}
        self.alone: dict[Shape, tuple[Shape]] = {}  # of nodes with one output, which most are

    def node(self, place: int) -> Node:
        """The record of one node."""
        live = self.live
        node = live.nodes[place]
        name, kind, attributes = KNOWN_TYPES.get(type(node)) or about_type(node)
        metadata = getattr(node, "_input_metadata", ())
        if kind == "accumulate":
            leaf = node.variable
            rest = ((), None, self.names(leaf) or "", None, -1, (), hooks_of(leaf), ())
            look = None
        else:
            sequence = sequence_of(node)
            op = self.op_of_node(place, sequence)
            saved = self._saved(node, attributes, op) if attributes else ()
            rest = (saved, None, None, op, sequence, (), 0, ())
            look = self.received.get(sequence)
        if look is not None and len(metadata) == 1:
            shape = look[0]
            about = (self.alone.get(shape) or self._alone(shape), look[1], look[2])
        else:
            about = self._about(metadata)
        start = (place, name, kind, live.next[place], live.next_inputs[place])
        return _make(Node, start + about + rest)

    def _about(self, metadata: Any) -> tuple[tuple[Shape, ...], str, str]:
        if not metadata:
            return (), "", ""
        first = metadata[0]
        return tuple(map(self._shape, metadata)), spell(first.dtype), spell(first.device)

    def _shape(self, metadata: Any) -> Shape:
        shape = UNKNOWN if metadata.is_nested_tensor else tuple(metadata.shape)
        known = self.shapes.get(shape)
        if known is None:  # a nested tensor of the jagged layout has a symbol among its sizes
            known = tuple([size if type(size) is int else -1 for size in shape])
            self.shapes[shape] = known
        return known

    def _alone(self, shape: Shape) -> tuple[Shape]:
        return self.alone.setdefault(shape, (self.shapes.setdefault(shape, shape),))

    def _saved(self, node: Any, attributes: Attributes, op: int | None) -> tuple[Saved, ...]:
        found = []
        for attribute, name in attributes:
            try:
                kept = getattr(node, attribute)
            except RuntimeError:  # a list of tensors that is freed
                continue
            if type(kept) is tuple:
                for at, one in enumerate(kept):
                    if one.data is not None:
                        found.append(self._save(node, f"{name}[{at}]", one, one.data, op))
            else:
                tensor = kept.data
                if tensor is not None:
                    found.append(self._save(node, name, kept, tensor, op))
        return tuple(found)

    def _save(self, node: Any, name: str, kept: Any, tensor: Any, op: int | None) -> Saved:
        try:
            known = self.identify(tensor, op) or self._unknown(tensor)
            version = tensor._version and version_saved(node, name, kept)
        except AttributeError:  # what a hook put there is no tensor
            return Saved(name, (), PACKED, 0, None, None, None)
        shape, dtype, size, storage, value = known
        return _make(Saved, (name, shape, dtype, size, storage, version, value))

    def _unknown(self, tensor: torch.Tensor) -> Identity:
        shape = sizes_of(tensor)
        shape = self.shapes.setdefault(shape, shape)
        return shape, spell(tensor.dtype), size_of(tensor), None, None
