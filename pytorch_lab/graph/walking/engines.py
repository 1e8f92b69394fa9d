"""Torch's own engine, stopped in front of every node.

`Engine` lets torch walk a graph back in a thread of its own that waits in a hook. Whatever torch
does in backward happens: hooks of all kinds, custom Functions, checkpoints of both sorts, second
derivatives, and the graph is freed node by node. Waking the other thread takes some ten
microseconds a stop; for graphs without hooks there is `direct.py`.
"""

import atexit
import contextvars
import threading
import weakref
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import torch

from pytorch_lab.graph.schema import Node
from pytorch_lab.graph.walking.autograd import Live
from pytorch_lab.graph.walking.hooks import our_handles
from pytorch_lab.graph.walking.turns import turns, waiting_for

Gradients = tuple[torch.Tensor | None, ...]
Stop = Callable[[int], bool]
LEAVE_S = 10  # a node that takes longer is left behind
_LEAVING: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


@atexit.register
def _wait_for_those_who_leave() -> None:
    """A thread that comes back from torch's engine while Python ends takes Python down with it."""
    for worker in list(_LEAVING):
        worker.join(LEAVE_S)


class GivenUp(Exception):
    """Ends a backward that nobody will take to its end."""


class Engine:
    """A backward of torch's that waits in front of each node.

    Attributes:
        done: whether it has come to its end.
        place: of the node that is about to run; None at the end.
        gradients: what it is about to get.
        order: places of the nodes that ran.
        ready: places of the nodes that have all their gradients, `place` among them.
    """

    def __init__(
        self, live: Live, nodes: Sequence[Node], start: int, backward: Callable[[], None]
    ) -> None:
        self.done = False
        self.place: int | None = None
        self.gradients: Gradients = ()
        self.order: list[int] = []
        self.ready: set[int] = set()
        self._live = live
        self._nodes = nodes
        self._start = start
        self._runs_free = False
        self._waiting = waiting_for(live.next, start)
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

    def go(self, changed: Gradients | None, stop: Stop | None) -> int | None:
        """Run the node at `place` and go on until `stop` says so.

        Args:
            changed: the gradients to run it with, if not the ones that came.
            stop: is asked with the place of each node that comes; None to stop at the next.

        Returns:
            The place of the node that is about to run now; None at the end.
        """
        if not self._running:  # else Ctrl-C ended the last wait, and the worker is on its way
            self._changed, self._stop, self._running = changed, stop, True
            self._go_on.put(None)
        self._wait()
        return self.place

    def finish(self, changed: Gradients | None) -> None:
        """Run the node at `place` and all others without a stop.

        Torch's engine goes on by itself, so nobody watches in which order; but that is known.

        Args:
            changed: as for `go`.
        """
        targets = self._live.next
        self._runs_free = True
        self.go(changed, lambda place: False)
        ran = set(self.order)
        self.order += [
            place for place in turns(targets, self._nodes, self._start) if place not in ran
        ]

    def close(self) -> None:
        """End it here and wait for the end."""
        self.give_up()
        self._worker.join()

    def give_up(self) -> None:
        """End it at the next node at the latest; does not wait, but Python's own end will."""
        self._given_up = True
        _LEAVING.add(self._worker)
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
        with our_handles():
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
        if self._runs_free:
            return
        for there in self._live.next[place]:
            self._waiting[there] -= 1
            if not self._waiting[there]:
                self._expect(there)
