"""What every node of a graph says of itself and keeps, as records: nothing of torch is in them.

    nodes = freeze(walk([loss]))

Nodes of one type are read together, attribute by attribute: a graph of tens of thousands of nodes
has a dozen types, and asking is most of the work.

Private in torch is `_input_metadata`, which tells shapes, dtypes and devices; without it these
parts of a record are empty. See `nodes.py` for the rest.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, repeat
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import torch

from pytorch_lab.graph.schema import Node, Saved, Shape
from pytorch_lab.graph.stats import size_of, sizes_of
from pytorch_lab.graph.walking.autograd import Live
from pytorch_lab.graph.walking.nodes import (
    ONE_OUTPUT,
    Attributes,
    alike,
    hooks_of,
    sequence_of,
    spell,
    version_saved,
)

Row = tuple[Any, ...]
Look = tuple[Shape, str, str, Shape, int]  # shape, dtype, device, stride, bytes
Identity = tuple[Shape, str, int, int | None, int | None]  # shape, dtype, bytes, storage, value
_make = tuple.__new__  # half the time of calling the named tuple
_node = partial(_make, Node)
KIND, NEXT, SHAPES, SAVED, FREED, OP, SEQUENCE, GRADS, NUMBERS = map(
    Node._fields.index,
    ("kind", "next", "shapes", "saved", "freed", "op", "sequence", "grads", "numbers"),
)
Received = tuple[tuple[Shape, ...], str, str]  # shapes, dtype, device
UNKNOWN = (-1,)  # the shape of a gradient that is nested in the strided layout
PACKED = "packed"  # the dtype of what a saved-tensor hook put in a tensor's place


def nothing(*_: Any) -> None:
    """What is known when nobody was asked."""


class Reader:
    """What is known of a graph besides what torch says; this one knows the names of leaves.

    Args:
        name: gives the name of a leaf tensor, or None.

    Attributes:
        ops: which op made a node, by the node's sequence number.
        looks: shape, dtype and device of the result that a node belongs to, by the node's sequence
            number; asking torch for them takes as long as all the rest.
    """

    ops: Mapping[Any, int] = MappingProxyType({})
    looks: Mapping[Any, Look] = MappingProxyType({})

    def __init__(self, name: Callable[[torch.Tensor], str | None] = nothing) -> None:
        self.name = name

    def saved(
        self, name: str, nodes: Sequence[Any], tensors: Sequence[Any], ops: Sequence[int | None]
    ) -> list[Saved | None]:
        """What some nodes of one type keep under one name; None where that is nothing.

        Args:
            name: as the derivative's formula calls it.
            nodes: all of one type.
            tensors: what each keeps.
            ops: which made each.
        """
        return [
            None if tensor is None else self.save(name, node, tensor, op)
            for node, tensor, op in zip(nodes, tensors, ops, strict=True)
        ]

    def save(self, name: str, node: Any, tensor: Any, op: int | None, listed: Any = None) -> Saved:
        """What one node keeps under one name.

        Args:
            name: as the derivative's formula calls it.
            node: which keeps it.
            tensor: what it keeps, be it that a hook put something else there.
            op: which made the node.
            listed: torch's own record of it if it is in a list.
        """
        try:
            shape, dtype, size, storage, value = self.identify(tensor, op)
            version = tensor._version
        except AttributeError:  # what a hook put there is no tensor
            return Saved(name, (), PACKED, 0, None, None, None)
        if version:
            version = version_saved(node, name, tensor, listed)
        return _make(Saved, (name, shape, dtype, size, storage, version, value))

    def identify(self, tensor: torch.Tensor, op: int | None) -> Identity:
        """Shape, dtype, bytes, storage and value of a tensor that the node of an op saved.

        The last two are places among the storages and values recorded; None if it was never met.
        """
        return sizes_of(tensor), spell(tensor.dtype), size_of(tensor), None, None


def freeze(
    live: Live, *, names: Callable[[torch.Tensor], str | None] = nothing
) -> tuple[Node, ...]:
    """Records of live nodes, which keep nothing of torch.

    Args:
        live: the graph.
        names: gives the name of a leaf tensor, or None.

    Example:
        >>> import torch
        >>> x = torch.ones(3, requires_grad=True)
        >>> from pytorch_lab.graph.walking.autograd import walk
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
    return nodes_of(node_rows(live, Reader(names)))


def nodes_of(rows: Iterable[Row]) -> tuple[Node, ...]:
    """The fields with their names."""
    return tuple(map(_node, rows))


def node_rows(live: Live, reader: Reader, start: int = 0) -> list[Row]:
    """Like `freeze`, but each node is a plain tuple of the fields of `schema.Node`.

    Args:
        live: the graph.
        reader: what is known besides.
        start: the first place that is wanted.
    """
    freezer = _Freezer(live, reader)
    rows: list[Row] = [()] * (len(live) - start)
    wanted = islice(live.place.values(), start, None)  # the numbers that are in `live.next`, too
    for places, nodes, about in alike(live.nodes, wanted):
        for row in freezer.rows(places, nodes, about):
            rows[row[0] - start] = row
    return rows


class _Freezer:
    """Makes rows; equal shapes and names are one object."""

    def __init__(self, live: Live, reader: Reader) -> None:
        self.live = live
        self.reader = reader
        self.shapes: dict[Shape, Shape] = {}
        self.alone: dict[Shape, tuple[Shape]] = {}  # of nodes with one output, which most are

    def rows(
        self, places: list[int], nodes: list[Any], about: tuple[str, str, Attributes]
    ) -> Iterable[Row]:
        """The rows of nodes of one type."""
        name, kind, attributes = about
        if kind == "accumulate":
            return map(self._leaf, places, nodes, repeat(name))
        sequences = list(map(sequence_of, nodes))
        ops = list(map(self.reader.ops.get, sequences))
        looks = list(map(self.reader.looks.get, sequences))
        received = (
            [self._one(node, look) for node, look in zip(nodes, looks, strict=True)]
            if name in ONE_OUTPUT
            else map(self._received, nodes, looks)
        )
        shapes, dtypes, devices = zip(*received, strict=True)
        nothing, none = repeat(()), repeat(None)
        return zip(
            places,
            repeat(name),
            repeat(kind),
            map(self.live.next.__getitem__, places),
            map(self.live.next_inputs.__getitem__, places),
            shapes,
            dtypes,
            devices,
            self._saved(nodes, attributes, ops) if attributes else nothing,
            none,
            none,
            ops,
            sequences,
            nothing,
            repeat(0),
            nothing,
        )

    def _leaf(self, place: int, node: Any, name: str) -> Row:
        leaf = node.variable
        rest = ((), None, self.reader.name(leaf) or "", None, -1, (), hooks_of(leaf), ())
        return (place, name, "accumulate", (), (), *self._received(node, None), *rest)

    # What the gradient looks like that a node receives

    def _one(self, node: Any, look: Look | None) -> Received:
        """As the one result that it belongs to."""
        if look is None:
            return self._received(node, None)
        return self.alone.get(look[0]) or self._alone(look[0]), look[1], look[2]

    def _received(self, node: Any, look: Look | None) -> Received:
        metadata = getattr(node, "_input_metadata", ())
        if look is not None and len(metadata) == 1:
            return self.alone.get(look[0]) or self._alone(look[0]), look[1], look[2]
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

    # What nodes keep

    def _saved(
        self, nodes: Sequence[Any], attributes: Attributes, ops: Sequence[int | None]
    ) -> list[tuple[Saved, ...]]:
        columns = []
        try:
            for attribute, name in attributes:
                tensors = list(map(attrgetter(f"{attribute}.data"), nodes))
                columns.append(self.reader.saved(name, nodes, tensors, ops))
        except (AttributeError, RuntimeError):  # a list is a tuple here, an error once it is freed
            return [
                tuple(self._saved_by_one(node, attributes, op))
                for node, op in zip(nodes, ops, strict=True)
            ]
        if len(columns) == 1:
            return [() if one is None else (one,) for one in columns[0]]
        return [
            tuple([one for one in kept if one is not None]) for kept in zip(*columns, strict=True)
        ]

    def _saved_by_one(self, node: Any, attributes: Attributes, op: int | None) -> Iterator[Saved]:
        for attribute, name in attributes:
            try:
                kept = getattr(node, attribute)
            except RuntimeError:  # a list of tensors that is freed
                continue
            if type(kept) is not tuple:
                if kept.data is not None:
                    yield self.reader.save(name, node, kept.data, op)
                continue
            for at, one in enumerate(kept):
                if one.data is not None:
                    yield self.reader.save(f"{name}[{at}]", node, one.data, op, one)
