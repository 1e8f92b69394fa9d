"""What a graph that still lives can tell: its leaves, what was freed, what was overwritten.

Only torch's own nodes are asked, and nothing runs: not a hook, not a recomputation of a checkpoint.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from pytorch_lab.graph.walking.autograd import Live
from pytorch_lab.graph.walking.nodes import about_type

FREED = "second time"  # in torch's message
CHANGED = "modified by an inplace operation"


class Held(NamedTuple):
    """What one node kept for backward under one name."""

    place: int  # of the node, in the graph that was walked
    node: str  # "SigmoidBackward0"
    name: str  # "result", as the derivative's formula calls it
    state: str  # "kept", "freed", "changed"
    tensor: torch.Tensor | None  # as it is now; None if it is freed
    message: str  # torch's own, when it was changed


def leaves_of(live: Live) -> dict[int, torch.Tensor]:
    """The leaf tensors of a graph, by the place of their AccumulateGrad.

    Example:
        >>> from pytorch_lab.graph.walking.autograd import walk
        >>> w = torch.ones(2, requires_grad=True)
        >>> [leaf is w for leaf in leaves_of(walk([w.exp().sum()])).values()]
        [True]
    """
    return {
        place: node.variable
        for place, node in enumerate(live.nodes)
        if about_type(node)[1] == "accumulate"
    }


def held_by(live: Live) -> Iterator[Held]:
    """What the nodes of a graph keep, or kept, for backward.

    Example:
        >>> from pytorch_lab.graph.walking.autograd import walk
        >>> y = torch.ones(2, requires_grad=True).exp()
        >>> live = walk([y.sum()])
        >>> with torch.no_grad():
        ...     y = y.add_(1)
        >>> [(held.node, held.name, held.state) for held in held_by(live)]
        [('ExpBackward0', 'result', 'changed')]
    """
    for place, node in enumerate(live.nodes):
        name, kind, attributes = about_type(node)
        for attribute, kept_as in attributes if kind != "accumulate" else ():
            yield from _held(place, node, name, attribute, kept_as)


def _held(place: int, node: Any, node_name: str, attribute: str, name: str) -> Iterator[Held]:
    try:
        raw = getattr(node, attribute)
    except RuntimeError as error:
        if FREED in str(error):
            yield Held(place, node_name, name, "freed", None, "")
        return
    # What a saved-tensor hook put away is not unpacked: for a checkpoint that would run it again.
    kept = [item.data for item in (raw if isinstance(raw, tuple) else (raw,))]
    if any(data is not None and not isinstance(data, torch.Tensor) for data in kept):
        return
    tensor = next((data for data in kept if data is not None), None)
    message = _complaint(node, name)
    if FREED in message:
        yield Held(place, node_name, name, "freed", None, "")
    elif CHANGED in message:
        yield Held(place, node_name, name, "changed", tensor, message)
    elif tensor is not None:
        yield Held(place, node_name, name, "kept", tensor, "")


def _complaint(node: Any, name: str) -> str:
    """What torch says to somebody who wants the saved tensor; empty if it gives it."""
    try:
        getattr(node, f"_saved_{name}", None)
        if name == "tensors" and isinstance(node, torch.autograd.function.BackwardCFunction):
            _ = node.saved_tensors
    except RuntimeError as error:
        return str(error)
    return ""


def shares_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors look into the same memory.

    Example:
        >>> w = torch.ones(3, requires_grad=True)
        >>> shares_memory(w, w.data), shares_memory(w, w.clone())
        (True, False)
    """
    try:
        mine, theirs = one.untyped_storage(), other.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse
        return one is other
    return mine.data_ptr() == theirs.data_ptr() and mine.nbytes() > 0
