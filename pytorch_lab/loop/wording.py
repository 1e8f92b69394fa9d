"""How numbers and turns are said."""

from collections.abc import Iterable

from pytorch_lab.loop.record import LoopRun
from pytorch_lab.words import count


def short(number: float) -> str:
    """A number in three digits.

    Example:
        >>> short(0.123456), short(12345.6), short(20.0)
        ('0.123', '1.23e+04', '20')
    """
    return f"{number:.3g}"


def turns_said(turns: Iterable[int], run: LoopRun) -> str:
    """In which turns, in words.

    Example:
        >>> from pytorch_lab.loop import run
        >>> turns_said([2], run(turns=3)), turns_said([1, 2, 3], run(turns=3))
        ('in turn 2', 'in every turn')
    """
    found = sorted(set(turns))
    if len(found) == 1:
        return f"in turn {found[0]}"
    if len(found) >= run.done > 1:
        return "in every turn"
    if found == list(range(found[0], run.done + 1)):
        return f"in every turn from {found[0]} on"
    return f"in {len(found)} of {count(run.done, 'turn')}"
