"""What the shape of a curve says: zeros, levels, climbs, teeth, numbers that are none."""

import itertools
import math
from collections.abc import Callable, Iterator

from pytorch_lab.optim.curve import Remark
from pytorch_lab.optim.curve_text import short
from pytorch_lab.optim.look import Look, Member, Row
from pytorch_lab.words import count

TINY = 1e-6  # of the highest rate: nothing is learned below
SHARE = 1e-9  # of the highest rate: smaller differences are rounding


def bad_numbers(look: Look) -> Iterator[Remark]:
    """Negative rates climb the hill; a rate that is no number destroys the weights."""
    for name, row in look.rows:
        below = [k for k, rate in enumerate(row) if rate < 0]
        if below:
            yield Remark(
                "negative",
                "problem",
                f"The lr{look.of(name)} is negative from step {below[0]:,} on"
                f" (down to {short(min(row))}): the optimizer would climb. Keep it at 0 or above: "
                "`max(0.0, ...)`, or stop earlier.",
                (below[0], below[-1]),
            )
        broken = [k for k, rate in enumerate(row) if not math.isfinite(rate)]
        if broken:
            yield Remark(
                "not_finite",
                "problem",
                f"The lr{look.of(name)} is {row[broken[0]]} from step {broken[0]:,} on: one step "
                "with it destroys all weights.",
                (broken[0], broken[-1]),
            )


def zeros(look: Look) -> Iterator[Remark]:
    """Where nothing is learned, or nearly nothing."""
    for name, row in look.rows:
        top = max((rate for rate in row if math.isfinite(rate)), default=0.0)
        if row and not any(row):
            yield Remark(
                "zero", "problem", f"The lr{look.of(name)} is 0 in every step: nothing is learned.",
                (0, len(row) - 1),
            )  # fmt: skip
            continue
        start = _tail(row, lambda rate, top=top: 0 <= rate <= TINY * top)
        if len(row) - start >= max(3, len(row) // 20):
            what = "0" if row[start] == 0 else f"below a millionth of {short(top)}"
            yield Remark(
                "zero_tail", "problem",
                f"From step {start:,} on the lr{look.of(name)} is {what}: "
                f"nothing is learned in the last {count(len(row) - start, 'step')}."
                + _calls_not_epochs(look),
                (start, len(row) - 1),
            )  # fmt: skip
        elif len(row) > 1 and row[0] == 0:
            yield Remark(
                "zero_start", "note",
                f"Step 0 has lr 0{look.of(name)}: the first batch changes nothing (a warm-up that "
                "begins at 0).",
                (0, 0),
            )  # fmt: skip


def _calls_not_epochs(look: Look) -> str:
    """Why a rate may have fallen so low."""
    settings = {key: value for m in look.members for key, value in m.settings.items()}
    for setting in ("step_size", "gamma"):
        if setting in settings and look.steps >= 100:
            return (
                f" `{setting}={settings[setting]:g}` works per call of step(): if it is called "
                "after every batch though meant for epochs, call it once per epoch."
            )
    return ""


def constant(look: Look) -> Iterator[Remark]:
    """A schedule that changes nothing, or nothing any more."""
    for name, row in look.rows:
        if len(row) < 2 or not row[0]:
            continue
        if all(rate == row[0] for rate in row):
            yield Remark(
                "constant", "note",
                f"The lr{look.of(name)} is {short(row[0])} in every step{_first_change(look)}.",
                (0, len(row) - 1),
            )  # fmt: skip
            continue
        start = _tail(row, lambda rate, last=row[-1]: rate == last)
        top = max((rate for rate in row if math.isfinite(rate)), default=math.inf)
        if len(row) - start >= max(3, len(row) // 4) and row[-1] > TINY * top:
            yield Remark(
                "level", "note",
                f"From step {start:,} on the lr{look.of(name)} stays at {short(row[-1])}.",
                (start, len(row) - 1),
            )  # fmt: skip


def _first_change(look: Look) -> str:
    settings = look.members[0].settings if look.members else {}
    if "step_size" in settings:
        return f": the first drop comes after {settings['step_size']:,.0f} calls of step()"
    if look.metric:
        return ": the metric kept getting better"
    return ""


def climbs(look: Look) -> Iterator[Remark]:
    """Where a curve that has fallen rises again."""
    for name, row in look.rows:
        found = first_climb(row)
        if found is None:
            continue
        low, peak = found
        wave = next((m for m in look.members if _is_past(m)), None)
        if wave is not None:
            half = int(wave.settings["T_max"])
            yield Remark(
                "climbs", "problem",
                f"The lr{look.of(name)} climbs again from step {low:,} on, to {short(row[peak])} "
                f"at step {peak:,}: CosineAnnealingLR is a wave and goes up after T_max={half} "
                f"calls of step(). Give the number of calls you make, T_max={_wanted(look, wave)}, "
                "or stop there.",
                (low, len(row) - 1),
            )  # fmt: skip
            return
        if look.by_design:
            if look.plan is not None and look.began + low + 1 >= look.plan.calls:
                return  # OneCycleLR's last call sets a rate that no step uses
            yield Remark(
                "restarts", "note",
                f"The lr climbs again from step {low:,} on, to {short(row[peak])} at step "
                f"{peak:,}, as {look.kind} is made to.",
                (low, peak),
            )  # fmt: skip
            return
        if not sawtooth(row):
            yield Remark(
                "climbs", "note",
                f"The lr{look.of(name)} falls to {short(row[low])} at step {low:,} and climbs "
                f"again, to {short(row[peak])} at step {peak:,}.",
                (low, peak),
            )  # fmt: skip


def _is_past(member: Member) -> bool:
    return member.kind == "CosineAnnealingLR" and member.called > member.settings["T_max"]


def _wanted(look: Look, wave: Member) -> int:
    return wave.called if not look.stopped else look.steps


def teeth(look: Look) -> Iterator[Remark]:
    """A warm-up that begins anew in every epoch."""
    for name, row in () if look.by_design else look.rows:
        found = sawtooth(row)
        if found:
            first, gap, times = found
            yield Remark(
                "sawtooth", "problem",
                f"The lr{look.of(name)} falls back to {short(row[first])} at step {first:,} and "
                f"{count(times - 1, 'more time')}, every {count(gap, 'step')}: its formula seems "
                f"to count the steps inside an epoch. Use the global step, "
                f"`epoch * {gap} + i`.",
                (0, first + gap * (times - 1)),
            )  # fmt: skip


def grows(look: Look) -> Iterator[Remark]:
    """A rate that only ever gets larger."""
    for (name, row), base in zip(look.rows, look.initial, strict=True):
        finite = [rate for rate in row if math.isfinite(rate)]
        if look.by_design or len(finite) < 2 or not base or base < 0:
            continue
        if finite[-1] == max(finite) and finite[-1] > 2 * base:
            yield Remark(
                "grows", "problem",
                f"The lr{look.of(name)} grows to {short(finite[-1])}, "
                f"{short(finite[-1] / base)} times the {short(base)} that was set, and does not "
                "come down.",
                (0, len(row) - 1),
            )  # fmt: skip


def first_climb(row: Row) -> tuple[int, int] | None:
    """The lowest step after a fall and the highest of the rise that follows, or None.

    Example:
        >>> first_climb((3.0, 1.0, 2.0, 1.5)), first_climb((1.0, 2.0, 1.0))
        ((1, 2), None)
    """
    slack = SHARE * max((abs(rate) for rate in row if math.isfinite(rate)), default=0.0)
    fallen, low = False, 0
    for k in range(1, len(row)):
        if row[k] < row[k - 1] - slack:
            fallen, low = True, k
        elif fallen and row[k] <= row[low] + slack:
            low = k
        elif fallen and row[k] > row[low] + slack:
            peak = k
            while peak + 1 < len(row) and row[peak + 1] >= row[peak]:
                peak += 1
            return low, peak
    return None


def sawtooth(row: Row) -> tuple[int, int, int] | None:
    """The first step back, the steps between, and how many: falls at once, each after a rise.

    Example:
        >>> sawtooth((1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0))
        (3, 3, 2)
    """
    drops = [
        k
        for k in range(2, len(row) - 1)
        if row[k - 1] > row[k - 2] and row[k] <= 0.6 * row[k - 1] and row[k + 1] > row[k]
    ]
    gaps = {b - a for a, b in itertools.pairwise(drops)}
    if len(drops) < 2 or len(gaps) != 1:
        return None
    return drops[0], gaps.pop(), len(drops)


def _tail(row: Row, holds: Callable[[float], bool]) -> int:
    """The first step from which on something holds to the end."""
    start = len(row)
    while start and holds(row[start - 1]):
        start -= 1
    return start
