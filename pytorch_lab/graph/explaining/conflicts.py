"""Who wrote over a tensor that backward still needs? Read off a record."""

from collections.abc import Iterator
from typing import NamedTuple

from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.schema import Node, Op, Saved, Value


class Conflict(NamedTuple):
    """A saved tensor, and the op that changed it before backward came to it."""

    node: Node
    saved: Saved
    writer: Op
    version: int  # that it had after the write


def conflicts(record: GraphRecord) -> Iterator[Conflict]:
    """Every saved tensor that was written to afterwards; the node that backward meets first, first.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph import record
        >>> rec = record(lambda x: x.exp().add_(1).sum(), torch.ones(2, requires_grad=True))
        >>> [(c.node.name, c.saved.name, c.writer.name) for c in conflicts(rec)]
        [('ExpBackward0', 'result', 'add_')]
    """
    writes: dict[int, list[tuple[Op, int]]] = {}
    for op in record.ops:
        for place in op.outputs if op.in_place else ():
            value = record.values[place]
            if value.version is not None:
                writes.setdefault(value.storage, []).append((op, value.version))
    for node in sorted(record.nodes, key=lambda node: -node.sequence):
        for saved in node.saved:
            if saved.storage is None or saved.version is None:
                continue
            for op, version in writes.get(saved.storage, ()):
                if version > saved.version:
                    yield Conflict(node, saved, op, version)
                    break


def older_nodes(record: GraphRecord) -> tuple[int, ...]:
    """Nodes that existed before the recording began, leaves left out."""
    own = [node.sequence for node in record.nodes if node.op is not None]
    first = min(own, default=0)
    return tuple(
        node.index
        for node in record.nodes
        if node.op is None and node.kind != "accumulate" and 0 <= node.sequence < first
    )


def carried_values(record: GraphRecord) -> Iterator[tuple[Value, Op]]:
    """Results of an earlier graph that this run read, each with the first op that did."""
    older = set(older_nodes(record))
    seen: set[int] = set()
    for op in record.ops:
        for place in op.inputs:
            value = record.values[place]
            if place not in seen and value.node in older:
                seen.add(place)
                yield value, op
