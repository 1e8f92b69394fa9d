"""Two ways to walk a graph back and stop in front of every node.

`Engine` lets torch's own engine do it, in a thread of its own that waits in a hook. Whatever torch
does in backward happens: hooks of all kinds, custom Functions, checkpoints of both sorts, second
derivatives, and the graph is freed node by node. Waking the other thread takes some ten
microseconds a stop.

`Direct` calls the nodes itself, one after the other, with the engine's own rules: the youngest node
that is ready first, gradients added as they come and fitted to the shape and dtype of who receives
them. That is quicker where the nodes are small, but torch gives no way to find the hooks on a node,
so it is for graphs that are known to have none.
"""

import contextvars
import threading
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from queue import SimpleQueue
from typing import Any

import torch

from pytorch_lab.graph.autograd import PACKED, Live, hooks_of, spell
from pytorch_lab.graph.record import Node

Gradients = tuple[torch.Tensor | None, ...]
Stop = Callable[[int], bool]


class GivenUp(Exception):
    """Ends a backward that nobody will take to its end."""


def waiting_for(live: Live, start: int) -> dict[int, int]:
    """How many gradients each node behind `start` gets before it is ready.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph.autograd import walk
        >>> x = torch.ones(2, requires_grad=True)
        >>> waiting_for(walk([x * x]), 0)
        {0: 0, 1: 2}
    """
    counts = {start: 0}
    stack = [start]
    while stack:
        for there in live.next[stack.pop()]:
            if there in counts:
                counts[there] += 1
            else:
                counts[there] = 1
                stack.append(there)
    return counts


class Engine:
    """A backward of torch's that waits in front of each node; see the top of this file.

    Attributes:
        done: whether it has come to its end.
        place: of the node that is about to run; None at the end.
        gradients: what it is about to get.
        order: places of the nodes that ran.
        ready: places of the nodes that have all their gradients, `place` among them.
    """

    def __init__(self, live: Live, start: int, backward: Callable[[], None]) -> None:
        self.done = False
        self.place: int | None = None
        self.gradients: Gradients = ()
        self.order: list[int] = []
        self.ready: set[int] = set()
        self._live = live
        self._waiting = waiting_for(live, start)
        self._handles: list[Any] = []
        self._stop: Stop | None = None
        self._changed: Gradients | None = None
        self._given_up = False
        self._running = True
        self._error: BaseException | None = None
        self._arrived: SimpleQueue[None] = SimpleQueue()  # from the worker
        self._go_on: SimpleQueue[None] = SimpleQueue()  # to the worker
        self._expect(start)
        self._worker = threading.Thread(
            target=contextvars.copy_context().run,
            args=(self._work, backward),
            daemon=True,  # a learner who closes the notebook in the middle shall not wait for it
        )
        self._worker.start()
        self._wait()

    def go(self, changed: Gradients | None, stop: Stop | None) -> None:
        """Run the node at `place` and go on until `stop` says so.

        Args:
            changed: the gradients to run it with, if not the ones that came.
            stop: is asked with the place of each node that comes; None to stop at the next.
        """
        if not self._running:  # else Ctrl-C ended the last wait, and the worker is on its way
            self._changed, self._stop, self._running = changed, stop, True
            self._go_on.put(None)
        self._wait()

    def close(self) -> None:
        """End it here and wait for the end."""
        self.give_up()
        self._worker.join()

    def give_up(self) -> None:
        """End it at the next node at the latest; does not wait."""
        self._given_up = True
        self._go_on.put(None)

    def _wait(self) -> None:
        self._arrived.get()
        self._running = False
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _work(self, backward: Callable[[], None]) -> None:
        try:
            with torch.autograd.set_multithreading_enabled(False):
                backward()
        except BaseException as error:  # noqa: BLE001 - raised again in the learner's thread
            if not self._given_up:
                self._error = error
        finally:
            for handle in self._handles:
                handle.remove()
            self._handles, self._live, self.place, self.gradients = [], Live(), None, ()
            self.ready.clear()
            self.done = True
            self._arrived.put(None)

    def _expect(self, place: int) -> None:
        """The node at `place` has all its gradients: it will come by soon."""
        self.ready.add(place)
        hook = self._hook(place)
        self._handles.append(self._live.nodes[place].register_prehook(hook))

    def _hook(self, place: int) -> Callable[[Gradients], Gradients | None]:
        def arrive(gradients: Gradients) -> Gradients | None:
            if place not in self.ready or threading.current_thread() is not self._worker:
                return None  # another backward over the same nodes
            if self._stop is None or self._stop(place):
                self.place, self.gradients = place, gradients
                self._arrived.put(None)
                self._go_on.get()
            if self._given_up:
                raise GivenUp
            self._pass(place)
            changed, self._changed = self._changed, None
            return changed

        return arrive

    def _pass(self, place: int) -> None:
        """The node at `place` runs now; who waited for it alone is ready then."""
        self.ready.discard(place)
        self.order.append(place)
        self.place, self.gradients = None, ()
        for there in self._live.next[place]:
            self._waiting[there] -= 1
            if not self._waiting[there]:
                self._expect(there)


class Direct:
    """The nodes called one by one; see the top of this file. Attributes as in `Engine`.

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
        """See `Engine`."""
        return {place for _, place in self._heap}

    def go(self, changed: Gradients | None, stop: Stop | None) -> None:
        """See `Engine.go`."""
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
        """See `Engine.close`."""
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
        results: Any = self._live.nodes[place](*gradients)
        if type(results) is not tuple:
            results = (results,)
        if len(results) != len(targets):
            results = self._asked_for(place, results)
        records, single, waiting = self._nodes, self._single, self._waiting
        for at, there in enumerate(targets):
            gradient = results[at]
            if gradient is not None:
                record = records[there]
                if len(record.shapes) > 1:
                    self._hand_one(there, self._live.next_inputs[place][at], gradient)
                else:
                    if gradient.shape != record.shapes[0] or spell(gradient.dtype) != record.dtype:
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

    def _asked_for(self, place: int, results: Gradients) -> list[torch.Tensor | None]:
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


_FIRST = float("-inf")


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
        >>> from pytorch_lab.graph.autograd import freeze, walk
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
