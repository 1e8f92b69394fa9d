"""A recorded graph as numbers, small enough for a notebook: what the player is sent.

A graph of 20,000 nodes is 100,000 small records. Sent one by one they are megabytes; sent as
columns (all names, then all sites, ...), each string and each shape once, and each place as the
distance from the one before it, they compress to a few bytes a node. `player_film.js` turns them
back.

    film      what is drawn: ops, values, nodes, calls, the source of the functions that ran
    details   what is read at one step: figures of the values, what was saved, formulas. Sent with
              the film if it is short, asked for a stretch of steps at a time if it is long
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from pytorch_lab.graph.schema import KINDS, Node, Op, Saved, Stats, Value

VALUE_KINDS = ("input", "parameter", "buffer", "constant", "result")
NODE_KINDS = ("builtin", "accumulate", "function", "compiled", "checkpoint")
GRAD_MODES = ("grad", "no_grad", "inference")
OP_KINDS = tuple(KINDS)

STRETCH = 128  # steps whose details are asked for at once
OCTAVE = 2  # a power of two is cut into this many shades of time and gradient
Numbers = list[int]


class Table:
    """Equal things are sent once: the place of each in `items`.

    Example:
        >>> words = Table()
        >>> [words.place(word) for word in ("add", "relu", "add")], words.items
        ([0, 1, 0], ['add', 'relu'])
    """

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._places: dict[Any, int] = {}

    def place(self, item: Any) -> int:
        """Where `item` stands; -1 for None."""
        if item is None:
            return -1
        found = self._places.get(item)
        if found is None:
            found = self._places[item] = len(self.items)
            self.items.append(item)
        return found


def deltas(places: Iterable[int | None]) -> Numbers:
    """Each number as the distance from the one before it; None counts as -1.

    Example:
        >>> deltas([5, 6, 7, None])
        [5, 1, 1, -8]
    """
    whole = [-1 if place is None else place for place in places]
    return [after - before for before, after in pairwise([0, *whole])]


def shade(amount: float) -> int:
    """A positive number as a step of a logarithmic scale; 0 for nothing, -1 for NaN, -2 for inf.

    Steps count from 2 ** -40 up, so that gradients below one are positive steps too.

    Example:
        >>> shade(0), shade(1.0), shade(2.0), shade(float("nan"))
        (0, 80, 82, -1)
    """
    if amount != amount:
        return -1
    if amount in (math.inf, -math.inf):
        return -2
    return max(round((math.log2(amount) + 40) * OCTAVE), 1) if amount > 0 else 0


# --- the film -------------------------------------------------------------------------------------


def film(record: Any) -> dict[str, Any]:
    """All that is drawn of a `GraphRecord`, as columns.

    Example:
        >>> import torch
        >>> from pytorch_lab import graph
        >>> packed = film(graph.record(torch.relu, torch.ones(3)))
        >>> packed["ops"]["name"], packed["words"][0]
        ([0], 'relu')
    """
    words, forms, sites = Table(), Table(), Table()
    places = node_places(record)
    ops = _ops(record, words, sites)
    values = _values(record.values, words, forms, places)
    nodes = _nodes(record, words, places)
    calls = _calls(record.calls, words)
    return {
        "function": record.function,
        "ops": ops,
        "values": values,
        "nodes": nodes,
        "calls": calls,
        "order": deltas(places[node] for node in record.backward_order),
        "held": deltas(held for *_, held in record.memory()),
        "outputs": list(record.outputs),
        "roots": [places[root] for root in record.roots],
        "forms": [[list(shape), *rest] for shape, *rest in forms.items],
        "sites": _sites(sites, words),
        "words": words.items,  # the last: all above have put theirs in
    }


def node_order(record: Any) -> list[int]:
    """The nodes as the film numbers them: leaves first, then as the ops made them.

    A node then lies near those that it hands its gradient to, and the distances repeat from step to
    step of a recurrent net: a fifth of the bytes.
    """
    last = len(record.ops)

    def key(node: Node) -> tuple[bool, int, int]:
        op = last if node.op is None else node.op
        return node.kind != "accumulate", op, node.sequence

    return [node.index for node in sorted(record.nodes, key=key)]


def node_places(record: Any) -> dict[int, int]:
    """Which number each node of a record has in the film."""
    return {node: place for place, node in enumerate(node_order(record))}


def _ops(record: Any, words: Table, sites: Table) -> dict[str, Numbers]:
    ops: Sequence[Op] = record.ops
    columns: dict[str, Numbers] = {
        "name": [words.place(op.name) for op in ops],
        "kind": [OP_KINDS.index(op.kind) for op in ops],
        "site": deltas(sites.place(op.site) if op.line else None for op in ops),
        "inside": deltas(op.inside for op in ops),
        "saved": [op.saved_bytes for op in ops],
        "mode": [2 * GRAD_MODES.index(op.grad_mode) + op.in_place for op in ops],
        "autocast": [words.place(op.autocast) for op in ops],
        "time": [shade(op.elapsed_ns) for op in ops],
        "inputs": [],
        "outputs": [],
    }
    made = [value.kind == "result" for value in record.values]
    last = 0  # the newest value so far: most ops read it and make the next
    for op in ops:
        columns["inputs"].append(len(op.inputs))
        columns["inputs"] += [
            last - value if made[value] and value <= last else -1 - value for value in op.inputs
        ]
        columns["outputs"] += [len(op.outputs), *(value - last for value in op.outputs)]
        last = max((last, *op.outputs))
    return columns


def _values(
    values: Sequence[Value], words: Table, forms: Table, places: dict[int, int]
) -> dict[str, Numbers]:
    return {
        "kind": [VALUE_KINDS.index(value.kind) for value in values],
        "name": [words.place(value.name or None) for value in values],
        "form": [
            forms.place((value.shape, value.dtype, value.device, value.bytes)) for value in values
        ],
        "node": deltas(None if value.node is None else places[value.node] for value in values),
        "marks": [value.requires_grad + 2 * value.is_leaf for value in values],
    }


def _nodes(record: Any, words: Table, places: dict[int, int]) -> dict[str, Any]:
    nodes = [record.nodes[place] for place in places]
    leaves = sum(node.kind == "accumulate" for node in nodes)
    columns: dict[str, Any] = {
        "leaves": leaves,
        "name": [words.place(node.name) for node in nodes],
        "kind": [NODE_KINDS.index(node.kind) for node in nodes],
        "op": deltas(node.op for node in nodes),
        "saved": [sum(saved.bytes for saved in node.saved) for node in nodes],
        "freed": [2 if node.freed is None else int(node.freed) for node in nodes],
        "parameter": [words.place(node.parameter) for node in nodes[:leaves]],
        "grad": [gradient(node) for node in nodes],
        "next": [],
    }
    for place, node in enumerate(nodes):
        ways = [places[target] for target in node.next]
        columns["next"].append(len(ways))
        columns["next"] += [-1 - way if way < leaves else place - way for way in ways]
    return columns


def gradient(node: Node) -> int:
    """The shade of the gradient that reached a node, over all its outputs; -3 if none was seen.

    Example:
        >>> from pytorch_lab.graph.schema import Node
        >>> gradient(Node(0, "ReluBackward0", "builtin", (), (), ((3,),), "float32", "cpu", (),
        ...               None, None, 0, 1, (), 0))
        -3
    """
    seen = [stats for stats in node.grads if stats is not None]
    if not seen:
        return -3
    if any(stats.nan for stats in seen):
        return -1
    if any(stats.inf for stats in seen):
        return -2
    return shade(math.hypot(*(stats.norm for stats in seen)))


def _calls(calls: Sequence[Any], words: Table) -> dict[str, Numbers]:
    return {
        "path": [words.place(call.path) for call in calls],
        "type": [words.place(call.type) for call in calls],
        "count": [call.count for call in calls],
        "parent": deltas(call.parent for call in calls),
        "first": deltas(call.first_op for call in calls),
        "ops": [call.end_op - call.first_op for call in calls],
    }


def _sites(sites: Table, words: Table) -> dict[str, Numbers]:
    columns = [site.columns or (-1, -1) for site in sites.items]
    return {
        "file": [words.place(site.file) for site in sites.items],
        "line": deltas(site.line for site in sites.items),
        "from": [first for first, _ in columns],
        "to": [last for _, last in columns],
        "lines": [site.end_line - site.line for site in sites.items],
    }


# --- the details ----------------------------------------------------------------------------------


def n_steps(record: Any) -> int:
    """Forward ops, then the nodes that backward ran."""
    return len(record.ops) + len(record.backward_order)


def details(record: Any, first: int, end: int) -> dict[str, Any]:
    """What is read at the steps `first` to `end` (one past the last): figures, saved, formulas."""
    ops = range(first, min(end, len(record.ops)))
    back = record.backward_order[max(first - len(record.ops), 0) : max(end - len(record.ops), 0)]
    nodes = {*back, *(node for op in ops for node in record.ops[op].nodes)}
    values = {value for op in ops for value in (*record.ops[op].inputs, *record.ops[op].outputs)}
    nodes |= {record.values[value].node for value in values} - {None}
    return pick(record, values, nodes)


def pick(record: Any, values: Iterable[int], nodes: Iterable[int]) -> dict[str, Any]:
    """The details of these values and nodes, the nodes by their number in the film."""
    chosen = [record.nodes[node] for node in sorted(nodes)]
    places = node_places(record)
    return {
        "values": {str(place): _value(record.values[place]) for place in sorted(values)},
        "nodes": {str(places[node.index]): _node(node) for node in chosen},
        "formulas": formulas({node.name for node in chosen}),
    }


def _value(value: Value) -> dict[str, Any]:
    said = {
        "stats": _stats(value.stats),
        "numbers": _finite(value.numbers),
        "version": value.version,
        "view": value.view_of,
        "stride": list(value.stride),
    }
    return {key: entry for key, entry in said.items() if entry is not None}


def _node(node: Node) -> dict[str, Any]:
    numbers = [_finite(gradient) for gradient in node.numbers]
    return ({"numbers": numbers} if any(numbers) else {}) | {
        "shapes": [list(shape) for shape in node.shapes],
        "grads": [_stats(stats) for stats in node.grads],
        "saved": [_saved(saved) for saved in node.saved],
        "hooks": node.hooks,
    }


def _saved(saved: Saved) -> list[Any]:
    return [saved.name, list(saved.shape), saved.dtype, saved.bytes, saved.version, saved.value]


def _stats(stats: Stats | None) -> list[Any] | None:
    return None if stats is None else [*(_finite((*stats[:5],)) or ()), stats.nan, stats.inf]


def _finite(numbers: Sequence[float] | None) -> list[float | str] | None:
    """JSON has no NaN and no infinity: they are sent as words; four figures are enough to read."""
    if numbers is None:
        return None
    return [float(f"{n:.4g}") if math.isfinite(n) else str(n) for n in map(float, numbers)]


def formulas(names: Iterable[str]) -> dict[str, Any]:
    """The derivative of each autograd node whose name is known, as `{"says", "where"}` lines."""
    try:
        from pytorch_lab.graph.formulas import formula
    except ImportError:
        return {}
    found = {name: formula(name) for name in sorted(set(names))}
    return {name: told(one) for name, one in found.items() if one is not None}


def told(one: Any) -> dict[str, Any]:
    """A `Formula` as plain JSON."""
    return dict(one._asdict()) if hasattr(one, "_asdict") else {"text": str(one)}


# --- the picture ----------------------------------------------------------------------------------


def views(record: Any) -> list[str]:
    """What can be drawn of a record, the one to open with first."""
    return [view for view, some in (("ops", record.ops), ("autograd", record.nodes)) if some]


def scene(record: Any, view: str) -> dict[str, Any]:
    """The boxes of a view, with the nodes numbered as in the film."""
    from pytorch_lab.graph.drawing.scene import scene_of

    found = scene_of(record, view)
    if view == "autograd":
        places = node_places(record)
        kinds = [found.looks[look].kind for look in found.look]
        refs = [
            places[ref] if kind == "node" else ref
            for kind, ref in zip(kinds, found.refs, strict=True)
        ]
        found = replace(found, refs=tuple(refs))
    return found.to_dict()
