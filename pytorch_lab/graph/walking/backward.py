"""Watch torch walk the graph back: the order of the nodes, and the gradient at each.

    with watch(live) as seen:
        loss.backward()
    seen.order                      # places, as they ran
    nodes = seen.fill(nodes)        # the same records, with `grads` and `freed`

Backward itself is torch's own: hooks note what it does, and are gone at the end of the `with`.
Where only the order is wanted, of one backward from a result to all leaves, torch tells it when the
first node runs; that takes one hook instead of one for each node.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from pytorch_lab.graph.schema import Node, Stats
from pytorch_lab.graph.torch_private import current_node, plan_of_backward
from pytorch_lab.graph.walking.autograd import Live
from pytorch_lab.graph.walking.frozen import FREED, GRADS, NUMBERS, SAVED, SHAPES, Row, nodes_of
from pytorch_lab.graph.walking.hooks import handles_made, our_handles
from pytorch_lab.graph.walking.nodes import KNOWN_TYPES, about_type, freed

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
    whole_from: torch.Tensor | None = None,
) -> Iterator[Seen]:
    """Note which nodes run, and what reaches them.

    Args:
        live: the graph; nodes outside of it are not noticed.
        summary: is called with every gradient. Without it no gradient is looked at.
        numbers: is called with every gradient, too, beside `summary`.
        whole_from: what runs is one backward from this result to all leaves, and keeps no graph. So
            every node that ran is empty if it comes to its end; else each node is asked.

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
        for place, (node, targets) in enumerate(zip(live.nodes, live.next, strict=True))
        if not targets and about_type(node)[1] == "accumulate"
    }
    start = None if whole_from is None else whole_from.grad_fn
    goes_by_plan = summary is None and start is not None and _runs_torch_alone(live)
    plan = plan_of_backward if goes_by_plan else None
    ended = False
    try:
        with ExitStack() as hooks:
            with our_handles():
                if plan is not None:
                    _note_plan(plan, live, start, seen, hooks)
                elif summary is None:
                    _note_order(live, had, seen, hooks)
                else:
                    _note_gradients(live, range(len(live)), hooks, _looker(seen, summary, numbers))
            yield seen
        ended = True
    finally:
        emptied = frozenset(seen.order) if ended and whole_from is not None else frozenset()
        asked = [place for place in range(len(live)) if place not in emptied]
        seen.empty = emptied | freed(live.nodes, asked)
        if plan is not None and not ended:
            seen.order = list(_up_to_first_full(live, seen))
        for place in had.keys() & set(seen.order):
            seen.accumulated[place] = "added" if had[place] else "set"


def _runs_torch_alone(live: Live) -> bool:
    """Whether no code of the reader's runs in backward; then it can be told where an error came."""
    kinds = {KNOWN_TYPES.get(kind, ("", ""))[1] for kind in set(map(type, live.nodes))}
    return kinds <= {"builtin", "accumulate"} and not handles_made()


def _note_plan(
    plan: Callable[[], list[Any]], live: Live, start: Any, seen: Seen, hooks: ExitStack
) -> None:
    """Ask torch for its plan when the first node runs; it has one where one thread does it all."""

    def note(_: Any) -> None:
        seen.order += map(live.place.__getitem__, plan())

    hooks.callback(start.register_prehook(note).remove)
    hooks.enter_context(torch.autograd.set_multithreading_enabled(False))


def _up_to_first_full(live: Live, seen: Seen) -> Iterator[int]:
    """As far as a backward came that ended in an error: its last node still keeps something."""
    for place in seen.order:
        yield place
        if place not in seen.empty and about_type(live.nodes[place])[2]:
            return


def _note_order(live: Live, leaves: Collection[int], seen: Seen, hooks: ExitStack) -> None:
    """One hook for all nodes, put on each as `Tensor.register_hook` does it for its own.

    `register_prehook` with a function for each node takes four times as long, which counts where a
    node runs for ten microseconds. An AccumulateGrad looks at its variable's tensor hooks and not
    at its own, so it gets a hook of the official kind; so does everything if torch has no such
    way any more.
    """
    current, official = current_node, list(leaves)
    ran: list[Any] = []  # nodes, and the places of those with a hook of the official kind
    carrier = torch.empty(0, requires_grad=True)
    if current is None:
        official = list(range(len(live)))
    else:
        hooks.callback(carrier.register_hook(lambda _: ran.append(current())).remove)
        for here, node in enumerate(live.nodes):
            if here not in leaves:
                try:
                    node._register_hook_dict(carrier)
                except AttributeError:
                    official.append(here)
    hooks.callback(lambda: seen.order.extend(map(live.place.get, ran, ran)))
    _note_gradients(live, official, hooks, lambda here: lambda _: ran.append(here))


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
