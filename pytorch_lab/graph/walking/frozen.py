"""What every node of a graph says of itself and keeps, as records: nothing of torch is in them.

    nodes = freeze(walk([loss]))

Nodes of one type are read together, attribute by attribute: a graph of tens of thousands of nodes
has a dozen types, and asking is most of the work. Rows are made of the answers later: see
`NodeRows`.

Private in torch is `_input_metadata`, which tells shapes, dtypes and devices; without it these
parts of a record are empty. See `nodes.py` for the rest.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, repeat
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from pytorch_lab.graph.schema import Node, Saved, Shape
from pytorch_lab.graph.stats import size_of, sizes_of
from pytorch_lab.graph.walking.autograd import Live
from pytorch_lab.graph.walking.nodes import (
    ONE_OUTPUT,
    Attributes,
    alike,
    hooks_of,
    sequences_of,
    spell,
    version_saved,
)

Row = tuple[Any, ...]
Look = tuple[Shape, str, str, Shape, int]  # shape, dtype, device, stride, bytes
Identity = tuple[Shape, str, int, int | None, int | None]  # shape, dtype, bytes, storage, value
_make = tuple.__new__  # half the time of calling the named tuple
_node = partial(_make, Node)
KIND, NEXT, SHAPES, SAVED, FREED, OP, GRADS, NUMBERS = map(
    Node._fields.index,
    ("kind", "next", "shapes", "saved", "freed", "op", "grads", "numbers"),
)
Received = tuple[tuple[Shape, ...], str, str]  # shapes, dtype, device
_DTYPE, _DEVICE = itemgetter(1), itemgetter(2)  # of a look
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
            number, or for a leaf's node by -1 less the leaf's `id`; asking torch for them takes as
            long as all the rest.
    """

    ops: Mapping[Any, int] = MappingProxyType({})
    looks: Mapping[Any, Look] = MappingProxyType({})

    def __init__(self, name: Callable[[torch.Tensor], str | None] = nothing) -> None:
        self.name = name

    def saved(
        self, name: str, nodes: Sequence[Any], tensors: Sequence[Any], ops: Sequence[int | None]
    ) -> Iterable[Saved | None]:
        """What some nodes of one type keep under one name; None where that is nothing.

        What comes back may be made only when it is taken, and holds nothing of torch.

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
    rows = NodeRows()
    rows.read(live, Reader(names))
    return nodes_of(rows.made())


def nodes_of(rows: Iterable[Row]) -> tuple[Node, ...]:
    """The fields with their names."""
    return tuple(map(_node, rows))


class Group(NamedTuple):
    """What was read of nodes of one type."""

    places: list[int]
    kind: str
    sequences: list[int]
    rows: Iterable[Row]  # made when they are taken


class NodeRows:
    """The rows of a graph's nodes: tuples of the fields of `schema.Node`.

    To read a node needs torch and cannot wait, to make a row of it can: the rows are made when they
    are first asked for. Nothing of torch is held until then.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph.walking.autograd import walk
        >>> rows = NodeRows()
        >>> rows.read(walk([torch.ones(3, requires_grad=True).exp()]), Reader())
        >>> len(rows), [row[1] for row in rows.made()]
        (2, ['ExpBackward0', 'AccumulateGrad'])
    """

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self._count = 0
        self._made: list[Row] = []
        self._waiting: list[Group] = []

    def __len__(self) -> int:
        return self._count

    def read(self, live: Live, reader: Reader) -> None:
        """Read the nodes that were not there the last time.

        Args:
            live: the graph.
            reader: what is known besides.
        """
        wanted = islice(live.place.values(), self._count, None)  # the numbers of `live.next`, too
        freezer = _Freezer(live, reader)
        groups = [freezer.group(*one) for one in alike(live.nodes, wanted)]
        self.groups += groups
        self._waiting += groups
        self._count = len(live)

    def made(self) -> list[Row]:
        """A row for each node, by place."""
        if self._waiting:
            self._made += [()] * (self._count - len(self._made))
            for group in self._waiting:
                for row in group.rows:
                    self._made[row[0]] = row
            self._waiting.clear()
        return self._made

    def renumbered(self, new: Sequence[int]) -> "NodeRows":
        """The same nodes at other places.

        Args:
            new: for each place the new one.
        """
        rows = NodeRows()
        rows.groups = [one._replace(places=[new[at] for at in one.places]) for one in self.groups]
        rows._count = self._count
        rows._made = [()] * self._count
        for row in self.made():
            there = tuple([new[at] for at in row[NEXT]])
            rows._made[new[row[0]]] = (new[row[0]], *row[1:NEXT], there, *row[NEXT + 1 :])
        return rows


class _Shapes:
    """Equal shapes are one object."""

    def __init__(self) -> None:
        self._shapes: dict[Shape, Shape] = {}
        self._alone: dict[Shape, tuple[Shape]] = {}  # of nodes with one output, which most are

    def of_look(self, look: Look) -> tuple[Shape]:
        """What a node receives that belongs to one result."""
        shape = look[0]
        return self._alone.get(shape) or self._alone.setdefault(
            shape, (self._shapes.setdefault(shape, shape),)
        )

    def of_metadata(self, metadata: Any) -> Shape:
        """What torch says of one output of a node."""
        shape = UNKNOWN if metadata.is_nested_tensor else tuple(metadata.shape)
        known = self._shapes.get(shape)
        if known is None:  # a nested tensor of the jagged layout has a symbol among its sizes
            known = tuple([size if type(size) is int else -1 for size in shape])
            self._shapes[shape] = known
        return known


class _Freezer:
    """Reads nodes of one type together."""

    def __init__(self, live: Live, reader: Reader) -> None:
        self.live = live
        self.reader = reader
        self.shapes = _Shapes()

    def group(
        self, places: list[int], nodes: list[Any], about: tuple[str, str, Attributes]
    ) -> Group:
        """What nodes of one type say."""
        name, kind, attributes = about
        if kind == "accumulate":
            rows = list(map(self._leaf, places, nodes, repeat(name)))
            return Group(places, kind, [-1] * len(places), rows)
        sequences = sequences_of(nodes)
        ops = list(map(self.reader.ops.get, sequences))
        nothing, none = repeat(()), repeat(None)
        rows = zip(
            places,
            repeat(name),
            repeat(kind),
            map(self.live.next.__getitem__, places),
            map(self.live.next_inputs.__getitem__, places),
            *self._received(nodes, sequences, name in ONE_OUTPUT),
            self._saved(nodes, attributes, ops) if attributes else nothing,
            none,
            none,
            ops,
            sequences,
            nothing,
            repeat(0),
            nothing,
        )
        return Group(places, kind, sequences, rows)

    def _leaf(self, place: int, node: Any, name: str) -> Row:
        leaf = node.variable
        received = self._of_one(node, self.reader.looks.get(-1 - id(leaf)), one_output=True)
        rest = ((), None, self.reader.name(leaf) or "", None, -1, (), hooks_of(leaf), ())
        return (place, name, "accumulate", (), (), *received, *rest)

    # What the gradient looks like that a node receives

    def _received(
        self, nodes: Sequence[Any], sequences: Sequence[int], one_output: bool
    ) -> Iterable[Iterable[Any]]:
        """Shapes, dtypes and devices; of a node with one output they are those of its result."""
        looks = list(map(self.reader.looks.get, sequences))
        known = [look for look in looks if look is not None]
        if one_output and len(known) == len(looks):
            return map(self.shapes.of_look, known), map(_DTYPE, known), map(_DEVICE, known)
        return zip(*map(self._of_one, nodes, looks, repeat(one_output)), strict=True)

    def _of_one(self, node: Any, look: Look | None, one_output: bool) -> Received:
        if look is not None and (one_output or len(getattr(node, "_input_metadata", ())) == 1):
            return self.shapes.of_look(look), look[1], look[2]
        return self._asked(node)

    def _asked(self, node: Any) -> Received:
        metadata = getattr(node, "_input_metadata", ())
        if not metadata:
            return (), "", ""
        shapes = tuple(map(self.shapes.of_metadata, metadata))
        return shapes, spell(metadata[0].dtype), spell(metadata[0].device)

    # What nodes keep

    def _saved(
        self, nodes: Sequence[Any], attributes: Attributes, ops: Sequence[int | None]
    ) -> Iterable[tuple[Saved, ...]]:
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
        return map(_without_none, zip(*columns, strict=True))

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


def _without_none(kept: tuple[Saved | None, ...]) -> tuple[Saved, ...]:
    return tuple([one for one in kept if one is not None])
