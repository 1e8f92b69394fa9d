"""From the rows of a recording to the record: plain numbers and strings, nothing of torch."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import torch

from pytorch_lab.graph.graph_record import GraphRecord, Parts
from pytorch_lab.graph.recording.recorder import Recorder
from pytorch_lab.graph.recording.rows import KIND, NODE, NODES, OUTPUTS, SAVED_BYTES, Row
from pytorch_lab.graph.recording.tensors import LOOK, ORIGIN
from pytorch_lab.graph.schema import Call, Failure, Op, Saved, Value
from pytorch_lab.graph.walking import frozen
from pytorch_lab.graph.walking.backward import Seen
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
            _make(Call, (i, *entered[:4], start, end, entered[4]))
            for i, (entered, start, end) in enumerate(
                zip(recorder.calls, recorder.starts, recorder.ends, strict=True)
            )
        ]
    )
    for op, late in tensors.late.items():
        recorder.rows.change(op, OUTPUTS, recorder.rows.ops[op][OUTPUTS] + tuple(late))
    tensors.release()
    rows = recorder.rows.ops, tensors.rows, tensors.figures, grown.rows
    seen = grown.seen
    return GraphRecord(
        function=function,
        parts=partial(_parts, *rows, node_of, seen),
        calls=calls,
        outputs=outputs,
        roots=tuple(
            dict.fromkeys(root for place in outputs if (root := node_of[place]) is not None)
        ),
        modules=tuple(dict.fromkeys(call.path for call in calls)),
        backward_order=tuple(seen.order) if seen else (),
        accumulated=tuple(sorted(seen.accumulated.items())) if seen else (),
        failure=failure,
        notes=tuple(_notes(recorder, grown.rows.groups)),
        storage_bytes=tuple(tensors.storage_bytes),
    )


def _notes(recorder: Recorder, groups: Sequence[frozen.Group]) -> Iterator[str]:
    """What one should know of parts that are not seen as they are."""
    kinds = {row[KIND] for row in recorder.rows.ops}
    of_nodes = {group.kind for group in groups}
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
    started = recorder.tensors.started
    numbers = chain.from_iterable(group.sequences for group in groups)
    unseen = sum(number >= started for number in {*numbers} - recorder.rows.made.keys())
    if unseen:
        yield (
            f"{count(unseen, 'node')} made by code that calls no function of torch in Python, "
            f"such as a scripted one"
        )
    if "transform" in kinds:
        yield "inside a transform of torch.func gradients have no nodes that could be shown"


# Columns instead of rows: `zip` and `map` make the records without a step in Python for each


def _parts(
    ops: Sequence[Row],
    values: Sequence[Row],
    figures: Sequence[tuple[Any, Any]],
    read: frozen.NodeRows,
    node_of: Sequence[int | None],
    seen: Seen | None,
    ran: Sequence[Seen],
) -> Parts:
    """The records made of the rows; see `Rows`, `Tensors` and `Grown`.

    Args:
        ops: rows of ops.
        values: rows of values.
        figures: of the values.
        read: what was read of nodes.
        node_of: of each value.
        seen: the backwards in the recorded code.
        ran: the backwards after it.
    """
    nodes = read.made()
    backwards = [seen, *ran] if seen else ran
    filled = backwards[0].fill(nodes) if backwards else frozen.nodes_of(nodes)
    for one in backwards[1:]:
        filled = one.fill(filled)
    return Parts(_ops(ops, nodes, node_of), _values(values, figures, node_of), filled)


def _values(
    rows: Sequence[Row],
    figures: Sequence[tuple[Any, Any]],
    node_of: Sequence[int | None],
) -> tuple[Value, ...]:
    if not rows:
        return ()
    columns = list(zip(*rows, strict=True))
    looks = zip(*columns[LOOK], strict=True)
    figures = figures or [(None, None)] * len(rows)
    fields = *columns[:LOOK], *looks, *columns[LOOK + 1 : ORIGIN], node_of
    return tuple(map(partial(_make, Value), zip(*fields, *zip(*figures, strict=True), strict=True)))


def _ops(
    rows: Sequence[Row], nodes: Sequence[Row], node_of: Sequence[int | None]
) -> tuple[Op, ...]:
    """The rows, with the nodes that each op made and the node of its result."""
    if not rows:
        return ()
    mine: list[tuple[int, ...]] = [()] * len(rows)
    for node in nodes:
        op = node[frozen.OP]
        if op is not None:
            mine[op] += (node[0],)
    leaves = {node[0] for node in nodes if node[frozen.KIND] == "accumulate"}
    behind = [None if node in leaves else node for node in node_of]
    columns: list[Any] = list(zip(*rows, strict=True))
    columns[NODES] = mine
    columns[SAVED_BYTES] = _saved_bytes(mine, [node[frozen.SAVED] for node in nodes])
    columns[NODE] = [
        behind[outputs[0]] if len(outputs) == 1 else _first(behind, outputs)
        for outputs in columns[OUTPUTS]
    ]
    return tuple(map(partial(_make, Op), zip(*columns, strict=True)))


def _first(behind: Sequence[int | None], outputs: Sequence[int]) -> int | None:
    return next((behind[output] for output in outputs if behind[output] is not None), None)


def _saved_bytes(mine: Sequence[Sequence[int]], kept_by: Sequence[Sequence[Saved]]) -> list[int]:
    """What the nodes of each op keep of storages that no earlier op kept: their largest views."""
    found = [0] * len(mine)
    first: dict[int, int] = {}  # the op that kept a storage first
    sizes: dict[int, int] = {}
    for op, places in enumerate(mine):
        for place in places:
            for _, _, _, size, storage, _, _ in kept_by[place]:
                if storage is None:
                    found[op] += size
                elif first.setdefault(storage, op) == op and size > sizes.get(storage, 0):
                    found[op] += size - sizes.get(storage, 0)
                    sizes[storage] = size
    return found
