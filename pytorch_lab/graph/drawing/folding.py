"""Fold what repeats: loops into steps, equal neighbours into "× 12", long sequences into ranges.

All that is known of a loop is the trace: which lines ran, in which order. A step begins where an
expression that has run in this step is about to run again, or rather, at the jump back to a line
further up that led there. So steps that took different branches are steps of one loop.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

MOST, FANOUT = 36, 24  # a frame with more in it is divided into ranges of at most so many
PERIODS = 40  # the longest pattern of leaves that is looked for
FEW = 6  # repeats up to which all stand side by side


class Bud:
    """An item of the tree while it grows.

    Attributes:
        kind: as `Look.kind`.
        title: what it is called.
        ref: what it stands for, see `Scene.refs`.
        kids: what is in it; None for a leaf.
        key: what comes back in each step of a loop: ("call", path), or the expression and the op.
        place: file, first line of the function, line; None where unknown.
        form: a number that items of equal structure share.
        span: of a range: the first item in it, the last one, and how many there are.
    """

    __slots__ = ("form", "key", "kids", "kind", "place", "ref", "span", "title")

    def __init__(
        self, kind: str, title: str, ref: int = -1, kids: list["Bud"] | None = None, key: Any = None
    ) -> None:
        self.kind, self.title, self.ref, self.kids, self.key = kind, title, ref, kids, key
        self.place: tuple[str, int, int] | None = None
        self.form = -1
        self.span: tuple[Bud, Bud, int] = (self, self, 1)


class Folder:
    """Folds frame after frame, from the inside out; remembers which structures it has met."""

    def __init__(self) -> None:
        self.forms: dict[tuple[Any, ...], int] = {}

    def form(self, bud: Bud) -> int:
        """The number of its structure: what it is, and the structures of what is in it."""
        kids = () if bud.kids is None else tuple([kid.form for kid in bud.kids])
        # a step is what it does; its number is no part of that
        title = "" if bud.kind in ("step", "range") else bud.title
        return self.forms.setdefault((bud.kind, title, *kids), len(self.forms))

    def fold(self, frame: Bud) -> None:
        """Put what repeats in a frame, whose kids are folded already, into frames of its own."""
        kids = frame.kids or []
        for kid in kids:
            kid.form = self.form(kid)
        if len(kids) > 3:
            kids = self._repeats(self._loops(kids))
            only = kids[0].kids if len(kids) == 1 and kids[0].kind == "repeat" else None
            if only and all(kid.kind != "range" for kid in only):
                kids = only  # the frame itself is the series
        frame.kids = self.divide(kids, "range")
        frame.form = self.form(frame)

    def divide(self, kids: list[Bud], kind: str) -> list[Bud]:
        """Ranges of about equal length, and ranges of ranges, so that no frame holds too many."""
        if len(kids) <= MOST:
            return kids
        depth = 2
        while FANOUT**depth < len(kids):
            depth += 1
        fanout = FANOUT
        while (fanout - 1) ** depth >= len(kids):
            fanout -= 1
        while len(kids) > fanout:
            parts = [kids[at : at + fanout] for at in range(0, len(kids), fanout)]
            kids = [part[0] if len(part) == 1 else self._frame(kind, "", part) for part in parts]
        return kids

    def _frame(self, kind: str, title: str, kids: list[Bud]) -> Bud:
        frame = Bud(kind, title, kids=kids)
        for kid in kids:
            if kid.form < 0:
                kid.form = self.form(kid)
        frame.form = self.form(frame)
        if kind == "range":
            frame.span = (kids[0].span[0], kids[-1].span[1], sum([kid.span[2] for kid in kids]))
        return frame

    def _series(self, kind: str, title: str, kids: list[Bud]) -> Bud:
        """Many of a kind: the first ones and the last one, and a range for those between."""
        if len(kids) > FEW:
            n_first = 2 if kind == "loop" else 1
            between = self._frame("range", "", self.divide(kids[n_first:-1], "range"))
            return self._frame(kind, title, [*kids[:n_first], between, kids[-1]])
        return self._frame(kind, title, kids)

    def _loops(self, kids: list[Bud]) -> list[Bud]:
        found: list[Bud] = []
        done = 0
        for cuts in loops_of(kids):
            found += kids[done : cuts[0]]
            steps = [
                self._frame("step", f"step {at}", kids[start:end])
                for at, (start, end) in enumerate(pairwise(cuts))
            ]
            found.append(self._series("loop", f"loop × {len(steps)}", steps))
            done = cuts[-1]
        return found + kids[done:]

    def _repeats(self, kids: list[Bud]) -> list[Bud]:
        forms = [kid.form for kid in kids]
        found: list[Bud] = []
        at = 0
        while at < len(kids):
            period, times = _repeat_at(forms, at, [kid.kids is None for kid in kids])
            if not times:
                found.append(kids[at])
                at += 1
                continue
            parts = [kids[at + period * i : at + period * (i + 1)] for i in range(times)]
            title = ", ".join([kid.title for kid in parts[0][:3]]) + (", …" if period > 3 else "")
            each = [
                part[0] if period == 1 else self._frame("step", f"#{place + 1}", part)
                for place, part in enumerate(parts)
            ]
            found.append(self._series("repeat", f"{title} × {times}", each))
            at += period * times
        return found


def _repeat_at(forms: list[int], at: int, is_leaf: list[bool]) -> tuple[int, int]:
    """The pattern that begins here: how long it is and how often it comes; (0, 0) without one."""
    for period in range(1, min(PERIODS, (len(forms) - at) // 3) + 1):
        if forms[at] != forms[at + period]:
            continue
        pattern = forms[at : at + period]
        times, end = 1, at + period
        while forms[end : end + period] == pattern:
            times, end = times + 1, end + period
        # three equal modules are worth a frame, three equal ops are not
        if times >= 3 and (times * period >= 12 or not any(is_leaf[at : at + period])):
            return period, times
    return 0, 0


def loops_of(kids: list[Bud]) -> Iterator[list[int]]:
    """Where the steps of each loop begin, and where its last one ends.

    Example:
        >>> line = lambda number: Bud("op", "mul", key=(number, "mul"))
        >>> list(loops_of([line(n) for n in (1, 2, 3, 2, 3, 2, 3, 4)]))
        [[1, 3, 5, 7]]
    """
    starts = [0, *_cuts(kids), len(kids)]
    keys = [{kid.key for kid in kids[a:b]} for a, b in pairwise(starts)]
    first = 0
    while first < len(keys) - 1:
        last = first
        while last + 1 < len(keys) and _are_alike(keys[last], keys[last + 1]):
            last += 1
            if _turns_over(kids, starts, keys, last):
                break
        if last - first >= 2:
            yield _trim(kids, starts[first : last + 2])
        first = max(last, first + 1)


def _cuts(kids: list[Bud]) -> list[int]:
    """Where an expression comes again: at the jump back that led to it, if one can be seen."""
    cuts: list[int] = []
    start = 0
    seen: dict[Any, int] = {}
    lines_only = _lines_recur(kids)
    for at, kid in enumerate(kids):
        before = seen.get(kid.key, -1)
        if before < 0 or not _loops(kids, before, at, lines_only):
            seen.setdefault(kid.key, at)
            continue
        start = _jump(kids, start, at, seen)
        cuts.append(start)
        seen = {kids[i].key: i for i in range(at, start - 1, -1)}  # where each came first
    return cuts


def _lines_recur(kids: list[Bud]) -> bool:
    """Whether a line ran again: only that is a sure sign. A module may well be used twice."""
    seen: dict[Any, int] = {}
    for at, kid in enumerate(kids):
        if kid.place and kid.key in seen and _loops(kids, seen[kid.key], at, True):
            return True
        seen[kid.key] = at
    return False


def _loops(kids: list[Bud], before: int, at: int, lines_only: bool) -> bool:
    """Whether what ran here and before is a loop, and not one expression that does both."""
    key = kids[at].key
    if key is None or key[0] == "call":
        return key is not None and not lines_only
    return any(kids[i].key and kids[i].key[:-1] != key[:-1] for i in range(before + 1, at))


def _jump(kids: list[Bud], start: int, at: int, seen: dict[Any, int]) -> int:
    """Where the step begins in which `at` ran again."""
    back = at - 1
    while back >= start and not _is_behind(kids[back], kids[at]):
        back -= 1
    if back < start:
        return at
    cut = next((i for i in range(back + 1, at) if kids[i].place), at)
    # a module's line is not known: it belongs to this step if it came first in the one before, too
    while cut - 1 > back and _came_before(kids, start, cut, seen):
        cut -= 1
    return cut


def _came_before(kids: list[Bud], start: int, cut: int, seen: dict[Any, int]) -> bool:
    then = seen.get(kids[cut].key, start)
    return then > start and kids[then - 1].key == kids[cut - 1].key


def _is_behind(one: Bud, other: Bud) -> bool:
    """Whether `one` stands on the line of `other` or further down in the same function."""
    if one.place is None or other.place is None or one.place[:2] != other.place[:2]:
        return False
    return one.place[2] >= other.place[2]


def _are_alike(one: set[Any], other: set[Any]) -> bool:
    """Whether two steps can be of one loop: the same line ran, or most modules are the same."""
    both = (one & other) - {None}
    return any(key[0] != "call" for key in both) or 2 * len(both) > min(len(one), len(other))


def _turns_over(kids: list[Bud], starts: list[int], keys: list[set[Any]], at: int) -> bool:
    """Whether one loop ends and another begins within a step: cuts the step there."""
    if at + 1 >= len(keys) or at < 2:
        return False
    before, after = keys[at - 1], keys[at + 1]
    a, b = starts[at], starts[at + 1]
    turn = next((i for i in range(a, b) if kids[i].key in after), b)
    if not a < turn < b or kids[a].key not in before:
        return False
    if any(kids[i].key in before for i in range(turn, b)):
        return False
    starts.insert(at + 1, turn)
    keys[at : at + 1] = [{kid.key for kid in kids[a:turn]}, {kid.key for kid in kids[turn:b]}]
    return True


def _trim(kids: list[Bud], cuts: list[int]) -> list[int]:
    """Leave out what ran before the loop and after it."""
    inner = kids[cuts[1] : cuts[-2]]
    again = {kid.key for kid in inner}
    lines = [kid.place[2] for kid in inner if kid.place]
    of = next((kid.place[:2] for kid in inner if kid.place), None)
    low, high = min(lines, default=0), max(lines, default=0)

    def belongs(kid: Bud, has: Callable[[int], bool]) -> bool:
        if kid.key in again:
            return True
        return kid.place is not None and kid.place[:2] == of and has(kid.place[2])

    first, last = cuts[0], cuts[-1]
    while first < cuts[1] - 1 and not belongs(kids[first], lambda line: line >= low):
        first += 1
    while last > cuts[-2] + 1 and not belongs(kids[last - 1], lambda line: line <= high):
        last -= 1
    return [first, *cuts[1:-1], last]
