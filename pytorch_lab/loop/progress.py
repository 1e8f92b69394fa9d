"""A progress bar for a training loop: a loss that is drawn while it falls, and a Stop that is kind.

    for x, y in (bar := loop.progress(loader, "epoch 1")):
        ...
        bar.log(loss=loss)
    bar.stopped        # True if Stop ended it; what was trained is kept

Works where there is no front end to talk to: in notebooks one output is replaced by the next (plain
HTML), in a terminal one line, in a file a line at the end. What it looks like owes to tqdm, and the
curve below the bar to fastprogress.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from pytorch_lab.errors import UsageError
from pytorch_lab.loop.progress_screen import Screen, screen
from pytorch_lab.loop.progress_text import Bar
from pytorch_lab.loop.series import Series
from pytorch_lab.loop.stopping import interrupts

T = TypeVar("T")
SHARE = 20  # drawing takes at most one part in so many of the time


class _Open(threading.local):
    """The loops that run now in this thread, the innermost last."""

    def __init__(self) -> None:
        self.loops: list[Progress[Any]] = []


_open = _Open()


class Progress(Generic[T]):
    """A loop with a bar; made by `progress`."""

    def __init__(
        self, items: Iterable[T], label: str, total: int | None, clock: Callable[[], float],
        file: Any,
    ) -> None:  # fmt: skip
        self.items, self.label, self.total = items, label, total
        self.done = 0  # turns that came to their end
        self.stopped = False
        self.asked = self.cut = False  # set by the interrupt's handler
        self._clock, self._file = clock, file
        self._series: dict[str, Series] = {}
        self._trail: dict[str, Series] = {}  # for the curve: with what loops inside logged
        self._told: set[str] = set()  # names of series that are known to be broken
        self._started_s = self._next_s = 0.0
        self._screen: Screen | None = None
        self._root: Progress[Any] = self  # the outermost loop, which draws
        self._inside: Progress[Any] | None = None

    @property
    def history(self) -> dict[str, list[float]]:
        """What was logged, by name."""
        return {name: list(series.settled()) for name, series in self._series.items()}

    def __len__(self) -> int:
        if self.total is None:
            raise TypeError("this progress loop has no length: its items have none")
        return self.total

    def __iter__(self) -> Iterator[T]:
        try:
            self._begin()
            interrupts.enter(self)
            yield from self._turns()
        finally:
            interrupts.leave(self)
            self._end()

    def log(self, **numbers: Any) -> None:
        """Say numbers of this turn: `bar.log(loss=loss)`; the first name is drawn as a curve.

        Args:
            numbers: numbers, or tensors of one number, whose graph is not kept.

        Raises:
            UsageError: one of them is none.
        """
        for name, number in numbers.items():
            for log in (self._series, self._root._trail):
                log.setdefault(name, Series(name)).add(number, self.done + 1)
            if self._series[name].broken and name not in self._told:
                self._told.add(name)
                self._draw(now=True)

    # -------------------------------------------------------------------------------- the loop

    def _turns(self) -> Iterator[T]:
        iterator = iter(self.items)
        while not self.asked:
            try:
                item = next(iterator)
            except StopIteration:
                break
            except Exception:
                if self.asked:  # the same Ctrl+C ended a worker that the loader waits for
                    break
                raise
            if self.asked:  # it came while the data were fetched: no turn with them
                break
            yield item
            self.done += not self.cut
            if self._clock() >= self._root._next_s:
                self._draw(now=True)

    def _begin(self) -> None:
        self.done, self.stopped, self.asked, self.cut = 0, False, False, False
        self._series, self._told = {}, set()
        self._started_s = self._clock()
        self._inside = None
        if self in _open.loops:  # gone through inside itself: the one that began last is drawn
            del _open.loops[_open.loops.index(self) :]
        if _open.loops:
            self._root = _open.loops[0]
            _open.loops[-1]._inside = self
        else:
            self._root, self._trail, self._screen = self, {}, screen(self._file)
        _open.loops.append(self)
        self._draw(now=self._root is self)

    def _end(self) -> None:
        self.stopped = self.asked
        if self in _open.loops:
            _open.loops.remove(self)
        self._draw(last=self._root is self)

    # ------------------------------------------------------------------------------- the picture

    def _bar(self) -> Bar:
        series = {name: one.settled() for name, one in self._series.items()}
        broken = {name: one.broken for name, one in self._series.items() if one.broken}
        elapsed_s = self._clock() - self._started_s
        return Bar(
            self.label, self.done, self.total, elapsed_s, series, broken, stopped=self.stopped
        )

    def _draw(self, *, now: bool = False, last: bool = False) -> None:
        """Draw the outermost loop with those inside it, unless it was drawn just now."""
        root = self._root
        began_s = self._clock()
        if root._screen is None or not (now or last or began_s >= root._next_s):
            return
        bars, loop = [], root
        while loop is not None:
            bars.append(loop._bar())
            loop = loop._inside
        trail = {name: one.settled() for name, one in root._trail.items()}
        try:
            root._screen.draw(bars, trail, last=last)
        except (OSError, ValueError):  # closed, or a full disk: no reason to end a training
            root._screen = None
            return
        cost_s = self._clock() - began_s
        root._next_s = began_s + cost_s + max(root._screen.every_s, SHARE * cost_s)


def progress(
    items: Iterable[T],
    label: str = "",
    *,
    total: int | None = None,
    file: Any = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Progress[T]:
    """A progress bar around a loader, a list, a range; stopping it keeps what was trained.

    Example:
        >>> import sys
        >>> bar = progress([3.0, 2.0], "epoch 1", file=sys.stdout, clock=lambda: 0)
        >>> for number in bar:
        ...     bar.log(loss=number)
        epoch 1 2/2 100% loss 2 (0 s)
        >>> bar.done, bar.stopped, bar.history
        (2, False, {'loss': [3.0, 2.0]})

    The first Stop (a notebook's button, Ctrl+C) lets the turn in progress come to its end, so that
    no update is left half done, then ends this loop and the progress loops around it as if their
    data were over; the next statements run. A plain `for` around it knows nothing of that: write
    `if bar.stopped: break` there, or put a `progress` around the epochs too. A second Stop before
    the turn ended, or within a second, raises KeyboardInterrupt as ever. In another thread than the
    main one Stop is not seen.

    Args:
        items: what to go through.
        label: what the turns are called, such as "epoch 1".
        total: how many there are, where `len(items)` does not say.
        file: where to write instead of the notebook's output or stderr.
        clock: seconds, for tests.

    Raises:
        UsageError: `items` can't be gone through, or `total` is no number.
    """
    if not isinstance(items, Iterable):
        raise UsageError(
            "loop.progress(items) expected something to go through, such as a DataLoader, "
            f"got {items!r:.60}."
        )
    if total is None:
        try:
            total = len(items)  # type: ignore[arg-type]
        except Exception:  # noqa: BLE001 - none, or an error of its own, which no bar should end on
            total = None
    if total is not None and (isinstance(total, bool) or not isinstance(total, int) or total < 0):
        raise UsageError(
            f"loop.progress(...) expected `total` as a whole number, got {total!r:.60}."
        )
    if file is not None and not hasattr(file, "write"):
        raise UsageError(
            f"loop.progress(...) expected `file` as an open file, got {file!r:.60}; "
            'give open("log.txt", "w").'
        )
    return Progress(items, str(label), total, clock, file)
