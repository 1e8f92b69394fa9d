"""How far does a gradient come? Follow one value through a record, and find where the way ends.

Two things flow from a parameter: its numbers, through every op that reads them, and the way back
for its gradient, only as long as results ask for a gradient. Where numbers go on and the way back
does not, the graph was cut.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.schema import Op, Value

_COPIES = ("tensor", "as_tensor", "asarray", "from_numpy", "full", "full_like", "scalar_tensor")
_DECISIONS = ("bool", "is_nonzero", "equal", "allclose", "contains")
_WHOLE_NUMBERS = ("int", "uint", "bool")


class Cut(NamedTuple):
    """An op that reads a value with a way back, and hands on none."""

    op: Op
    cause: str  # "detached", "no_grad", "inference", "left_torch", "copied", "integer_op", ...
    to_result: bool  # whether its numbers are known to reach the result


@dataclass
class Flow:
    """What became of one value.

    Attributes:
        start: the value.
        alive: values through which a gradient would come back.
        touched: values that depend on its numbers.
        readers: ops that read it or what was made of it with a way back.
        cuts: where the way back ends, in the order of the run.
        exits: ops that hand its numbers out of torch, cut before or not.
        reaches: whether a gradient comes from the result.
    """

    start: int
    alive: set[int] = field(default_factory=set)
    touched: set[int] = field(default_factory=set)
    readers: list[Op] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    exits: list[Op] = field(default_factory=list)
    reaches: bool = False


def follow(record: GraphRecord, start: int) -> Flow:
    """The flow from one value of a record.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph import record
        >>> rec = record(lambda w: (w.detach() * 2).sum(), torch.ones(2, requires_grad=True))
        >>> [(cut.op.name, cut.cause, cut.to_result) for cut in follow(rec, 0).cuts]
        [('detach', 'detached', True)]
    """
    flow = Flow(start, alive={start}, touched={start})
    storages = {record.values[start].storage}
    results = results_of(record)
    needed = needed_for(record, results)
    hidden = {op.index for op in record.ops if op.inside is not None}
    for op in record.ops:
        _inherit(record, op.inputs, flow, storages)
        live = [place for place in op.inputs if place in flow.alive]
        touched = any(place in flow.touched for place in op.inputs)
        if not touched:
            continue
        outputs = [record.values[place] for place in op.outputs]
        flow.touched.update(op.outputs)
        if op.kind == "exit":
            flow.exits.append(op)
        if op.in_place:
            storages.update(value.storage for value in outputs)
        if not live or op.kind in ("backward", "optimizer"):
            continue
        flow.readers.append(op)
        asking = [value for value in outputs if value.requires_grad]
        flow.alive.update(value.index for value in asking)
        silent = [value for value in outputs if not value.requires_grad]
        to_result = any(value.index in needed for value in silent)
        if op.index not in hidden and (to_result or not asking):  # topk gives values and places
            flow.cuts.append(Cut(op, _cause(op, silent), to_result))
    _inherit(record, results, flow, storages)
    flow.reaches = any(place in flow.alive for place in results)
    return flow


def _inherit(record: GraphRecord, places: Iterable[int], flow: Flow, storages: set[int]) -> None:
    """A tensor whose memory was written to by a touched op is met again as a new value."""
    for place in places:
        value = record.values[place]
        if place not in flow.touched and value.storage in storages and value.op is not None:
            flow.touched.add(place)
            if value.requires_grad:
                flow.alive.add(place)


def _cause(op: Op, outputs: list[Value]) -> str:
    if op.kind == "detach":
        return "detached"
    if op.name in _COPIES:
        return "copied"
    if op.kind == "exit":
        return "only_decides" if op.name in _DECISIONS else "left_torch"
    if outputs and all(value.dtype.startswith(_WHOLE_NUMBERS) for value in outputs):
        return "integer_op"
    if op.grad_mode in ("no_grad", "inference"):
        return op.grad_mode
    return "no_derivative"


def exits(record: GraphRecord, flow: Flow) -> list[Cut]:
    """The ops that hand the numbers out of torch, the likeliest to have cut the graph first.

    That is one whose numbers are seen to come back; a printed `.item()` is none. Of the others the
    first, and one that only decides last.

    Args:
        record: the recording.
        flow: of the value in question.
    """
    ordered = sorted(
        flow.exits, key=lambda op: (-_returns(record, op), op.name in _DECISIONS, op.index)
    )
    return [Cut(op, _cause(op, []), False) for op in ordered]


def _returns(record: GraphRecord, op: Op) -> int:
    """How sure it is that a tensor in the result was made of what an op handed out: 0 to 2."""
    out = [record.values[place] for place in op.inputs]
    back = [record.values[there.value] for there in came_back(record, op.index)]
    if any(new.storage == old.storage for new in back for old in out):
        return 2
    return int(any(new.shape == old.shape for new in back for old in out))


def needed_for(record: GraphRecord, places: Iterable[int]) -> set[int]:
    """All values whose numbers go into some others, the way of the gradient or not.

    Args:
        record: the recording.
        places: values of it.
    """
    needed: set[int] = set()
    stack = list(places)
    while stack:
        place = stack.pop()
        if place in needed:
            continue
        needed.add(place)
        value = record.values[place]
        if value.op is not None:  # what made it, or what wrote into its memory last
            stack.extend(record.ops[value.op].inputs)
        if value.view_of is not None:
            stack.append(value.view_of)
    return needed


class Return(NamedTuple):
    """Plain numbers that became a tensor again."""

    where: str
    value: int


def came_back(record: GraphRecord, after: int) -> Iterator[Return]:
    """Tensors made of plain numbers after some op, whose values go into the result.

    Args:
        record: the recording.
        after: the op that took the numbers out of torch.
    """
    needed = needed_for(record, results_of(record))
    earlier = {place for op in record.ops[: after + 1] for place in op.inputs}
    for op in record.ops[after + 1 :]:
        if op.name in _COPIES and not op.inputs:
            yield from (Return(op.site.where, place) for place in op.outputs if place in needed)
        for place in op.inputs:
            value = record.values[place]
            unknown = value.kind == "constant" and not value.name and value.op is None
            if unknown and place in needed and place not in earlier and not value.requires_grad:
                yield Return(op.site.where, place)


def results_of(record: GraphRecord) -> tuple[int, ...]:
    """The values that `backward` is called on: by the recorded code, else on its results.

    Of several results it is the one that `record(..., backward=True)` would start from; all of
    them, if none requires a gradient.
    """
    for op in reversed(backward_ops(record)):
        if op.inputs:
            return op.inputs[:1]
    root = record.root
    return record.outputs if root is None else record.outputs[root : root + 1]


def backward_ops(record: GraphRecord) -> list[Op]:
    """The calls of backward and autograd.grad by the recorded code, not by a transform's inside."""
    return [op for op in record.ops if op.kind == "backward" and op.inside is None]
