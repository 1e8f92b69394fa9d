"""The visible checks of a notebook: registered by their cell, run in the learner's kernel.

    >>> @visible("00.1", hints=("Look.", "Count the dots.", "There are three."))
    ... def check(expect):
    ...     expect.equal(3, 3, "Three dots.", name="dots")
    >>> print(run("00.1"))
    00.1 ✓ passed

A check is a plain function. Names in it are those of the notebook, looked up when it runs, so it
always sees the latest answer. Whatever the answer does, `run` returns a verdict:

| state  | when                                                                        |
| ------ | --------------------------------------------------------------------------- |
| open   | a name is missing, or the answer still raises NotImplementedError           |
| failed | the check found it wrong                                                    |
| raised | it raised: the error, and the learner's own line                            |
| passed | the check went through                                                      |

This is feedback and nothing else: it runs where the learner's code runs. Points come from values
that `reveal` shows, compared outside.
"""

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytorch_lab import surroundings
from pytorch_lab.checks.draws import start_of
from pytorch_lab.checks.expect import Expect
from pytorch_lab.checks.verdict import Verdict, judge
from pytorch_lab.errors import UsageError

_ID = re.compile(r"[\w.-]+")
_MAX_PRINTED = 4_000  # characters


@dataclass(frozen=True, slots=True)
class Check:
    """A registered visible check."""

    exercise: str
    function: Callable[[Expect], None]
    hints: tuple[str, ...]


_checks: dict[str, Check] = {}


def visible(
    exercise: str, *, hints: Sequence[str] = ()
) -> Callable[[Callable[[Expect], None]], Callable[[Expect], None]]:
    """Register the decorated function as the visible check of an exercise.

    Example:
        >>> @visible("00.2", hints=("Count.", "Count again.", "It is 2."))
        ... def check(expect):
        ...     expect.equal(1 + 1, 3, "Two ones make two.", name="1 + 1")
        >>> print(run("00.2"))
        00.2 ✗ not yet: Two ones make two. (1 + 1: expected 3, got 2)

    Args:
        exercise: its id for people, such as "03.2" for the answer cell `03-2`; else the answer
            cell's grade_id, such as "mean".
        hints: three sentences, each helping more than the one before; or none.

    Raises:
        UsageError: the id or the hints are not of this form.
    """
    if not isinstance(exercise, str) or not _ID.fullmatch(exercise):
        raise UsageError(
            f"visible(exercise) expected an id like '03.2' or 'mean', got {exercise!r:.40}; use "
            "letters, digits, '.', '-' and '_'."
        )
    given = tuple(hints) if not isinstance(hints, str) else (hints,)
    if len(given) not in (0, 3) or not all(isinstance(h, str) and h.strip() for h in given):
        raise UsageError(
            f"visible({exercise!r}, hints=...) expected three sentences of growing help, "
            f"got {hints!r:.60}."
        )

    def register(function: Callable[[Expect], None]) -> Callable[[Expect], None]:
        _checks[exercise] = Check(exercise, function, given)
        return function

    return register


def registered(exercise: str) -> Check:
    """The check of an exercise.

    Raises:
        UsageError: none was registered under this id.
    """
    if exercise not in _checks:
        known = ", ".join(sorted(_checks)) or "none so far"
        raise UsageError(
            f"expected an exercise whose check has been run here ({known}), "
            f"got {exercise!r:.40}; run the cell that begins with @checks.visible(...)."
        )
    return _checks[exercise]


def run(exercise: str) -> Verdict:
    """Run the visible check of an exercise and say what it found.

    Whatever the answer raises ends up in the verdict, also an interrupt of the kernel. The shared
    random generators start from the exercise's seed and are put back afterwards, as are grad mode,
    the default dtype and the warning filters, so that pressing Check changes nothing else.

    Raises:
        UsageError: no check was registered under this id.
    """
    check = registered(exercise)
    printed = _Printed()
    try:
        with _as_found(exercise, printed), contextlib.redirect_stdout(printed):
            check.function(Expect())
    except BaseException as error:  # noqa: BLE001 - SystemExit and the learner's own kinds too
        return judge(exercise, check.function, error, printed.text())
    return Verdict(exercise, "passed", printed=printed.text())


class _Printed(io.TextIOBase):
    """Keeps the first characters of what is printed, however much it is."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._left = _MAX_PRINTED

    def write(self, text: str) -> int:
        if self._left > 0:
            self._parts.append(text[: self._left])
            self._left -= len(text)
        return len(text)

    def warn(self, message: Warning | str, category: type[Warning], *_where: Any) -> None:
        """What `warnings` calls for each warning: it is shown like a printed line."""
        first = next(iter(str(message).splitlines()), "")
        self.write(f"{category.__name__}: {first}\n")

    def text(self) -> str:
        return "".join(self._parts).rstrip() + ("\n… and more" if self._left < 0 else "")


@contextlib.contextmanager
def _as_found(exercise: str, printed: _Printed) -> Iterator[None]:
    """Put back what a check or an answer may change for everybody."""
    with surroundings.kept(), warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = printed.warn
        surroundings.seed(start_of(exercise))
        yield
