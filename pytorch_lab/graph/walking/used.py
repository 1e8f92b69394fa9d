"""Let go of what a graph keeps, after its nodes were called one by one.

Torch frees a graph only in a backward. Another one costs as much again for small tensors, so there
the graph is marked instead: the next backward over it ends with an error as it would if it were
freed, and the memory is free when the result is let go. A graph that keeps much gets its backward.
"""

import weakref
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NoReturn

import torch

from pytorch_lab.graph.schema import Node
from pytorch_lab.graph.walking.autograd import Live
from pytorch_lab.graph.walking.hooks import our_handles

MUCH = 64 * 2**20  # bytes
_TAG = "pytorch_lab: used"


class Release:
    """Frees a graph, if somebody still holds its result.

    Args:
        root: the result.
        nodes: the records of its graph.
    """

    def __init__(self, root: torch.Tensor, nodes: Sequence[Node]) -> None:
        self._root = weakref.ref(root)
        self._nodes = nodes

    def __call__(self, live: Live, places: Sequence[int], upcoming: int | None) -> None:
        """Let go of what nodes keep.

        Args:
            live: the graph.
            places: of the nodes, the first that ran in backward, in their turn.
            upcoming: of the node whose turn came next; None if there was none.
        """
        root = self._root()
        if root is None or root.grad_fn is None or not places:
            return
        some = places[:: 1 + len(places) // 100]
        kept = sum(saved.bytes for place in some for saved in self._nodes[place].saved)
        if kept * len(places) > MUCH * len(some):
            _free(root, root.grad_fn, None if upcoming is None else live.nodes[upcoming])
        else:
            live.nodes[places[0]].metadata[_TAG] = True
            mark(live, [place for place in places if self._nodes[place].saved])


def is_used(node: Any) -> bool:
    """Whether this is where a backward began whose graph was marked."""
    return _TAG in node.metadata


def mark(live: Live, places: Sequence[int]) -> None:
    """From now on, a backward over one of these nodes is an error.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph.walking.autograd import walk
        >>> x = torch.ones(2, requires_grad=True)
        >>> loss = x.exp().sum()
        >>> mark(walk([loss]), [1])
        >>> loss.backward()
        Traceback (most recent call last):
        RuntimeError: Trying to backward through the graph a second time: ...
    """
    carrier = _carrier()
    for place in places:
        live.nodes[place]._register_hook_dict(carrier)


@cache
def _carrier() -> torch.Tensor:
    """One hook for all nodes, put on each as `Tensor.register_hook` does it for its own."""
    carrier = torch.empty(0, requires_grad=True)
    carrier._backward_hooks = OrderedDict({0: _refuse})
    return carrier


def _refuse(gradient: torch.Tensor) -> NoReturn:
    raise RuntimeError(
        "Trying to backward through the graph a second time: a stepper has gone through it, and it "
        "counts as freed. Step with retain_graph=True, or run the forward again."
    )


class _Enough(Exception):
    """Ends a backward in front of the first node that is freed already."""


def _enough(_: Any) -> NoReturn:
    raise _Enough


def _free(root: torch.Tensor, node: Any, end: Any) -> None:
    """A backward in which no gradient goes in: nothing is computed and nothing accumulated."""
    with our_handles():
        handles = [node.register_prehook(lambda gradients: (None,) * len(gradients))]
        if end is not None:
            handles.append(end.register_prehook(_enough))
    try:
        with suppress(_Enough):
            root.backward(torch.ones_like(root))
    finally:
        for handle in handles:
            handle.remove()
