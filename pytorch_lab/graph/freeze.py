"""From what was gathered to the record: plain numbers and strings."""

from bisect import bisect_right
from typing import Any

import torch

from pytorch_lab.graph.capture import Recorder, Row
from pytorch_lab.graph.record import Call, Node, Op, Saved, Value
from pytorch_lab.graph.recorded import GraphRecord

_LEAF = 2**63


def freeze(
    recorder: Recorder, function: str, results: list[torch.Tensor], error: str | None
) -> Any:
    """The record of one recording."""
    tensors = recorder.tensors
    outputs = tuple(tensors.met(t).place for t in results)
    roots = [t.grad_fn for t in results if t.grad_fn is not None]
    alive = walk([*roots, *(g for g in tensors.grad_fns if not isinstance(g, torch.Tensor) and g)])
    place_of = {node: i for i, node in enumerate(alive)}
    leaf_of = {id(n.variable): i for n, i in place_of.items() if hasattr(n, "variable")}
    owner, starts, ends = owners(recorder.rows)
    nodes = tuple(_node(i, n, place_of, recorder, starts, ends, owner) for i, n in enumerate(alive))
    node_of = [
        leaf_of.get(id(g)) if isinstance(g, torch.Tensor) else place_of.get(g)
        for g in tensors.grad_fns
    ]
    values = tuple(Value(i, *row[:13], node_of[i], *row[13:]) for i, row in enumerate(tensors.rows))
    owned: dict[int, list[int]] = {}
    for node in nodes:
        if node.op is not None:
            owned.setdefault(node.op, []).append(node.index)
    ops = tuple(
        _op(i, row, recorder, owned.get(i, ()), values, nodes)
        for i, row in enumerate(recorder.rows)
    )
    calls = tuple(Call(i, *call) for i, call in enumerate(recorder.calls))
    return GraphRecord(
        function=function,
        ops=ops,
        values=values,
        nodes=nodes,
        calls=calls,
        outputs=outputs,
        roots=tuple(dict.fromkeys(place_of[r] for r in roots)),
        modules=tuple(dict.fromkeys(call.path for call in calls)),
        error=error,
        storage_bytes=tuple(tensors.storage_bytes),
    )


def walk(roots: list[Any]) -> list[Any]:
    """All nodes reached from some, each once, without recursion."""
    seen = dict.fromkeys(roots)
    stack = list(roots)
    while stack:
        for node, _ in stack.pop().next_functions:
            if node is not None and node not in seen:
                seen[node] = None
                stack.append(node)
    return list(seen)


def owners(rows: list[Row]) -> tuple[list[int], list[int], list[int]]:
    """Ops in the order in which their nodes are numbered, with the first number and the end."""
    order = [i for i, row in enumerate(rows) if row.after > row.before]
    return order, [rows[i].before for i in order], [rows[i].after for i in order]


def _node(i, node, place_of, recorder, starts, ends, owner):
    pairs = [(place_of[n], k) for n, k in node.next_functions if n is not None]
    sequence = node._sequence_nr()
    leaf = sequence > _LEAF
    parameter = None
    kind = "builtin"
    op = None
    if leaf and hasattr(node, "variable"):
        kind = "accumulate"
        parameter = recorder.names.tensors.get(id(node.variable), ("", ""))[1]
        sequence = -1
    else:
        at = bisect_right(starts, sequence) - 1
        if at >= 0 and sequence < ends[at]:
            op = owner[at]
        if not type(node).__module__.startswith("torch"):
            kind = "builtin"
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            kind = "function"
    meta = node._input_metadata
    saved = []
    for name in dir(type(node)):
        if name.startswith("_raw_saved_"):
            raws = getattr(node, name)
            for raw in raws if isinstance(raws, tuple) else (raws,):
                t = raw.data if raw is not None else None
                if isinstance(t, torch.Tensor):
                    saved.append(
                        Saved(
                            name.removeprefix("_raw_saved_"),
                            tuple(t.shape),
                            str(t.dtype).removeprefix("torch."),
                            t.nbytes,
                            recorder.tensors.storages.get(t.untyped_storage()._cdata),
                            t._version,
                            None,
                        )
                    )
    return Node(
        i,
        node.name().split("::")[-1],
        kind,
        tuple(p for p, _ in pairs),
        tuple(k for _, k in pairs),
        tuple(tuple(m.shape) for m in meta),
        str(meta[0].dtype).removeprefix("torch.") if meta else "",
        str(meta[0].device) if meta else "",
        tuple(saved),
        None,
        parameter,
        op,
        sequence,
        (),
        0,
    )


def _op(i, row, recorder, owned, values, nodes):
    call = row.call
    first = next(
        (
            values[o].node
            for o in row.outputs
            if values[o].node is not None and not values[o].is_leaf
        ),
        None,
    )
    return Op(
        i,
        row.name,
        row.kind,
        recorder.sites.site(row.place),
        recorder.calls[call][0] if call is not None else "",
        call,
        row.inputs,
        row.outputs,
        first,
        tuple(owned),
        sum(s.bytes for n in owned for s in nodes[n].saved),
        row.in_place,
        row.mode,
        row.autocast,
        row.inside,
        row.elapsed_ns,
    )
