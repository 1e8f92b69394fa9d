"""How far a run is: how many of how many, how fast, and how long it will still take.

    ━━━━━━━━━━━━━╸              12 of 30 · 41 a minute · 26 s left · Ada

Counted are the submissions that are run; what is known or cannot be read is not.

On a terminal one line that moves; elsewhere, as in a log, a line now and then. What it says goes to
stderr, so that what a command prints stays its own.
"""

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task
from rich.table import Column
from rich.text import Text

from pytorch_lab.grading.trouble import one_line

QUIET_S = 15.0  # between two lines of a log
_PARTS = 10  # of the whole, after each of which a log gets a line


class Meter:
    """Shows the progress of one run.

    Args:
        stream: where it is shown; stderr by default.
        clock: seconds, for the rate.

    Example:
        >>> times = iter([0.0, 30.0])
        >>> with Meter(sys.stdout, clock=lambda: next(times, 30.0)) as meter:
        ...     meter.begin(4)
        ...     meter.heard("ada")
        1 of 4 · 2 a minute · 1:30 left
    """

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = Console(file=stream or sys.stderr, highlight=False)
        self._clock = clock
        self._lock = threading.Lock()
        self._total = self._done = 0
        self._started = self._said_at = 0.0
        self._said = 0  # how many when the last line was said
        self._student = ""
        self._bar: Progress | None = None

    def begin(self, total: int) -> None:
        """Start: so many submissions are to be run."""
        self._total, self._started = total, self._clock()
        self._said_at = self._started
        if total and self._console.is_terminal and not self._console.is_dumb_terminal:
            self._bar = Progress(
                BarColumn(bar_width=24),
                _Figures(self, table_column=Column(no_wrap=True, ratio=1, overflow="ellipsis")),
                console=self._console,
                expand=True,
                refresh_per_second=4,
            )
            self._bar.add_task("", total=total)
            self._bar.start()

    def heard(self, student: str, *_: object) -> None:
        """One submission more is through; may be called from any thread, with more to tell."""
        with self._lock:
            self._done, self._student = self._done + 1, one_line(student)
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], completed=self._done)
            elif self._is_time():
                self._said, self._said_at = self._done, self._clock()
                print(self.figures(), file=self._console.file, flush=True)

    def _is_time(self) -> bool:
        enough = self._done - self._said >= max(self._total / _PARTS, 1)
        return enough or self._done == self._total or self._clock() - self._said_at >= QUIET_S

    def figures(self) -> str:
        """How many, how fast, how long still."""
        took = self._clock() - self._started
        parts = [f"{self._done} of {self._total}"]
        if not self._done:
            parts.append("starting, the solutions first")
        elif took > 0:
            rate = self._done / took
            parts.append(f"{60 * rate:.3g} a minute")
            if self._done < self._total:
                parts.append(f"{_spell((self._total - self._done) / rate)} left")
        return " · ".join(parts)

    def line(self) -> str:
        """The figures, and who came last."""
        return " · ".join(filter(None, [self.figures(), self._student]))

    def __enter__(self) -> "Meter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the last line on the terminal, and the cursor below it."""
        if self._bar is not None:
            self._student = ""
            self._bar.stop()
            self._bar = None


class _Figures(ProgressColumn):
    """The meter's line, as a column that is drawn anew with the bar."""

    def __init__(self, meter: Meter, table_column: Column) -> None:
        super().__init__(table_column=table_column)
        self.meter = meter

    def render(self, task: Task) -> Text:
        return Text(self.meter.line(), no_wrap=True, overflow="ellipsis")


def _spell(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02} h"
