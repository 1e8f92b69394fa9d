"""What happened to one parameter's gradient: on its way back, and after it had arrived."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from pytorch_lab.graph.explaining.cuts import needed_for, results_of
from pytorch_lab.graph.explaining.hooked import HookWatch
from pytorch_lab.graph.explaining.living import leaves_of
from pytorch_lab.graph.explaining.observing import (
    Observed,
    observe,
    place_of,
    root_of,
    went_back,
)
from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.recording.recorder import Recorder
from pytorch_lab.graph.schema import Node, Op, Site, Stats, Value
from pytorch_lab.graph.stats import summarise
from pytorch_lab.graph.walking.autograd import walk


class Moment(NamedTuple):
    """The gradient after some op changed it."""

    op: Op
    stats: Stats


@dataclass
class Story:
    """A recorded run with its backward, seen from one parameter.

    Attributes:
        record: the recording, with the gradient's summary at each node.
        place: which of its values the parameter is.
        name: what a sentence calls it.
        life: the gradient after backward and after each op that changed it.
        final: the gradient at the end; None if it is gone.
        error: in which the run ended.
        hooks: the nodes on whose result, or leaf, a hook stands, each with the line that put it
            there in this run; None if it was there before.
    """

    record: GraphRecord
    place: int
    name: str
    life: list[Moment] = field(default_factory=list)
    final: Stats | None = None
    error: Exception | None = None
    hooks: dict[int, Site | None] = field(default_factory=dict)

    @property
    def leaf(self) -> Node | None:
        """The node at which the gradient arrives."""
        node = self.record.values[self.place].node
        return self.record.nodes[node] if node is not None else None

    @property
    def arrived(self) -> Stats | None:
        """The gradient as backward delivered it."""
        return arriving(self.leaf) if self.leaf is not None else None

    @property
    def ran(self) -> tuple[Node, ...]:
        """The nodes in the order in which backward ran them."""
        return tuple(self.record.nodes[place] for place in self.record.backward_order)

    def on_the_way(self) -> set[int]:
        """The nodes that ran and through which the gradient could come."""
        before: dict[int, list[int]] = {}
        ran = set(self.record.backward_order)
        for place in ran:
            for there in self.record.nodes[place].next:
                before.setdefault(there, []).append(place)
        seen: set[int] = set()
        stack = [self.leaf.index] if self.leaf is not None else []
        while stack:
            here = stack.pop()
            if here not in seen:
                seen.add(here)
                stack.extend(place for place in before.get(here, ()) if place in ran)
        return seen

    def senders(self, node: Node) -> list[Node]:
        """The nodes that sent a node its gradient, in the order in which they ran."""
        return [other for other in self.ran if node.index in other.next]

    def op_of(self, node: Node) -> Op | None:
        """The op that made a node."""
        return self.record.ops[node.op] if node.op is not None else None

    def forward_ops(self) -> Iterator[tuple[Op, list[Value], list[Value]]]:
        """The ops whose numbers go into the loss, with what they read and made."""
        needed = needed_for(self.record, results_of(self.record))
        values = self.record.values
        for op in self.record.ops:
            if op.kind in ("backward", "optimizer"):
                return
            if any(place in needed for place in op.outputs):
                yield op, [values[i] for i in op.inputs], [values[i] for i in op.outputs]


def arriving(node: Node) -> Stats | None:
    """The gradient that reached a node; of several the one that is not finite, else the largest."""
    stats = [grad for grad in node.grads if grad is not None]
    return max(stats, key=lambda grad: (not finite(grad), grad.norm)) if stats else None


def finite(stats: Stats) -> bool:
    """Whether there is no NaN and no inf."""
    return not stats.nan and not stats.inf


def zero(stats: Stats) -> bool:
    """Whether each element is 0."""
    return stats.zeros == 1.0


def percent(share: float) -> str:
    """A share as it is read: `12 %`; one that is not nothing is never `0 %`."""
    return "less than 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def tell(parameter: torch.Tensor, loss: Callable[[], Any], name: str, keep: bool) -> Story:
    """Run the computation of a loss and its backward, recorded.

    If the function does not call backward, it is called on its result, and the gradients that the
    leaves had before are put back.

    Args:
        parameter: whose gradient is asked about.
        loss: computes the loss, or does a whole step.
        name: of the parameter, where the recording finds none.
        keep: whether the graph is needed afterwards.

    Example:
        >>> w = torch.tensor([2.0], requires_grad=True)
        >>> story = tell(w, lambda: (w ** 3).sum(), "w", keep=False)
        >>> story.arrived.max, w.grad
        (12.0, None)
    """
    stash: dict[int, tuple[torch.Tensor, torch.Tensor | None]] = {}
    end: list[tuple[int | None, Stats | None]] = []

    def after(result: Any, recorder: Recorder) -> None:
        if not went_back(recorder):
            _go_back(parameter, result, stash, keep)
        grad = parameter.grad if parameter.is_leaf else None
        if grad is not None:
            end.append((place_of(recorder, grad), summarise(grad.detach())))

    watch = HookWatch()
    try:
        seen = observe(loss, [parameter], after=after, values="full", within=watch)
    finally:
        for leaf, old in stash.values():
            leaf.grad = old
    story = _story(seen, name, end[0] if end else (None, None))
    for node in story.record.nodes:
        if node.sequence in watch.found or node.hooks:
            story.hooks[node.index] = watch.found.get(node.sequence)
    return story


def _go_back(
    parameter: torch.Tensor,
    result: Any,
    stash: dict[int, tuple[torch.Tensor, torch.Tensor | None]],
    keep: bool,
) -> None:
    root = root_of(result)
    if root is None:
        return
    leaves = leaves_of(walk([root])).values()
    for leaf in {id(leaf): leaf for leaf in (*leaves, parameter) if leaf.is_leaf}.values():
        stash[id(leaf)] = leaf, leaf.grad
        leaf.grad = None
    root.backward(None if root.numel() == 1 else torch.ones_like(root), retain_graph=keep)


def _story(seen: Observed, name: str, end: tuple[int | None, Stats | None]) -> Story:
    record, error = seen.record, seen.error
    seen.forget()
    if not seen.places:
        raise error or RuntimeError("the function was not called")
    own = record.values[seen.places[0]].name
    story = Story(record, seen.places[0], f"`{own}`" if own else name, error=error)
    place, story.final = end
    if place is not None:
        storage = record.values[place].storage
        for value in record.values:
            if value.storage == storage and value.op is not None and value.stats is not None:
                story.life.append(Moment(record.ops[value.op], value.stats))
    return story
