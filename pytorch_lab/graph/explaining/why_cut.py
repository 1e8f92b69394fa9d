"""Where was the graph cut? The line at which the way back to a parameter ends, from a record."""

from collections import deque
from collections.abc import Sequence

from pytorch_lab.graph.explaining.answers import (
    backward_not_called,
    cleared,
    custom_backward,
    leads_to,
    old_copy,
)
from pytorch_lab.graph.explaining.cuts import (
    Cut,
    Flow,
    backward_ops,
    came_back,
    exits,
    follow,
    results_of,
)
from pytorch_lab.graph.explaining.explanation import Explanation
from pytorch_lab.graph.explaining.spots import capital, line_of, spot
from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.schema import Op

_SAYS = {
    "detached": "What was computed from {name} is detached here, so no gradient can come back "
    "to it.",
    "no_grad": "This ran under torch.no_grad() (or with gradients switched off), so it was not "
    "recorded and no gradient can come back to {name}.",
    "inference": "This ran in inference_mode, so it was not recorded and no gradient can come back "
    "to {name}.",
    "left_torch": "Here the numbers leave torch by {op}: what is computed from them afterwards "
    "cannot lead back to {name}.",
    "copied": "{op} copies numbers into a new tensor without a graph, so no gradient "
    "can come back to {name}.",
    "integer_op": "{op} gives whole numbers or truth values, which have no derivative: the graph "
    "ends here, before {name}.",
    "no_derivative": "The result of {op} does not ask for a gradient, so the graph ends here, "
    "before {name}.",
    "only_decides": "{name} is only used to decide which way the code goes; a decision has no "
    "derivative.",
}
_ITSELF = "The graph ends here: {name} is detached, so no gradient can come back to it."
_FIX = {
    "detached": "leave detach() (or `.data`) out where this value should be learned from; keep it "
    "for metrics and for targets",
    "no_grad": "move the computation out of the no_grad block; keep that for evaluation and for "
    "updates of weights",
    "inference": "compute the loss outside of inference_mode",
    "left_torch": "stay in torch until backward() has run: torch.exp instead of math.exp or numpy; "
    "call .item() for printing only",
    "copied": "keep the tensors: torch.stack(list_of_tensors) or torch.cat instead of "
    "torch.tensor(list)",
    "integer_op": "give the loss what was there before: the logits or probabilities, not their "
    "argmax or a comparison; use {op} for metrics",
    "no_derivative": "use an op with a derivative",
    "only_decides": "let the value itself enter the loss: torch.where(c, a, b) weighted by a "
    "sigmoid, or multiply by it",
}
_MOST_OTHERS = 3


def why_cut(record: GraphRecord, place: int, name: str) -> Explanation:
    """Say where the way from the result to a value ends.

    Args:
        record: a recording of the computation of the loss.
        place: which of its values.
        name: what a sentence calls it.
    """
    flow = follow(record, place)
    if flow.reaches or _leads_to(record, place):
        return _reaches(record, place, name)
    hidden = _in_a_checkpoint(record, flow, name)
    if hidden is not None:
        return hidden
    on_the_way = [cut for cut in flow.cuts if cut.to_result]
    if on_the_way:
        return explain_cut(record, on_the_way[0], name, flow)
    left = exits(record, flow)
    if left:
        return explain_cut(record, left[0], name, flow, left[1:])
    if flow.readers:
        return _dropped(flow.readers[-1], name, record)
    return _unread(record, place, name)


def _in_a_checkpoint(record: GraphRecord, flow: Flow, name: str) -> Explanation | None:
    """Used inside of a reentrant checkpoint, whose graph is built in backward only."""
    hosts = (record.ops[op.inside] for op in flow.readers if op.inside is not None)
    host = next((op for op in hosts if op.kind == "checkpoint"), None)
    if host is None:
        return None
    alive = any(record.values[place].requires_grad for place in host.outputs)
    says = (
        "its gradient arrives when backward() runs; the graph before that does not show it."
        if alive
        else "and since none of the checkpoint's inputs asks for a gradient, it gets none."
    )
    return Explanation(
        "inside_checkpoint" if alive else "checkpoint_without_grad",
        f"{capital(name)} is used inside of a reentrant checkpoint: {says}",
        where=host.site.where,
        evidence=(
            f"{host.name} ran without recording a graph of its inside",
            *line_of(record, host),
        ),
        fix="pass use_reentrant=False to checkpoint(...)",
    )


def explain_cut(
    record: GraphRecord, cut: Cut, name: str, flow: Flow, further: Sequence[Cut] = ()
) -> Explanation:
    """The explanation of one cut between the result and `name`.

    Args:
        record: the recording.
        cut: the likeliest.
        name: of the parameter.
        flow: of the parameter, for the other cuts on the way to the result.
        further: other ops that could have been it.
    """
    op = cut.op
    facts = [f"{op.name}: its input asks for a gradient, its result does not"]
    if cut.to_result:
        facts.append("its numbers still go into the loss, as constants")
    elif cut.cause == "left_torch":
        facts = [f"{op.name} hands out plain Python or numpy numbers"]
        back = next(came_back(record, op.index), None)
        if back:
            facts.append(f"numbers come back as a new tensor at {back.where}")
    facts += line_of(record, op)
    others = [c for c in flow.cuts if c.to_result and c.op.site != op.site][:_MOST_OTHERS]
    facts += [f"cut as well at {other.op.site.where} by {other.op.name}" for other in others]
    known = [c for c in further if c.op.site != op.site][:_MOST_OTHERS]
    facts += [f"{other.op.name} hands out numbers as well{spot(other.op)}" for other in known]
    words = {"name": name, "op": f"`{op.name}`"}
    itself = cut.cause == "detached" and flow.start in op.inputs
    says = (_ITSELF if itself else _SAYS[cut.cause]).format(**words)
    return Explanation(
        cut.cause,
        capital(says),
        where=op.site.where,
        evidence=tuple(facts),
        fix=_FIX[cut.cause].format(**words),
    )


def _dropped(op: Op, name: str, record: GraphRecord) -> Explanation:
    return Explanation(
        "not_in_loss",
        f"{capital(name)} is used, but what was computed from it does not enter the "
        f"loss; the last op that saw it is {op.name}.",
        where=op.site.where,
        evidence=(
            "its results have a graph, and nobody on the way to the loss reads them",
            *line_of(record, op),
        ),
        fix="add the result to the loss, or leave the computation out if it is not needed",
    )


def _unread(record: GraphRecord, place: int, name: str) -> Explanation:
    """Never read. If nobody knows its name, perhaps because another tensor took its place."""
    value = record.values[place]
    for other in record.values if not value.name else ():
        twin = other.shape == value.shape and other.is_leaf and other.requires_grad
        if (
            twin
            and other.op is None
            and other.index != place
            and follow(record, other.index).reaches
        ):
            known = f"`{other.name}`" if other.name else "a leaf without a name"
            return old_copy(
                name,
                [f"no op reads {name}", f"{known} has the same shape, {value.shape}, and is used"],
            )
    return unused(record, name)


def unused(record: GraphRecord, name: str) -> Explanation:
    """The explanation when no op reads a parameter.

    Args:
        record: the recording.
        name: of the parameter.
    """
    return Explanation(
        "unused",
        f"{capital(name)} is not used: none of the {len(record.ops)} ops that ran reads it.",
        evidence=(f"no op reads {name}",),
        fix="use it in the computation of the loss (a layer must be called in forward); nothing, "
        "if this run is not meant to train it",
    )


def _reaches(record: GraphRecord, place: int, name: str) -> Explanation:
    calls = backward_ops(record)
    if calls and all(op.name == "grad" for op in calls):
        return Explanation(
            "went_elsewhere",
            f"autograd.grad hands the gradients out and leaves `.grad` of {name} alone.",
            where=calls[-1].site.where,
            evidence=(leads_to(name), *line_of(record, calls[-1])),
            fix="use what autograd.grad returns, or call loss.backward()",
        )
    went_back_afterwards = record.backward_order and not any(
        op.kind == "backward" for op in record.ops
    )
    if not calls and not went_back_afterwards:
        return backward_not_called(name, ["no backward() in this run"])
    if only_through_functions(record, place):
        functions = dict.fromkeys(node.name for node in record.nodes if node.kind == "function")
        return custom_backward(name, functions, ["backward() ran"])
    return cleared(name, ["backward() ran"])


def only_through_functions(record: GraphRecord, place: int) -> bool:
    """Whether each way from the result to a leaf goes through a custom autograd.Function."""
    return not _leads_to(record, place, ("function",))


def _leads_to(record: GraphRecord, place: int, without: tuple[str, ...] = ()) -> bool:
    """Whether autograd's own graph leads from the result to a value, kinds of nodes left out."""
    goal = record.values[place].node
    roots = [record.values[result].node for result in results_of(record)]
    seen = {root for root in roots if root is not None and record.nodes[root].kind not in without}
    queue = deque(seen)
    while queue:
        here = queue.popleft()
        if here == goal:
            return True
        for there in record.nodes[here].next:
            if there not in seen and record.nodes[there].kind not in without:
                seen.add(there)
                queue.append(there)
    return False
