"""The nodes of a graph called one by one, with the rules of torch's engine.

The youngest node that is ready runs first; gradients are added as they come, and fitted to the
shape and dtype of who receives them. That is quicker than `engines.Engine` where the nodes are
small. But torch gives no way to find the hooks on a node, so it is for graphs that are known to
have none, and `needs_engine` says what else only torch's own engine can do.
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

import torch

from pytorch_lab.graph.record import Node
from pytorch_lab.graph.walking.autograd import PACKED, Live
from pytorch_lab.graph.walking.engines import Gradients, Stop, waiting_for
from pytorch_lab.graph.walking.nodes import hooks_of, spell

_FIRST = float("-inf")  # the turn of an AccumulateGrad


class Direct:
    """The nodes called one by one. Attributes and methods as in `engines.Engine`.

    Args:
        live: the graph.
        nodes: its records.
        start: where to begin.
        gradients: what the first node gets.
        release: is called at the end.
    """

    def __init__(
        self,
        live: Live,
        nodes: Sequence[Node],
        start: int,
        gradients: Gradients,
        release: Callable[[], None],
    ) -> None:
        self.done = False
        self.place: int | None = start
        self.gradients: Gradients = gradients
        self.order: list[int] = []
        self._live = live
        self._nodes = nodes
        self._release = release
        self._waiting = waiting_for(live, start)
        self._turns = [(-one.sequence if one.sequence >= 0 else _FIRST, one.index) for one in nodes]
        self._single: dict[int, torch.Tensor] = {}  # what nodes with one output will get
        self._several: dict[int, list[torch.Tensor | None]] = {}  # and nodes with several
        self._sums: set[int] = set()  # places whose gradient is a tensor of our own making
        self._heap: list[tuple[float, int]] = [self._turns[start]]

    @property
    def ready(self) -> set[int]:
        """See `engines.Engine`."""
        return {place for _, place in self._heap}

    def go(self, changed: Gradients | None, stop: Stop | None) -> None:
        """See `engines.Engine.go`."""
        if changed is not None:
            self.gradients = changed
        before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)
        try:
            self._run()
            while self._heap:
                place = self._arrive()
                if stop is None or stop(place):
                    return
                self._run()
        except BaseException:
            self.close()
            raise
        finally:
            torch._C._set_grad_enabled(before)
        self._release()
        self.close()

    def close(self) -> None:
        """See `engines.Engine.close`."""
        self.done = True
        self.place, self.gradients = None, ()
        self._heap, self._live, self._release = [], Live(), lambda: None
        self._single, self._several = {}, {}

    give_up = close

    def _arrive(self) -> int:
        place = self.place = self._heap[0][1]
        gradient = self._single.pop(place, None)
        if gradient is not None:
            self.gradients = (gradient,)
        else:
            none = [None] * len(self._nodes[place].shapes)
            self.gradients = tuple(self._several.pop(place, none))
        return place

    def _run(self) -> None:
        """Call the node whose turn it is, and hand on what it gives.

        All in one function and with little grace, because it runs for each of tens of thousands of
        nodes of some ten microseconds each.
        """
        place = heappop(self._heap)[1]
        self.order.append(place)
        gradients, self.gradients = self.gradients, ()
        targets = self._live.next[place]
        given: Any = self._live.nodes[place](*gradients)
        results: Sequence[torch.Tensor | None] = given if isinstance(given, tuple) else (given,)
        if len(results) != len(targets):
            results = self._asked_for(place, results)
        records, single, waiting = self._nodes, self._single, self._waiting
        for at, there in enumerate(targets):
            gradient = results[at]
            if gradient is not None:
                record = records[there]
                shape = record.shapes[0]
                if len(record.shapes) > 1:
                    self._hand_one(there, self._live.next_inputs[place][at], gradient)
                else:
                    if gradient.shape != shape or spell(gradient.dtype) != record.dtype:
                        gradient = fitted(gradient, self._live.nodes[there]._input_metadata[0])
                    if there not in single:
                        single[there] = gradient
                    elif there in self._sums:
                        single[there].add_(gradient)
                    else:
                        self._sum(there, gradient)
            waiting[there] -= 1
            if not waiting[there]:
                heappush(self._heap, self._turns[there])

    def _asked_for(self, place: int, results: Sequence[Any]) -> list[torch.Tensor | None]:
        """Without what is for inputs that need no gradient."""
        edges = zip(self._live.nodes[place].next_functions, results, strict=True)
        return [result for (there, _), result in edges if there is not None]

    def _sum(self, there: int, gradient: torch.Tensor) -> None:
        total = self._single[there] = added(self._single[there], gradient)
        if total.layout is torch.strided:
            self._sums.add(there)

    def _hand_one(self, there: int, number: int, gradient: torch.Tensor) -> None:
        """A gradient for one of several outputs."""
        metadata = self._live.nodes[there]._input_metadata
        gradient = fitted(gradient, metadata[number])
        gradients = self._several.setdefault(there, [None] * len(metadata))
        old = gradients[number]
        gradients[number] = gradient if old is None else added(old, gradient)


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

    Hooks on nodes are not looked for: torch has no way to find them.

    Args:
        live: the graph.
        nodes: its records, one for each place.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph.walking.autograd import freeze, walk
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
    for node in nodes:
        if node.kind == "accumulate":
            if node.hooks or hooks_of(live.nodes[node.index].variable):
                return "a leaf has a hook"
        elif node.kind != "builtin":
            return f"{node.name} is not one of torch's own nodes"
        elif any(saved.dtype == PACKED for saved in node.saved):
            return f"{node.name} keeps what a hook made, such as a checkpoint's"
        if node.device != "cpu":
            return f"{node.name} runs on {node.device}"
    return ""
