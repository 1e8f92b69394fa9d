"""Watch torch walk the graph back: the order of the nodes, and the gradient at each.

with watch(live) as seen:
    loss.backward()
seen.order                      # places, as they ran
nodes = seen.fill(nodes)        # the same records, with `grads` and `freed`
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from pytorch_lab.graph.autograd import Live, about_type, is_freed
from pytorch_lab.graph.record import Node, Stats

Summary = Callable[[torch.Tensor], Stats | None]


class Seen:
    """What backward did.

    Attributes:
        order: places of the nodes, in the order in which they ran.
        grads: for each place that ran, one entry for each gradient that could have reached it:
            what `summary` gave, or None if none came or no summary was asked for.
        accumulated: places of AccumulateGrad nodes that ran, and whether they "set" a `.grad` that
            was None or "added" to it.
        freed: for each place, what `record.Node.freed` says.
    """

    def __init__(self) -> None:
        self.order: list[int] = []
        self.grads: dict[int, tuple[Stats | None, ...]] = {}
        self.accumulated: dict[int, str] = {}
        self.freed: dict[int, bool | None] = {}

    def fill(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """The records with what backward added to them."""
        return tuple(
            node._replace(grads=self.grads.get(node.index, ()), freed=self.freed.get(node.index))
            for node in nodes
        )


@contextmanager
def watch(live: Live, summary: Summary | None = None) -> Iterator[Seen]:
    """Note which nodes run, and what reaches them.

    Args:
        live: the graph; nodes outside of it are not noticed.
        summary: is called with every gradient. Without it no gradient is looked at.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph.autograd import walk
        >>> x = torch.ones(3, requires_grad=True)
        >>> loss = x.exp().sum()
        >>> live = walk([loss])
        >>> with watch(live) as seen:
        ...     loss.backward()
        >>> [live.nodes[place].name() for place in seen.order]
        ['SumBackward0', 'ExpBackward0', 'torch::autograd::AccumulateGrad']
        >>> seen.accumulated, seen.freed
        ({2: 'set'}, {0: None, 1: True, 2: None})
    """
    seen = Seen()
    leaves = [place for place, node in enumerate(live.nodes) if hasattr(node, "variable")]
    had = {place: live.nodes[place].variable.grad is not None for place in leaves}
    handles = [
        node.register_prehook(_hook(seen, place, summary)) for place, node in enumerate(live.nodes)
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
        ran = seen.grads
        seen.accumulated = {
            place: "added" if had[place] else "set" for place in leaves if place in ran
        }
        seen.freed = {place: is_freed(node) for place, node in enumerate(live.nodes)}


def _hook(seen: Seen, place: int, summary: Summary | None) -> Callable[[Any], None]:
    def note(gradients: tuple[torch.Tensor | None, ...]) -> None:
        seen.order.append(place)
        seen.grads[place] = (
            (None,) * len(gradients)
            if summary is None
            else tuple(None if gradient is None else summary(gradient) for gradient in gradients)
        )

    return note
