"""A curve as text: a strip of bars for each group, the steps where it turns, and the remarks."""

import itertools
from collections.abc import Iterator, Sequence

from pytorch_lab import remark, words
from pytorch_lab.optim.curve import LrCurve, Remark

STRIP = 60  # columns
MOST_GROUPS = 4
MOST_TURNS = 8
NAME = 12


def render(curve: LrCurve) -> str:
    """The whole text, at most 80 columns wide.

    Example:
        >>> curve = LrCurve("ConstantLR()", 2, ("group 0",), ((0.1, 0.2),), (0.2,), (0.2,))
        >>> print(render(curve))
        ConstantLR(): 2 steps
        group 0     ▄█  0.1 to 0.2
        <BLANKLINE>
        step                 0           1
        group 0            0.1         0.2
    """
    lines = words.wrap(headline(curve), indent="  ")
    shown = range(min(len(curve.rates), MOST_GROUPS))
    for group in shown:
        lines.append(_strip_line(curve, group))
    if len(curve.rates) > MOST_GROUPS:
        lines.append(f"and {words.count(len(curve.rates) - MOST_GROUPS, 'group')} more")
    lines.extend(_table(curve, shown))
    lines.extend(remark_lines(curve.remarks))
    return "\n".join(line.rstrip() for line in lines)


def headline(curve: LrCurve) -> str:
    """What was traced and how far."""
    came = len(curve.rates[0]) if curve.rates else 0
    steps = words.count(curve.steps, "step")
    if came < curve.steps:
        steps = f"{came:,} of {steps}"
    after = f", after {words.count(curve.began, 'call')} of step()" if curve.began else ""
    return f"{curve.scheduler}: {steps}{after}"


def remark_lines(remarks: Sequence[Remark]) -> Iterator[str]:
    """An empty line, then the problems, then the notes."""
    if remarks:
        yield ""
    yield from remark.remark_lines(remark.problems_first(remarks))


def short(rate: float) -> str:
    """A rate in at most four digits.

    Example:
        >>> short(0.1), short(0.00012345), short(-0.0)
        ('0.1', '0.0001234', '0')
    """
    return f"{rate + 0.0:.4g}"


def _strip_line(curve: LrCurve, group: int) -> str:
    rates = curve.rates[group]
    if not rates:
        return words.pad(words.clip(curve.names[group], NAME - 1), NAME)
    ends = f"{short(rates[0])} to {short(rates[-1])}"
    name = words.pad(words.clip(curve.names[group], NAME - 1), NAME)
    bars = words.sparkline(rates, min(STRIP, words.WIDTH - NAME - len(ends) - 2))
    return words.clip(f"{name}{bars}  {ends}", words.WIDTH)


def turns(rates: Sequence[float]) -> list[int]:
    """The steps where the curve turns or where a level begins or ends; first and last as well.

    Example:
        >>> turns((3, 2, 1, 2, 3)), turns((1, 1, 1, 0, 0)), turns((1, 2))
        ([0, 2, 4], [0, 2, 3, 4], [0, 1])
    """
    ways = [_way(a, b) for a, b in itertools.pairwise(rates)]
    found = [k for k in range(1, len(ways)) if ways[k] != ways[k - 1]]
    return sorted({0, *found, len(rates) - 1}) if rates else []


def _way(one: float, other: float) -> int:
    return (other > one) - (other < one)


def _table(curve: LrCurve, shown: range) -> Iterator[str]:
    """The rates at the steps where any of the curves turns."""
    steps = sorted({step for group in shown for step in turns(curve.rates[group])})
    if len(steps) < 2:
        return
    if len(steps) > MOST_TURNS:
        steps = [*steps[: MOST_TURNS - 1], steps[-1]]
    for first in (0, 5):
        part = steps[first : first + 5]
        if not part:
            return
        yield ""
        yield words.pad("step", NAME) + "".join(f"{step:>12,}" for step in part)
        for group in shown:
            name = words.pad(words.clip(curve.names[group], NAME - 1), NAME)
            rates = curve.rates[group]
            yield name + "".join(f"{short(rates[step]):>12}" for step in part)
