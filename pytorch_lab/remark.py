"""A remark: one thing that a person should know about what was measured.

The records of the rooms hold remarks, problems first; their texts and pictures show them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from pytorch_lab.words import wrap


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that a person should know."""

    code: str  # "sign", "stale", "waits", …: the same for the same trouble
    level: str  # "problem": most likely a mistake; "note": worth knowing
    text: str  # what is so, with numbers, and what to do

    def __str__(self) -> str:
        return self.text


R = TypeVar("R", bound=Remark)


def problems(remarks: Iterable[R]) -> tuple[R, ...]:
    """Those that are most likely mistakes.

    Example:
        >>> said = [Remark("a", "note", "Odd."), Remark("b", "problem", "Wrong.")]
        >>> [str(one) for one in problems(said)], [str(one) for one in problems_first(said)]
        (['Wrong.'], ['Wrong.', 'Odd.'])
    """
    return tuple(one for one in remarks if one.level == "problem")


def problems_first(remarks: Iterable[R]) -> tuple[R, ...]:
    """All of them; of two of a kind the order stays."""
    return tuple(sorted(remarks, key=lambda one: one.level != "problem"))


def remark_lines(remarks: Iterable[Remark]) -> Iterator[str]:
    """As text: a cross before a problem, a dot before a note.

    Example:
        >>> print(*remark_lines([Remark("b", "problem", "Wrong."), Remark("a", "note", "Odd.")]))
        ✗ Wrong. · Odd.
    """
    for one in remarks:
        sign = "✗" if one.level == "problem" else "·"
        yield from wrap(one.text, head=f"{sign} ", indent="  ")
