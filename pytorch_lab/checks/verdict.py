"""What a visible check found, in words and with the learner's own line.

    >>> print(Verdict("03.2", "failed", "A plain list hides its layers."))
    03.2 ✗ not yet: A plain list hides its layers.

An error is told from where the learner can act: the innermost line of their own cells, found in
the traceback by the notebook's namespace, not by file names, which differ between front ends.
"""

import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import NamedTuple

from pytorch_lab.checks.expect import WrongAnswer
from pytorch_lab.errors import CheckFailed

WORDS = {
    "open": ("○", "open"),
    "failed": ("✗", "not yet"),
    "raised": ("✗", "error"),
    "passed": ("✓", "passed"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the learner's own code."""

    number: int  # in its cell, from 1
    source: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a visible check found."""

    exercise: str
    state: str  # "open", "failed", "raised" or "passed"
    message: str = ""  # all there is to say, as one paragraph with `code` spans
    why: str = ""  # the message without what `evidence` and `line` say
    evidence: str = ""  # the smallest difference, or what the error says
    line: Line | None = None  # where the learner's code raised
    printed: str = ""  # what the answer printed meanwhile

    def __str__(self) -> str:
        icon, word = WORDS[self.state]
        return f"{self.exercise} {icon} {word}" + (f": {self.message}" if self.message else "")


class _Step(NamedTuple):
    """One frame of a traceback."""

    code: CodeType
    frame: FrameType
    line: Line


def judge(
    exercise: str, check: Callable[..., None], error: BaseException, printed: str = ""
) -> Verdict:
    """The verdict on an answer for which the check raised `error`."""
    if isinstance(error, CheckFailed):
        why, evidence = str(error), ""
        if isinstance(error, WrongAnswer):
            why, evidence = error.why, error.evidence
        return Verdict(exercise, "failed", str(error), why, evidence, printed=printed)
    steps = list(_steps(error))
    asked = [step for step in steps if _belongs(step.code, check.__code__)]
    own = [
        step
        for step in steps
        if step.frame.f_globals is check.__globals__ and not _belongs(step.code, check.__code__)
    ]
    absent = _absent(error, steps, asked, own)
    if absent:
        return Verdict(exercise, "open", absent, absent, printed=printed)
    line = own[-1].line if own else None
    why, evidence = _tell(error, line, asked)
    full = why
    if line and line.source:
        full += f", `{_cut(line.source, 80)}`"
    full += f": {evidence}" if evidence else "."
    return Verdict(exercise, "raised", full, why, evidence, line, printed)


def _absent(error: BaseException, steps: list[_Step], asked: list[_Step], own: list[_Step]) -> str:
    """What of the answer is not there yet; "" when it is all there."""
    if type(error) is NameError and asked and steps[-1] is asked[-1]:
        return f"The check looks for `{error.name}`. Run the cell that defines it."
    # torch raises NotImplementedError too; a stub raises it from a line of the learner's own.
    if isinstance(error, NotImplementedError) and own and steps[-1] is own[-1]:
        number = own[-1].line.number
        return f"Your turn: line {number} of the answer still raises `NotImplementedError`."
    return ""


def _tell(error: BaseException, line: Line | None, asked: list[_Step]) -> tuple[str, str]:
    """Which error it is and where, and what it says."""
    if isinstance(error, KeyboardInterrupt):
        where = f"in your line {line.number}" if line else "while the check ran"
        return f"Interrupted {where}", "is there a loop that never ends?"
    kind = type(error).__name__
    if line:
        return f"{kind} in your line {line.number}", _says(error)
    where = f" at `{_cut(asked[-1].line.source, 80)}`" if asked and asked[-1].line.source else ""
    return f"{kind} while the check used your answer{where}", _says(error)


def _says(error: BaseException) -> str:
    """What an error says; the error may be of the learner's own making."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a __str__ that raises
        return ""
    return _cut(" ".join(text.split()), 300)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _belongs(code: CodeType, check: CodeType) -> bool:
    """Whether code is the check function or stands inside it."""
    name = check.co_qualname
    inside = code.co_qualname == name or code.co_qualname.startswith(f"{name}.<locals>.")
    return inside and code.co_filename == check.co_filename


def _steps(error: BaseException) -> Iterator[_Step]:
    step = error.__traceback__
    while step is not None:
        frame, number = step.tb_frame, step.tb_lineno
        source = linecache.getline(frame.f_code.co_filename, number, frame.f_globals).strip()
        yield _Step(frame.f_code, frame, Line(number, source))
        step = step.tb_next
