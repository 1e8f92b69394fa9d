"""From the rows of a recording to the record: plain numbers and strings, nothing of torch."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from pytorch_lab.graph.graph_record import GraphRecord, Parts
from pytorch_lab.graph.recording.recorder import Recorder
from pytorch_lab.graph.recording.rows import KIND, NODE, NODES, OUTPUTS, SAVED_BYTES
from pytorch_lab.graph.schema import Call, Failure, Node, Op, Value
from pytorch_lab.words import count

_make = tuple.__new__  # half the time of calling the named tuple


def assemble(
    recorder: Recorder, function: str, results: Sequence[torch.Tensor], failure: Failure | None
) -> GraphRecord:
    """The record of a recording that is over; the graph of the results is read here.

    Args:
        recorder: what was gathered.
        function: the name of what was recorded.
        results: the tensors that it returned.
        failure: what it raised.
    """
    tensors, grown = recorder.tensors, recorder.grown
    outputs = tuple([tensors.met(result)[3] for result in results])
    first_backward = grown.seen is None
    grown.read(results, recorder.rows)
    if not first_backward:
        grown.from_results(results)
    node_of = grown.nodes_of_values()
    calls = tuple(
        [
            _make(Call, (i, *entered[:5], end, entered[5]))
            for i, (entered, end) in enumerate(zip(recorder.calls, recorder.ends, strict=True))
        ]
    )
    nodes = grown.seen.fill(grown.nodes) if grown.seen else tuple(grown.nodes)
    tensors.release()
    return GraphRecord(
        function=function,
        parts=partial(
            _parts, recorder.rows.ops, tensors.late, tensors.rows, tensors.figures, nodes, node_of
        ),
        calls=calls,
        outputs=outputs,
        roots=tuple(
            dict.fromkeys(root for place in outputs if (root := node_of[place]) is not None)
        ),
        modules=tuple(dict.fromkeys(call.path for call in calls)),
        backward_order=tuple(grown.seen.order) if grown.seen else (),
        accumulated=tuple(sorted(grown.seen.accumulated.items())) if grown.seen else (),
        failure=failure,
        notes=tuple(_notes(recorder, grown.nodes)),
        storage_bytes=tuple(tensors.storage_bytes),
    )


def _notes(recorder: Recorder, nodes: Sequence[Node]) -> Iterator[str]:
    """What one should know of parts that are not seen as they are."""
    kinds = {row[KIND] for row in recorder.rows.ops}
    of_nodes = {node.kind for node in nodes}
    if "checkpoint" in of_nodes:
        yield "a reentrant checkpoint is one node; the graph of what ran in it is made in backward"
    elif "checkpoint" in kinds:
        yield "what ran in a checkpoint runs again in backward; that second run is not recorded"
    if "compiled" in kinds:
        as_node = " and one node" if "compiled" in of_nodes else ""
        yield f"compiled code is one op{as_node}: nothing that runs inside is recorded"
    elif "compiled" in of_nodes:
        yield "compiled code is one node"
    elif recorder.sites.compiled:
        yield "compiled code ran uncompiled, op by op"
    for file in recorder.sites.without_source():
        yield f"the text of {file} is kept nowhere, so its lines have numbers and no words"
    if recorder.left_fast_path:
        yield (
            "attention took torch's slow path, because it was recorded; unrecorded it takes the "
            "fast one, and padded places get zeros"
        )
    unseen = sum(node.op is None and node.sequence >= recorder.tensors.started for node in nodes)
    if unseen:
        yield (
            f"{count(unseen, 'node')} made by code that calls no function of torch in Python, "
            f"such as a scripted one"
        )
    if "transform" in kinds:
        yield "inside a transform of torch.func gradients have no nodes that could be shown"


def _parts(
    ops: Sequence[list[Any]],
    late: Mapping[int, Sequence[int]],
    values: Sequence[tuple[Any, ...]],
    figures: Sequence[tuple[Any, Any]],
    nodes: tuple[Node, ...],
    node_of: Sequence[int | None],
) -> Parts:
    """The records made of the columns; see `Rows`, `Tensors` and `Grown`."""
    return Parts(_ops(ops, late, nodes, node_of), _values(values, figures, node_of), nodes)


def _values(
    rows: Sequence[tuple[Any, ...]],
    figures: Sequence[tuple[Any, Any]],
    node_of: Sequence[int | None],
) -> tuple[Value, ...]:
    figures = figures or [(None, None)] * len(rows)
    return tuple(
        [
            _make(Value, (i, *row[:2], *row[2], *row[3:], node, *two))
            for i, (row, node, two) in enumerate(zip(rows, node_of, figures, strict=True))
        ]
    )


def _ops(
    rows: Sequence[list[Any]],
    late: Mapping[int, Sequence[int]],
    nodes: Sequence[Node],
    node_of: Sequence[int | None],
) -> tuple[Op, ...]:
    """The rows, with the nodes that each op made and the node of its result."""
    for op, outputs in late.items():
        rows[op][OUTPUTS] += tuple(outputs)
    kept: set[int] = set()
    for node in nodes:
        if node.op is not None:
            rows[node.op][NODES] += (node.index,)
    leaves = {node.index for node in nodes if node.kind == "accumulate"}
    for row in rows:
        if row[NODES]:
            row[NODES] = mine = tuple(sorted(row[NODES]))
            row[SAVED_BYTES] = _saved_bytes([nodes[place] for place in mine], kept)
        for output in row[OUTPUTS]:
            node = node_of[output]
            if node is not None and node not in leaves:
                row[NODE] = node
                break
    return tuple([_make(Op, row) for row in rows])


def _saved_bytes(nodes: Sequence[Node], kept: set[int]) -> int:
    """What these nodes keep of storages that no earlier op kept, the largest view of each."""
    own = 0
    sizes: dict[int, int] = {}
    for node in nodes:
        for saved in node.saved:
            if saved.storage is None:
                own += saved.bytes
            elif saved.storage not in kept:
                sizes[saved.storage] = max(saved.bytes, sizes.get(saved.storage, 0))
    kept.update(sizes)
    return own + sum(sizes.values())
