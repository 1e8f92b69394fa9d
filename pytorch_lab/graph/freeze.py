"""From what was gathered to the record: plain numbers and strings."""

from bisect import bisect_right
from typing import Any

import torch

from pytorch_lab.graph.autograd import freeze as freeze_nodes
from pytorch_lab.graph.autograd import walk
from pytorch_lab.graph.capture import Recorder
from pytorch_lab.graph.record import Call, Op
from pytorch_lab.graph.recorded import GraphRecord



def freeze(recorder: Recorder, function: str, results: list[torch.Tensor], error: str | None) -> Any:
    """The record of one recording."""
    tensors = recorder.tensors
    outputs = tuple([tensors.met(t)[3] for t in results])
    live = walk(results)
    roots = tuple(dict.fromkeys(place for place, _ in live.roots))
    place_of = live.place
    for origin in tensors.origins:
        if origin is not None and type(origin) is not int and origin not in place_of:
            live.add(origin)
    owner = _Owners(recorder, live)
    nodes = freeze_nodes(live, names=owner.name, storages=owner.storage, values=owner.value, op_of_node=owner.op_of)
    leaf_of = {id(live.nodes[n.index].variable): n.index for n in nodes if n.kind == "accumulate"}
    node_of = [
        leaf_of.get(origin) if type(origin) is int else place_of.get(origin)
        for origin in tensors.origins
    ]
    values = tensors.values(node_of)
    calls = tuple([Call(i, *call) for i, call in enumerate(recorder.calls)])
    return GraphRecord(
        function=function, ops=_ops(recorder, nodes, node_of), values=values, nodes=nodes, calls=calls, outputs=outputs,
        roots=roots,
        modules=tuple(dict.fromkeys(call.path for call in calls)),
        error=error, storage_bytes=tuple(tensors.storage_bytes),
    )


class _Owners:
    """Which op made a node: each op knows torch's count of nodes before and after it."""

    def __init__(self, recorder, live) -> None:
        self.recorder = recorder
        self.nodes = live.nodes
        rows = recorder.rows
        self.order = [i for i, row in enumerate(rows) if row[7] > row[6]]
        self.before = [rows[i][6] for i in self.order]
        self.after = [rows[i][7] for i in self.order]
        self.addresses = recorder.tensors.addresses
        self.names = recorder.names.tensors
        self.op = None

    def op_of(self, place: int, sequence: int) -> int | None:
        self.op = None
        at = bisect_right(self.before, sequence) - 1
        if at >= 0 and sequence < self.after[at]:
            self.op = self.order[at]
        return self.op

    def name(self, leaf) -> str:
        return self.names.get(id(leaf), ("", ""))[1]

    def storage(self, tensor) -> int | None:
        try:
            self.number = self.addresses.get(tensor.untyped_storage()._cdata)
        except (RuntimeError, NotImplementedError):
            self.number = None
        return self.number

    def value(self, tensor) -> int | None:
        if self.op is None or self.number is None:
            return None
        row = self.recorder.rows[self.op]
        values = self.recorder.tensors.rows
        shape = tensor.shape
        for place in (*row[5], *row[4]):
            if values[place][6] == self.number and values[place][2][0] == shape:
                return place
        return None


def _ops(recorder, nodes, node_of):
    owned: dict[int, list[int]] = {}
    for node in nodes:
        if node.op is not None:
            owned.setdefault(node.op, []).append(node.index)
    site = recorder.sites.site
    calls = recorder.calls
    none = ()
    ops = []
    leaf = {n.index for n in nodes if n.kind == "accumulate"}
    kept: set = set()
    for i, row in enumerate(recorder.rows):
        name, kind, place, call, inputs, outputs, _, _, in_place, mode, autocast, inside, ns = row
        first = None
        for o in outputs:
            n = node_of[o]
            if n is not None and n not in leaf:
                first = n
                break
        mine = owned.get(i)
        size = 0
        if mine is not None:
            mine.sort()
            for n in mine:
                for s in nodes[n].saved:
                    if s.storage is None or s.storage not in kept:
                        size += s.bytes
                        kept.add(s.storage)
        ops.append(tuple.__new__(Op, (i, name, kind, site(place), "" if call is None else calls[call][0], call,
            inputs, outputs, first, none if mine is None else tuple(mine), size, in_place, mode, autocast, inside, ns)))
    return tuple(ops)
