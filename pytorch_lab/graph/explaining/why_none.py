"""Why is `.grad` None? The place where the gradient's way to a parameter ends.

    graph.why_none(net.fc.weight, loss)             what the graph behind the loss can tell
    graph.why_none(net.fc.weight, lambda: step())   runs it once, and can name the line

The graph behind a loss shows what is in it. What was cut off left no trace there, so the line of a
`detach()` or an `.item()` can only be named where the code is run once more, recorded.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import nn

from pytorch_lab.graph.explaining.answers import (
    backward_not_called,
    cleared,
    custom_backward,
    old_copy,
)
from pytorch_lab.graph.explaining.arguments import expect_loss, expect_optional, expect_tensor
from pytorch_lab.graph.explaining.cuts import backward_ops
from pytorch_lab.graph.explaining.explanation import Explanation
from pytorch_lab.graph.explaining.finding import find
from pytorch_lab.graph.explaining.living import held_by, leaves_of, shares_memory
from pytorch_lab.graph.explaining.observing import observe
from pytorch_lab.graph.explaining.why_cut import unused, why_cut
from pytorch_lab.graph.explaining.why_error import why_error
from pytorch_lab.graph.explaining.why_tensor import (
    alias,
    at_once,
    grad_of,
    has_grad,
    name_of,
    not_asking,
    other_owner,
)
from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.walking.autograd import Live, walk


class Case(NamedTuple):
    """The question, and what it is about."""

    parameter: torch.Tensor
    name: str  # "`fc.weight`", or "this tensor"
    loss: torch.Tensor
    live: Live  # the graph behind the loss
    leaves: dict[int, torch.Tensor]
    optimizer: torch.optim.Optimizer | None
    model: nn.Module | None


def why_none(
    parameter: torch.Tensor,
    loss: torch.Tensor | GraphRecord | Callable[[], Any],
    *,
    optimizer: torch.optim.Optimizer | None = None,
    model: nn.Module | None = None,
) -> Explanation:
    """Say why `parameter.grad` is None, or that it is not.

    Example:
        >>> w = torch.ones(3, requires_grad=True)
        >>> answer = why_none(w, lambda: (w.detach() * 2).sum())
        >>> answer.cause, answer.where
        ('detached', 'cell line 1')
        >>> print(why_none(w * 2, (w * 2).sum()))
        This tensor is the result of an operation, not a leaf: backward passes its
        gradient on and keeps none.
          seen    its grad_fn is MulBackward0
                  is_leaf is False, retain_grad() was not called
          fix     to look at the gradient: call retain_grad() on it before backward();
                    to learn it: do the computation first and requires_grad_() or
                    nn.Parameter(...) last
        >>> why_none(w, (w * 2).sum()).cause
        'backward_not_called'

    Args:
        parameter: the tensor whose `.grad` is None.
        loss: what `backward` is called on. A tensor: its live graph is read. A function without
            arguments that computes it: it is run once, recorded. A record: what it shows. Of
            several results it is the one called `loss`, else the first that requires a gradient.
        optimizer: to find that it holds another tensor.
        model: for the parameter's name, and to find that the model holds another tensor.

    Raises:
        UsageError: if an argument is none of these, or a record does not tell which of its values
            the parameter is.
    """
    expect_tensor("why_none", parameter, "whose .grad is None")
    expect_loss("why_none", loss, records=True)
    expect_optional("why_none", "model", model, nn.Module, "an nn.Module")
    expect_optional("why_none", "optimizer", optimizer, torch.optim.Optimizer, "an Optimizer")
    name = name_of(parameter, model)
    told = at_once(parameter, name)
    if told is not None:
        return told
    if not parameter.requires_grad and not isinstance(loss, torch.Tensor):
        return other_owner(parameter, name, optimizer, model) or not_asking(parameter, name)
    if isinstance(loss, GraphRecord):
        return _in_a_record(loss, parameter, name, model)
    if isinstance(loss, torch.Tensor):
        live = walk([loss])
        case = Case(parameter, name, loss, live, leaves_of(live), optimizer, model)
        return next(filter(None, (finder(case) for finder in FINDERS)))
    before = other_owner(parameter, name, optimizer, model)
    return before or _in_a_run(loss, parameter, name)


def _in_a_record(
    record: GraphRecord, parameter: torch.Tensor, name: str, model: nn.Module | None
) -> Explanation:
    """Look the parameter up in a recording, which knows names and shapes only."""
    found = find(record, parameter, model)
    if found is None:
        return unused(record, name)
    told = why_cut(record, found.place, name)
    shown = record.values[found.place].name
    note = "known in the record by its shape only; model= would tell for sure"
    if found.sure:
        note = f"in the record it is called `{shown}`" if f"`{shown}`" != name else ""
    return replace(told, evidence=(*told.evidence, note)) if note else told


def _in_a_run(fn: Callable[[], Any], parameter: torch.Tensor, name: str) -> Explanation:
    """Run the code once, recorded."""
    seen = observe(fn, [parameter])
    record = seen.record
    own = record.values[seen.places[0]].name if seen.places else ""
    name = f"`{own}`" if own else name
    try:
        if parameter.is_leaf and parameter.grad is not None:
            return has_grad(parameter.grad, name)
        if seen.error is not None and not backward_ops(record):
            return why_error(seen.error, record)
        return why_cut(record, seen.places[0], name)
    finally:
        seen.forget()


def _not_asking(case: Case) -> Explanation | None:
    if case.parameter.requires_grad:
        return None
    for leaf in case.leaves.values():
        if shares_memory(case.parameter, leaf):
            return alias(case.name, "the graph's leaf")
    return not_asking(case.parameter, case.name)


def _loss_is_leaf(case: Case) -> Explanation | None:
    if not (case.loss.requires_grad and case.loss.is_leaf) or case.loss is case.parameter:
        return None
    return Explanation(
        "loss_is_leaf",
        "The loss is a leaf: nothing is behind it. Somebody called requires_grad_() on a result "
        "that had no graph, which silences the error and trains nothing.",
        evidence=("loss.grad_fn is None, loss.requires_grad is True",),
        fix="leave requires_grad_(True) on the loss out, and look for what cut the graph: "
        "why_none(parameter, lambda: ...) with the code that computes the loss names the line",
    )


def _loss_without_graph(case: Case) -> Explanation | None:
    if case.loss.requires_grad:
        return None
    if not case.loss.is_floating_point() and not case.loss.is_complex():
        reason = "holds whole numbers, so it came from something like argmax or a comparison"
    elif case.loss.is_inference():
        reason = "was computed in inference_mode"
    else:
        reason = "was computed under no_grad, or from detached values or plain numbers"
    return Explanation(
        "loss_without_graph",
        f"There is no graph behind the loss: it {reason}.",
        evidence=(f"loss.grad_fn is None, dtype {str(case.loss.dtype).removeprefix('torch.')}",),
        fix="to learn the line, let it be computed under observation: why_none(parameter, "
        "lambda: ...)",
    )


def _reached(case: Case) -> Explanation | None:
    """The graph leads to it: then backward did not run, or what it brought is gone."""
    node = case.parameter.grad_fn
    there = (
        node in case.live.place
        if node is not None
        else any(leaf is case.parameter for leaf in case.leaves.values())
    )
    if not there:
        return None
    states = [held.state for held in held_by(case.live)]
    grads = sum(grad_of(leaf) is not None for leaf in case.leaves.values())
    return reached(case.name, states.count("freed"), len(states), grads, _custom(case.live))


def reached(name: str, freed: int, held: int, grads: int, custom: tuple[str, ...]) -> Explanation:
    """The explanation when the graph leads to the parameter.

    Args:
        name: of the parameter.
        freed: how many of the saved tensors are freed.
        held: how many were saved.
        grads: how many other leaves of the graph have a gradient.
        custom: names of the custom Functions in the graph.
    """
    if not freed:
        facts = [
            f"nothing of what {held} nodes saved was freed" if held else "no node saved anything"
        ]
        if grads:
            facts.append(f"{grads} other leaves have a gradient, perhaps of another loss")
        return backward_not_called(name, facts)
    facts = [f"{freed} of {held} saved tensors are freed, so backward() has run"]
    if custom and grads:
        return custom_backward(name, custom, [*facts, f"{grads} other leaves have a gradient"])
    return cleared(name, facts)


def _custom(live: Live) -> tuple[str, ...]:
    return tuple(
        str(node.name())  # pyright: ignore[reportAttributeAccessIssue]
        for node in live.nodes
        if isinstance(node, torch.autograd.function.BackwardCFunction)
    )


def _other_tensor(case: Case) -> Explanation | None:
    """Somebody else of the same shape is in the graph: the model's, and this one is old."""
    told = other_owner(case.parameter, case.name, case.optimizer, case.model)
    if told is not None:
        return told
    same = [leaf for leaf in case.leaves.values() if leaf.shape == case.parameter.shape]
    if not same:
        return None
    shape = tuple(case.parameter.shape)
    values = sum(_equal(leaf, case.parameter) for leaf in same)
    return old_copy(
        case.name,
        [
            f"it is not in the graph of this loss; {len(same)} of {len(case.leaves)} leaves have "
            f"its shape, {shape}",
            f"{values} of them have its values" if values else "none of them has its values",
        ],
    )


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.device == other.device and one.dtype == other.dtype and torch.equal(one, other)


def _not_in_graph(case: Case) -> Explanation | None:
    """All that a tensor can say."""
    return Explanation(
        "not_in_graph",
        f"The graph of this loss does not lead to {case.name}: it was not used, or its way was cut "
        "by detach(), no_grad, .item() or a whole-number op. What is cut leaves no trace in a "
        "graph.",
        evidence=(f"{len(case.live)} nodes, {len(case.leaves)} leaves; it is none of them",),
        fix="to learn which line it was, let the loss be computed under observation: "
        "why_none(parameter, lambda: loss_fn(net(x), y))",
    )


FINDERS = (
    _not_asking,
    _loss_is_leaf,
    _loss_without_graph,
    _reached,
    _other_tensor,
    _not_in_graph,
)
