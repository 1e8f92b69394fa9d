"""From the rows of a recording to the record: plain numbers and strings, nothing of torch."""

from collections.abc import Sequence

import torch

from pytorch_lab.graph.record import Call, Node, Op
from pytorch_lab.graph.recorded import GraphRecord
from pytorch_lab.graph.recorder import Recorder

_make = tuple.__new__  # half the time of calling the named tuple


def assemble(
    recorder: Recorder, function: str, results: Sequence[torch.Tensor], error: str | None
) -> GraphRecord:
    """The record of a recording that is over; the graph of the results is read here.

    Args:
        recorder: what was gathered.
        function: the name of what was recorded.
        results: the tensors that it returned.
        error: what it raised, spelled out.
    """
    tensors, grown = recorder.tensors, recorder.grown
    outputs = tuple([tensors.met(result)[3] for result in results])
    first_backward = grown.seen is None
    grown.read(results, recorder.rows)
    if not first_backward:
        grown.from_results(results)
    leaf_of = grown.leaves()
    place_of = grown.live.place
    node_of = [
        leaf_of.get(origin) if type(origin) is int else place_of.get(origin)
        for origin in tensors.origins
    ]
    calls = tuple(
        [
            _make(Call, (i, *entered[:5], end, entered[5]))
            for i, (entered, end) in enumerate(zip(recorder.calls, recorder.ends, strict=True))
        ]
    )
    return GraphRecord(
        function=function,
        ops=_ops(recorder, grown.nodes, node_of),
        values=tensors.values(node_of),
        nodes=tuple(grown.seen.fill(grown.nodes) if grown.seen else grown.nodes),
        calls=calls,
        outputs=outputs,
        roots=tuple(
            dict.fromkeys(node_of[place] for place in outputs if node_of[place] is not None)
        ),
        modules=tuple(dict.fromkeys(call.path for call in calls)),
        backward_order=tuple(grown.seen.order) if grown.seen else (),
        accumulated=tuple(sorted(grown.seen.accumulated.items())) if grown.seen else (),
        error=error,
        storage_bytes=tuple(tensors.storage_bytes),
    )


def _ops(
    recorder: Recorder, nodes: Sequence[Node], node_of: Sequence[int | None]
) -> tuple[Op, ...]:
    made: dict[int, list[int]] = {}
    leaves: set[int | None] = set()
    for node in nodes:
        if node.op is not None:
            made.setdefault(node.op, []).append(node.index)
        elif node.kind == "accumulate":
            leaves.add(node.index)
    site, calls, late = recorder.sites.site, recorder.calls, recorder.tensors.late
    kept: set[int] = set()
    ops = []
    for index, row in enumerate(recorder.rows):
        name, kind, place, call, inputs, outputs, _, _, *rest = row
        in_place, grad_mode, autocast, inside, elapsed_ns = rest
        if index in late:
            outputs = (*outputs, *late[index])
        node = None
        for output in outputs:
            node = node_of[output]
            if node is not None and node not in leaves:
                break
            node = None
        mine = made.get(index)
        saved = 0 if mine is None else _saved_bytes([nodes[i] for i in mine], kept)
        fields = (index, name, kind, site(place), "" if call is None else calls[call].path, call)
        fields += (inputs, outputs, node, () if mine is None else tuple(sorted(mine)), saved)
        fields += (in_place, grad_mode, autocast, inside, elapsed_ns)
        ops.append(_make(Op, fields))
    return tuple(ops)


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
