"""What is different in this process while a recording runs, and back as it was afterwards.

Several recordings may run at once, one in another or in threads of their own, and may end in any
order: so a change is made by the first of them and taken back by the last.
"""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

MOST_DEPTH = 5000  # calls that are allowed in addition, at most


class Meanwhile:
    """A change that holds while at least one `with` of it is open.

    Args:
        change: makes it, and returns what takes it back.

    Example:
        >>> class Lamp:
        ...     on = False
        >>> def switch():
        ...     Lamp.on = True
        ...     return lambda: setattr(Lamp, "on", False)
        >>> lit = Meanwhile(switch)
        >>> with lit:
        ...     with lit:
        ...         pass
        ...     Lamp.on
        True
        >>> Lamp.on
        False
    """

    def __init__(self, change: Callable[[], Callable[[], None]]) -> None:
        self._change = change
        self._back: Callable[[], None] | None = None
        self._open = 0
        self._lock = threading.Lock()

    def __enter__(self) -> "Meanwhile":
        with self._lock:
            self._open += 1
            if self._back is None:
                self._back = self._change()
        return self

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            self._open -= 1
            if not self._open and self._back is not None:
                self._back()
                self._back = None

    def again(self) -> None:
        """Take the change back and make it anew, if one `with` is open: things are different."""
        with self._lock:
            if self._back is not None:
                self._back()
                self._back = self._change()


def put(module: Any, name: str, new: Any) -> Callable[[], None]:
    """Put something else in a module's place; returns what puts the old back."""
    old = getattr(module, name)
    setattr(module, name, new)
    return lambda: setattr(module, name, old)


def _more_depth() -> Callable[[], None]:
    limit = sys.getrecursionlimit()
    more = limit + min(limit, MOST_DEPTH)
    sys.setrecursionlimit(more)

    def back() -> None:
        if sys.getrecursionlimit() == more:  # else the reader's code has set another
            sys.setrecursionlimit(limit)

    return back


# Hooks and modes add calls of their own to each call of a module and of torch. What is just deep
# enough to run alone shall run recorded, too.
deeper = Meanwhile(_more_depth)


class _Threads:
    """How many threads have been started."""

    started = 0


def threads_started() -> int:
    """How many threads were started while a recording ran; the difference tells of one recording.

    Those of torch's own, such as a compiler's, are left out. Threads are noticed by what Python
    calls when one begins, for profilers.
    """
    return _Threads.started


def _notice_threads() -> Callable[[], None]:
    before = threading.getprofile()

    def begins(frame: FrameType, event: Any, arg: Any) -> Any:
        thread = frame.f_locals.get("self")
        runs = getattr(thread, "_target", None) or getattr(thread, "run", None)
        if not (getattr(runs, "__module__", None) or "").startswith("torch."):
            _Threads.started += 1
        sys.setprofile(before)
        return before(frame, event, arg) if before is not None else None

    threading.setprofile(begins)

    def back() -> None:
        if threading.getprofile() is begins:
            threading.setprofile(before)  # pyright: ignore[reportArgumentType]

    return back


noticing_threads = Meanwhile(_notice_threads)
