"""Watch torch walk the graph back: the order of the nodes, and the gradient at each.

    with watch(live) as seen:
        loss.backward()
    seen.order                      # places, as they ran
    nodes = seen.fill(nodes)        # the same records, with `grads` and `freed`

Backward itself is torch's own: hooks note what it does, and are gone at the end of the `with`.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from pytorch_lab.graph.schema import Node, Stats
from pytorch_lab.graph.torch_private import current_node
from pytorch_lab.graph.walking.autograd import Live
from pytorch_lab.graph.walking.frozen import FREED, GRADS, NUMBERS, SAVED, SHAPES, Row, nodes_of
from pytorch_lab.graph.walking.hooks import our_handles
from pytorch_lab.graph.walking.nodes import alike, freed

Summary = Callable[[torch.Tensor], Stats | None]
Numbers = tuple[float, ...] | None
Gradients = tuple[torch.Tensor | None, ...]
Hook = Callable[[Any], None]


class Seen:
    """What backward did. Places alone: nothing of torch is kept.

    Attributes:
        order: places of the nodes, in the order in which they ran. A node that ran in two
            backwards is there twice.
        grads: the summaries of the gradients that reached a place, if a summary was asked for;
            None where no gradient came.
        numbers: the elements of these gradients, if they were asked for.
        accumulated: the places of AccumulateGrad nodes that ran, each with "set" if its leaf had no
            `.grad` before and "added" if it had one.
        empty: the places of nodes that keep nothing now.
    """

    def __init__(self) -> None:
        self.order: list[int] = []
        self.grads: dict[int, tuple[Stats | None, ...]] = {}
        self.numbers: dict[int, tuple[Numbers, ...]] = {}
        self.accumulated: dict[int, str] = {}
        self.empty: frozenset[int] = frozenset()

    def fill(self, nodes: Sequence[Row]) -> tuple[Node, ...]:
        """The records with what backward added to them: `grads`, `numbers` and `freed`.

        Args:
            nodes: frozen before backward, or their rows.
        """
        if not nodes:
            return ()
        columns: list[Any] = list(zip(*nodes, strict=True))
        empty, shapes = self.empty, columns[SHAPES]
        columns[FREED] = [
            place in empty if saved else None for place, saved in enumerate(columns[SAVED])
        ]
        grads = columns[GRADS] = list(columns[GRADS])
        for place in self.order:
            grads[place] = self.grads.get(place) or (None,) * len(shapes[place])
        numbers = columns[NUMBERS] = list(columns[NUMBERS])
        for place, elements in self.numbers.items():
            numbers[place] = elements
        return nodes_of(zip(*columns, strict=True))


@contextmanager
def watch(
    live: Live,
    summary: Summary | None = None,
    numbers: Callable[[torch.Tensor], Numbers] | None = None,
    frees: bool = False,
) -> Iterator[Seen]:
    """Note which nodes run, and what reaches them.

    Args:
        live: the graph; nodes outside of it are not noticed.
        summary: is called with every gradient. Without it no gradient is looked at.
        numbers: is called with every gradient, too, beside `summary`.
        frees: what runs is one backward to all leaves that keeps no graph, so that every node that
            ran is empty if it comes to its end. Else each node is asked.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph.walking.autograd import walk
        >>> from pytorch_lab.graph.walking.frozen import freeze
        >>> x = torch.ones(3, requires_grad=True)
        >>> loss = x.exp().sum()
        >>> live = walk([loss])
        >>> nodes = freeze(live)
        >>> with watch(live) as seen:
        ...     loss.backward()
        >>> [nodes[place].name for place in seen.order]
        ['SumBackward0', 'ExpBackward0', 'AccumulateGrad']
        >>> seen.accumulated
        {2: 'set'}
        >>> [node.freed for node in seen.fill(nodes)]
        [None, True, None]
    """
    seen = Seen()
    had = {
        place: node.variable.grad is not None
        for places, nodes, (_, kind, _) in alike(live.nodes, range(len(live)))
        if kind == "accumulate"
        for place, node in zip(places, nodes, strict=True)
    }
    with ExitStack() as hooks:
        with our_handles():
            if summary is None:
                _note_order(live, had, seen, hooks)
            else:
                _note_gradients(live, range(len(live)), hooks, _looker(seen, summary, numbers))
        ended = False
        try:
            yield seen
            ended = True
        finally:
            ran = frozenset(seen.order)
            for place in had.keys() & ran:
                seen.accumulated[place] = "added" if had[place] else "set"
            emptied = ran if ended and frees else frozenset()
            asked = [place for place in range(len(live)) if place not in emptied]
            seen.empty = emptied | freed(live.nodes, asked)


def _note_order(live: Live, leaves: Collection[int], seen: Seen, hooks: ExitStack) -> None:
    """One hook for all nodes, put on each as `Tensor.register_hook` does it for its own.

    `register_prehook` with a function for each node takes four times as long, which counts where a
    node runs for ten microseconds. An AccumulateGrad looks at its variable's tensor hooks and not
    at its own, so it gets a hook of the official kind; so does everything if torch has no such
    way any more.
    """
    current = current_node
    official = list(leaves)
    carrier = torch.empty(0, requires_grad=True)
    place, order = live.place, seen.order
    if current is not None:
        handle = carrier.register_hook(lambda _: order.append(place[current()]))
        hooks.callback(handle.remove)
    for here, node in enumerate(live.nodes):
        register = getattr(node, "_register_hook_dict", None)
        if here in leaves:
            continue
        if current is None or register is None:
            official.append(here)
        else:
            register(carrier)
    _note_gradients(live, official, hooks, lambda here: lambda _: order.append(here))


def _note_gradients(
    live: Live, places: Sequence[int], hooks: ExitStack, hook_of: Callable[[int], Hook]
) -> None:
    for place in places:
        hooks.callback(live.nodes[place].register_prehook(hook_of(place)).remove)


def _looker(
    seen: Seen, summary: Summary, numbers: Callable[[torch.Tensor], Numbers] | None
) -> Callable[[int], Hook]:
    """Hooks that take the figures of what reaches a place, and its elements if they are wanted."""

    def hook_of(place: int) -> Hook:
        def note(gradients: Gradients) -> None:
            seen.order.append(place)
            seen.grads[place] = _each(summary, gradients)
            if numbers is not None:
                seen.numbers[place] = _each(numbers, gradients)

        return note

    return hook_of


def _each(look: Callable[[torch.Tensor], Any], gradients: Gradients) -> tuple[Any, ...]:
    return tuple([None if gradient is None else look(gradient) for gradient in gradients])
