"""Overwritten, or used up: the two errors of a backward whose saved tensors changed or are gone.

Both have a cause that the message does not name, for it lies earlier: the op that wrote over the
tensor, the backward that freed it, or a state carried over from an earlier step, which drags the
earlier step's graph along.
"""

import re
from dataclasses import replace
from typing import NamedTuple

import torch

from pytorch_lab.graph.explaining.answers import stepped_between
from pytorch_lab.graph.explaining.behind import Failed, failed_in
from pytorch_lab.graph.explaining.conflicts import Conflict, carried_values, conflicts
from pytorch_lab.graph.explaining.crash import Crash
from pytorch_lab.graph.explaining.explanation import Explanation
from pytorch_lab.graph.explaining.living import Held, shares_memory
from pytorch_lab.graph.explaining.spots import line_of, spot
from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.schema import Op
from pytorch_lab.graph.walking.autograd import walk
from pytorch_lab.graph.walking.nodes import sequence_of

_PARTS = re.compile(
    r"\[(?P<type>\S+) \[(?P<shape>[\d, ]*)\]\](?:, which is output (?P<output>\d+) of (?P<by>\w+))?"
    r",? is at version (?P<found>\d+); expected version (?P<expected>\d+)"
)
_RECORD_IT = "to learn the line, let it run under observation: why_error(lambda: step(batch))"
_NEW_TENSOR = (
    "make a new tensor instead: x = x + 1 for x += 1, inplace=False in the layer, or clone() "
    "before the write"
)
_DETACH = (
    "cut what is carried from step to step: hidden = hidden.detach() (a pair: each of the two), "
    "and leave retain_graph out"
)


_OWN_LOSS = (
    "go back from this step's loss alone, loss.backward(), and keep the total as a number: "
    "total += loss.item(), or total = total + loss.detach()"
)


class Change(NamedTuple):
    """What torch's message says."""

    shape: tuple[int, ...]
    by: str  # which op made the tensor; empty for a leaf
    found: int
    expected: int


def change_in(message: str) -> Change | None:
    """The facts in torch's message on an in-place modification.

    Example:
        >>> change_in(
        ...     "modified by an inplace operation: [torch.FloatTensor [2, 3]], which is output 0 "
        ...     "of Sigmoid, is at version 1; expected version 0 instead."
        ... )
        Change(shape=(2, 3), by='Sigmoid', found=1, expected=0)
    """
    found = _PARTS.search(message)
    if found is None:
        return None
    shape = tuple(int(size) for size in found["shape"].split(",") if size.strip())
    return Change(shape, found["by"] or "", int(found["found"]), int(found["expected"]))


def why_in_place(crash: Crash) -> Explanation:
    """A saved tensor was modified by an in-place operation."""
    change = change_in(crash.message)
    if crash.record is not None:
        told = _from_record(crash.record, change)
        if told is not None:
            return told
    changed = [held for held in crash.held if held.state == "changed"]
    held = next((h for h in changed if change and change_in(h.message) == change), None) or next(
        iter(changed), None
    )
    versions = f"version {change.found}, expected {change.expected}" if change else ""
    facts = [f"it is at {versions}"] if change else []
    if held is None or held.tensor is None:
        maker = f", made by {change.by}," if change and change.by else ""
        return Explanation(
            "in_place",
            f"A tensor that backward needs{maker} was overwritten in place after it was saved.",
            where=crash.where,
            evidence=(*facts, *crash.line),
            fix=f"{_NEW_TENSOR}; {_RECORD_IT}",
        )
    facts.insert(0, f"{held.node} saved it as `{held.name}`, shape {tuple(held.tensor.shape)}")
    leaf = next((x for x in crash.leaves.values() if shares_memory(x, held.tensor)), None)
    if leaf is None:
        return _result_overwritten(crash, held, facts)
    return _weight_overwritten(crash, held, leaf, facts)


def _result_overwritten(crash: Crash, held: Held, facts: list[str]) -> Explanation:
    own = " its own result" if held.name in ("result", "output") else f" `{held.name}`"
    suspects = _in_place_modules(crash)
    return Explanation(
        "in_place",
        f"{held.node} keeps{own} for backward, and something wrote over that tensor in place "
        "afterwards.",
        where=crash.where,
        evidence=(*facts, *suspects, *crash.line),
        fix=f"{_NEW_TENSOR}; {_RECORD_IT}",
    )


def _in_place_modules(crash: Crash) -> list[str]:
    """Layers in the reader's variables that work in place."""
    found: dict[int, str] = {}
    for frame, _ in crash.frames:
        for name, value in frame.f_locals.items():
            for path, module in value.named_modules() if isinstance(value, torch.nn.Module) else ():
                if getattr(module, "inplace", False) is True:
                    where = f"{name}.{path}" if path else name
                    found.setdefault(id(module), f"`{where}` is a {type(module).__name__} with")
    return [f"{text} inplace=True" for text in found.values()]


def _weight_overwritten(
    crash: Crash, held: Held, leaf: torch.Tensor, facts: list[str]
) -> Explanation:
    name = crash.name_of(leaf) or "a leaf"
    facts.insert(0, f"it is {name}, or a view of it")
    made = sequence_of(crash.live.nodes[held.place])
    newer = [
        other
        for other in crash.held
        if other.state in ("kept", "freed")
        and sequence_of(crash.live.nodes[other.place]) > made
        and other.tensor is not None
        and shares_memory(other.tensor, leaf)
    ]
    carried = carried_tensors(crash)
    if newer or carried:
        if newer:
            facts.append(f"{newer[0].node} of the same graph saved it after the change")
        return hidden_state(crash.where, carried, facts, overwritten=True)
    return stepped_between(name, crash.where, [*facts, *crash.line], by="as optimizer.step() does")


def carried_tensors(crash: Crash) -> list[str]:
    """Results that modules or containers keep, so that they outlive the step, and this graph's.

    A state that the step itself has replaced is not in this loss's graph, but grew from its nodes.
    """
    return [
        f"`{name}`"
        for name, tensor in crash.tensors
        if tensor.grad_fn is not None
        and ("." in name or "[" in name)
        and _grew_together(crash, tensor)
        and not any(tensor is root for root in crash.roots)
    ]


def _grew_together(crash: Crash, tensor: torch.Tensor) -> bool:
    """Whether a tensor's graph and the loss's share a node that is no leaf."""
    return any(node in crash.live.place for node in walk([tensor]).nodes if not _is_leaf(node))


def hidden_state(
    where: str, carried: list[str], facts: list[str], overwritten: bool
) -> Explanation:
    """The explanation for a graph that reaches back into an earlier step."""
    through = f" through {', '.join(carried[:3])}" if carried else ""
    reason = (
        "The weights saved then were overwritten by optimizer.step() since; retain_graph=True "
        "does not help, it only leads up to here."
        if overwritten
        else "That graph was freed by its own backward(); retain_graph=True would hide this, keep "
        "every step's graph in memory and fail at the first optimizer.step()."
    )
    return Explanation(
        "hidden_state",
        f"The graph of this loss reaches back into an earlier step{through}. {reason}",
        where=where,
        evidence=tuple(facts),
        fix=_DETACH,
    )


def _from_record(record: GraphRecord, change: Change | None) -> Explanation | None:
    failed = failed_in(record)
    found = [one for one in conflicts(record) if not failed or one.node.index in failed.nodes]
    fitting = [
        one
        for one in found
        if change and one.saved.version == change.expected and one.saved.shape == change.shape
    ]
    conflict = next(iter(fitting or found), None)
    carried = list(carried_values(record))
    if carried and (conflict is None or conflict.node.op is None):
        return _carried(record, overwritten=True)
    carrier = failed.carrier() if failed else None
    if failed and carrier and conflict is not None and conflict.writer.kind == "optimizer":
        return _from_an_earlier_turn(failed, carrier, overwritten=True)
    return _conflict(record, conflict) if conflict is not None else None


def _conflict(record: GraphRecord, conflict: Conflict) -> Explanation:
    node, saved, writer = conflict.node, conflict.saved, conflict.writer
    maker = record.ops[node.op] if node.op is not None else None
    own = saved.name in ("result", "output")
    value = record.values[saved.value] if saved.value is not None else None
    known = f"`{value.name}`" if value is not None and value.name else ""
    what = "its own result" if own else f"`{saved.name}`{known and f' ({known})'}"
    facts = (
        f"{node.name} saved `{saved.name}`, shape {saved.shape}, at version {saved.version}"
        + spot(maker),
        f"{writer.name} wrote into it: version {conflict.version}{spot(writer)}",
        *line_of(record, writer),
    )
    by = f"`{maker.name}`" if maker is not None else node.name
    if writer.kind == "optimizer":
        weight = known or f"what {by} keeps for backward"
        return stepped_between(weight, writer.site.where, facts, by="by optimizer.step()")
    return Explanation(
        "in_place",
        f"{by} keeps {what} for backward, and `{writer.name}` wrote over it in place before "
        "backward could use it.",
        where=writer.site.where,
        evidence=facts,
        fix=_NEW_TENSOR,
    )


def _carried(record: GraphRecord, overwritten: bool) -> Explanation:
    pairs = list(carried_values(record))
    names = [f"`{value.name}`" if value.name else "a result" for value, _ in pairs]
    first = pairs[0][1]
    facts = [
        f"{len(pairs)} values with an older graph are read in this run; first by "
        f"{first.name}{spot(first)}",
        *line_of(record, first),
    ]
    return hidden_state(first.site.where, list(dict.fromkeys(names)), facts, overwritten)


def why_twice(crash: Crash) -> Explanation:
    """Backward came to a node whose saved tensors were freed."""
    if crash.record is not None:
        return _twice_in(crash.record, crash)
    freed = [held for held in crash.held if held.state == "freed"]
    facts = [f"{len(freed)} of {len(crash.held)} saved tensors of this graph are freed"]
    facts += [f"the newest of them: {freed[0].node}"] if freed else []
    carried = carried_tensors(crash)
    if carried:
        return hidden_state(crash.where, carried, [*facts, *crash.line], overwritten=False)
    others = [
        f"`{name}`"
        for name, tensor in crash.tensors
        if tensor.grad_fn is not None
        and tensor.grad_fn not in crash.live.place
        and _grew_together(crash, tensor)
    ]
    if others:
        facts.append(f"{', '.join(others[:3])} shares a part of this graph")
        return _shared(crash.where, [*facts, *crash.line])
    return _same_loss(crash.where, [*facts, *crash.line], sure=False)


def _is_leaf(node: object) -> bool:
    return hasattr(node, "variable")


def _twice_in(record: GraphRecord, crash: Crash) -> Explanation:
    if next(carried_values(record), None) is not None:
        return _carried(record, overwritten=False)
    failed = failed_in(record)
    if failed is None:
        return _same_loss(crash.where, crash.line, sure=False)
    where = failed.last.site.where
    if failed.same is not None:
        return _same_loss(where, [*_ran(failed.same, failed.last), *crash.line], sure=True)
    carrier = failed.carrier()
    if carrier is not None:
        return _from_an_earlier_turn(failed, carrier, overwritten=False)
    if failed.common:
        return _shared(where, [*_ran(*failed.earlier[-1:], failed.last), *crash.line])
    return _same_loss(where, [*_ran(failed.last), *crash.line], sure=False)


def _ran(*ops: Op) -> list[str]:
    return [f"{op.name}() ran{spot(op)}" for op in ops]


def _from_an_earlier_turn(failed: Failed, carrier: Op, overwritten: bool) -> Explanation:
    """The loop that ran has fed its own result back into itself."""
    roots = {place for op in failed.earlier for place in op.inputs}
    summed = roots.intersection(carrier.inputs)
    fact = f"{carrier.name} reads what an earlier turn of the same loop made{spot(carrier)}"
    carried = ["the running total"] if summed else []
    facts = [fact, *line_of(failed.record, carrier)]
    told = hidden_state(carrier.site.where, carried, facts, overwritten)
    return replace(told, fix=_OWN_LOSS) if summed else told


def _shared(where: str, facts: list[str]) -> Explanation:
    return Explanation(
        "shared_graph",
        "Two losses share a part of their graph, and the first backward() freed it.",
        where=where,
        evidence=tuple(facts),
        fix="add them and go back once: (loss_a + loss_b).backward(); or, where each needs its own "
        "backward, retain_graph=True in the first: this is what it is for",
    )


def _same_loss(where: str, facts: list[str], sure: bool) -> Explanation:
    tail = "" if sure else f"; of what is carried on: state.detach(), loss.item(); {_RECORD_IT}"
    says = (
        "backward() ran a second time over the same graph, whose saved tensors the first one freed."
        if sure
        else "backward() met a part of the graph that an earlier backward() has freed: the same "
        "loss was used twice, or something from an earlier step (a hidden state, a running sum) "
        "was not detached."
    )
    return Explanation(
        "twice",
        says,
        where=where,
        evidence=tuple(facts),
        fix="compute the loss anew in each step. retain_graph=True is right only where one graph "
        f"really is walked twice (two losses, second derivatives){tail}",
    )
