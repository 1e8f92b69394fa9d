"""The nodes of a graph called one by one, with the rules of torch's engine.

The youngest node that is ready runs first; gradients are added as they come, and fitted to the
shape and dtype of who receives them. That is quicker than `engines.Engine`: no thread is woken, and
the memory that a step allocates is that of the caller's thread, which the C library keeps at hand.
But a graph is freed at its end and not node by node; and torch gives no way to find the hooks on a
node, so it is for graphs that are known to have none (see `hooks.py`), and `needs_engine` says what
else only torch's own engine can do.
"""

from collections.abc import Callable, Generator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from pytorch_lab.graph.schema import Node
from pytorch_lab.graph.torch_private import set_grad
from pytorch_lab.graph.walking.autograd import Live
from pytorch_lab.graph.walking.engines import Gradients, Stop
from pytorch_lab.graph.walking.frozen import PACKED
from pytorch_lab.graph.walking.nodes import hooks_of, spell
from pytorch_lab.graph.walking.turns import turns, waiting_for

_is_grad = torch.is_grad_enabled
Slot = torch.Tensor | list[torch.Tensor | None]  # for nodes with one output, and with several

_KIND, _SHAPES, _DTYPE, _DEVICE, _SAVED = map(
    itemgetter, map(Node._fields.index, ("kind", "shapes", "dtype", "device", "saved"))
)


class Direct:
    """The nodes called one by one. Attributes and methods as in `engines.Engine`.

    Args:
        live: the graph.
        nodes: its records.
        start: where to begin.
        gradients: what the first node gets.
        retain: whether the graph shall stay.
        release: is called at the end, with the places of the nodes that were called from here, and
            with that of the one whose turn came next.
    """

    def __init__(
        self,
        live: Live,
        nodes: Sequence[Node],
        start: int,
        gradients: Gradients,
        retain: bool,
        release: Callable[[Live, Sequence[int], int | None], None],
    ) -> None:
        self.done = False
        self.place: int | None = start
        self._live = live
        self._nodes = nodes
        self._retain = retain
        self._release = release
        self._next = live.next
        self._turns = turns(live.next, nodes, start)
        self._at = 0
        self._slots: dict[int, Slot] = {}  # what nodes get
        self._put(start, gradients)
        self._walk = _walk(live, nodes, self._turns, self._slots)
        next(self._walk)

    @property
    def gradients(self) -> Gradients:
        """See `engines.Engine`."""
        if self.place is None:
            return ()
        slot = self._slots.get(self.place)
        if slot is None:
            return (None,) * len(self._nodes[self.place].shapes)
        return tuple(slot) if isinstance(slot, list) else (slot,)

    @property
    def order(self) -> list[int]:
        """See `engines.Engine`."""
        return self._turns[: self._at]

    @property
    def ready(self) -> set[int]:
        """See `engines.Engine`; found anew each time, since stepping doesn't need it."""
        if self.place is None:
            return set()
        waiting = waiting_for(self._next, self._turns[0])
        for place in self.order:
            for there in self._next[place]:
                waiting[there] -= 1
        ran = set(self.order)
        return {place for place, count in waiting.items() if not count and place not in ran}

    def go(self, changed: Gradients | None, stop: Stop | None) -> int | None:
        """See `engines.Engine.go`."""
        before = _is_grad()
        set_grad(False)
        try:
            place = self._walk.send(changed)
            self._at += 1
            while stop is not None and place is not None and not stop(place):
                place = self._walk.send(None)
                self._at += 1
        except BaseException:
            self.close()
            raise
        finally:
            set_grad(before)
        self.place = place
        if place is None:
            self._end(self._at)
        return place

    def finish(self, changed: Gradients | None) -> None:
        """See `engines.Engine.finish`; torch's engine goes on from the gradients as they stand.

        It gets unfinished sums as well, and adds to them what is still to come, so all is added in
        the order of one backward.
        """
        if changed is not None and self.place is not None:
            self._put(self.place, changed)
        edges: list[GradientEdge] = []
        gradients: list[torch.Tensor] = []
        for place, slot in self._slots.items():
            for number, one in enumerate(slot if isinstance(slot, list) else (slot,)):
                if one is not None:
                    edges.append(GradientEdge(self._live.nodes[place], number, None))
                    gradients.append(one)
        called = self._at
        self._slots.clear()
        try:
            if edges:
                torch.autograd.backward(edges, gradients, retain_graph=self._retain)
        except BaseException:
            self.close()
            raise
        self._end(called)
        self._at = len(self._turns)

    def close(self) -> None:
        """See `engines.Engine.close`."""
        self.done = True
        self.place = None
        self._walk.close()
        self._live, self._slots = Live(), {}
        self._release = _nothing

    give_up = close

    def _put(self, place: int, gradients: Gradients) -> None:
        """A node gets these gradients, and no others."""
        first = gradients[0]
        if len(gradients) > 1:
            self._slots[place] = list(gradients)
        elif first is not None:
            self._slots[place] = first

    def _end(self, called: int) -> None:
        live, release = self._live, self._release
        self.close()
        if not self._retain:
            turns = self._turns
            release(live, turns[:called], turns[called] if called < len(turns) else None)


def _walk(
    live: Live, records: Sequence[Node], turns: Sequence[int], slots: dict[int, Any]
) -> Generator[int | None, Gradients | None, None]:
    """Call the nodes in turn, and hand on what each gives.

    With little grace, because it runs for each of tens of thousands of nodes of some ten
    microseconds each; what it needs to know of them lies in lists, since caches are cold here.

    Args:
        live: the graph.
        records: of its nodes.
        turns: the places in the order in which they run.
        slots: the gradients that have come to each place.

    Yields:
        The place whose turn is next; None at the end. What is sent goes there instead of what came.
    """
    nodes, targets_of, numbers_of = live.nodes, live.next, live.next_inputs
    shape_of = [shapes[0] if len(shapes) == 1 else None for shapes in map(_SHAPES, records)]
    dtypes = {name: getattr(torch, name, None) for name in set(map(_DTYPE, records))}
    dtype_of = list(map(dtypes.__getitem__, map(_DTYPE, records)))
    sums: set[int] = set()  # places whose gradient is a tensor of our own making
    changed = yield turns[0]
    for place, upcoming in zip(turns, chain(turns[1:], (None,)), strict=True):
        node = nodes[place]
        slot = slots.pop(place, None)
        if slot is None or changed is not None or type(slot) is list:
            given: Any = node(*(changed or slot or (None,) * len(records[place].shapes)))
        else:
            given = node(slot)
        targets = targets_of[place]
        results: Sequence[Any] = given if type(given) is tuple else (given,)
        if len(results) != len(targets):
            results = _asked_for(node, results)
        for at, there in enumerate(targets):
            gradient = results[at]
            if gradient is None:
                continue
            shape = shape_of[there]
            if shape is None:
                _hand_one(slots, there, nodes[there], numbers_of[place][at], gradient)
                continue
            if gradient.shape != shape or gradient.dtype is not dtype_of[there]:
                gradient = _like(gradient, records[there], nodes[there])
            old = slots.get(there)
            slots[there] = gradient if old is None else _sum(old, gradient, there, sums)
        changed = yield upcoming


def _sum(old: torch.Tensor, gradient: torch.Tensor, there: int, sums: set[int]) -> torch.Tensor:
    """What has come to a place and what comes now; a sum that is our own takes it in."""
    if there in sums:
        return old.add_(gradient)
    total = added(old, gradient)
    if total.layout is torch.strided:
        sums.add(there)
    return total


def _asked_for(node: Any, results: Sequence[Any]) -> list[torch.Tensor | None]:
    """Without what is for inputs that need no gradient."""
    edges = zip(node.next_functions, results, strict=True) if node.next_functions else ()
    return [result for (there, _), result in edges if there is not None]


def _hand_one(
    slots: dict[int, Any], there: int, node: Any, number: int, gradient: torch.Tensor
) -> None:
    """A gradient for one of several outputs."""
    metadata = node._input_metadata
    gradient = fitted(gradient, metadata[number])
    gradients = slots.setdefault(there, [None] * len(metadata))
    old = gradients[number]
    gradients[number] = gradient if old is None else added(old, gradient)


def _nothing(live: Live, places: Sequence[int], upcoming: int | None) -> None:
    """Where there is nothing to release."""


def _like(gradient: torch.Tensor, record: Node, node: Any) -> torch.Tensor:
    """`fitted`, for a node with one output; asking it for its metadata takes longer than a sum."""
    gradient = gradient.sum_to_size(record.shapes[0])
    return (
        gradient
        if spell(gradient.dtype) == record.dtype
        else fitted(gradient, node._input_metadata[0])
    )


def fitted(gradient: torch.Tensor, metadata: Any) -> torch.Tensor:
    """A gradient in the shape and dtype of who receives it, as torch's engine does it.

    Example:
        >>> import torch
        >>> bias = torch.zeros(2, requires_grad=True) + 0
        >>> fitted(torch.ones(3, 2), bias.grad_fn._input_metadata[0])
        tensor([3., 3.])
    """
    shape = metadata.shape
    if list(gradient.shape) != shape:
        gradient = gradient.sum_to_size(shape)
    if gradient.dtype is not metadata.dtype:
        gradient = gradient.to(metadata.dtype)
    return gradient


def added(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """Two gradients of the same tensor; torch adds a sparse one to a dense one, not the reverse."""
    return new + old if old.layout is not torch.strided else old + new


def needs_engine(live: Live, nodes: Sequence[Node]) -> str:
    """Why a graph can only be walked back by torch's own engine; empty if it needn't be.

    Hooks on nodes are not looked for: see `hooks.py`.

    Args:
        live: the graph.
        nodes: its records, one for each place.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph.walking.autograd import walk
        >>> from pytorch_lab.graph.walking.frozen import freeze
        >>> x = torch.ones(2, requires_grad=True)
        >>> live = walk([x.exp()])
        >>> needs_engine(live, freeze(live))
        ''
        >>> handle = x.register_hook(print)
        >>> needs_engine(live, freeze(live))
        'a leaf has a hook'
    """
    if torch.is_anomaly_enabled():
        return "anomaly mode is on"
    devices = {*map(_DEVICE, nodes)} - {"cpu"}
    if devices:
        return f"a node runs on {min(devices) or 'an unknown device'}"
    if {*map(_KIND, nodes)} - {"accumulate", "builtin"}:
        name = next(one.name for one in nodes if one.kind not in ("accumulate", "builtin"))
        return f"{name} is not one of torch's own nodes"
    if any(size < 0 for shape in {*chain.from_iterable(map(_SHAPES, nodes))} for size in shape):
        return "a gradient is a nested tensor"
    if PACKED in {saved.dtype for saved in chain.from_iterable(map(_SAVED, nodes))}:
        return "a node keeps what a hook made, such as a checkpoint's"
    for node in nodes:
        if node[2] == "accumulate" and (node.hooks or hooks_of(live.nodes[node.index].variable)):
            return "a leaf has a hook"
    return ""
