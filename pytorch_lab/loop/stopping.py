"""Stop, without half an update: the first interrupt ends a loop between two turns.

While a progress loop runs in the main thread, SIGINT (a notebook's Stop button, Ctrl+C) is noted
and the turn in progress goes on to its end; then the loop ends as if its data were over. A second
one that comes before that, or within a moment, does what it always did: KeyboardInterrupt.

Workers of a DataLoader get the same signal, since a terminal and Jupyter send it to the whole group
of processes. Those that were forked meanwhile leave it alone: their loader will end them.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import torch

MOMENT_S = 1.0


class Stoppable(Protocol):
    """What can be asked to stop; it looks at `asked` when a turn ends."""

    asked: bool
    cut: bool  # its turn in progress is a loop that was asked too, such as an epoch of batches


class _Interrupts:
    """The loops that run now, the innermost last, and the handler that was there before."""

    def __init__(self) -> None:
        self.loops: list[Stoppable] = []
        self.before: Any = None
        self.process = 0
        self.last_s = -MOMENT_S
        self.clock: Callable[[], float] = time.monotonic

    def enter(self, loop: Stoppable) -> None:
        """A loop begins."""
        if threading.current_thread() is not threading.main_thread():
            return
        if not self.loops and not self._install():
            return
        self.loops.append(loop)

    def leave(self, loop: Stoppable) -> None:
        """It ended, however it did."""
        known = len(self.loops)
        self.loops = [one for one in self.loops if one is not loop]
        if known and not self.loops and signal.getsignal(signal.SIGINT) == self.handle:
            signal.signal(signal.SIGINT, self.before)

    def _install(self) -> bool:
        before = signal.getsignal(signal.SIGINT)
        if before is signal.SIG_IGN or before is None:  # nohup, or a handler that is not Python's
            return False
        self.before, self.process = before, os.getpid()
        signal.signal(signal.SIGINT, self.handle)
        return True

    def handle(self, number: int, frame: Any) -> None:
        """SIGINT came."""
        if os.getpid() != self.process and torch.utils.data.get_worker_info() is not None:
            return
        now_s = self.clock()
        again = now_s - self.last_s < MOMENT_S
        self.last_s = now_s
        if os.getpid() != self.process or not self.loops or again or self.loops[-1].asked:
            self._as_before(number, frame)
            return
        for loop in self.loops:
            loop.asked, loop.cut = True, loop is not self.loops[-1]

    def _as_before(self, number: int, frame: Any) -> None:
        if callable(self.before):
            self.before(number, frame)
        else:
            signal.default_int_handler(number, frame)


interrupts = _Interrupts()
