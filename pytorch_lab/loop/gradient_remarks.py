"""What a person should know of the gradients: what the optimizer found, and who changed it.

Every sentence comes from what was measured, none from reading the order.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator

from pytorch_lab.loop.record import LoopRun, Remark
from pytorch_lab.loop.watching import Use, Watch
from pytorch_lab.loop.wording import short, turns_said
from pytorch_lab.words import count


def _used(watch: Watch) -> list[Use]:
    return [use for use in watch.uses if use.norm is not None]


def _adds_up(_run: LoopRun, watch: Watch) -> Iterator[Remark]:
    """Gradients that were used once are still there the next time, with more added."""
    uses = _used(watch)
    kept = [
        later
        for earlier, later in itertools.pairwise(uses)
        if set(earlier.sources) & set(later.sources) and len(later.sources) > len(earlier.sources)
    ]
    if kept:
        last = kept[-1]
        grown = _times(last.norm, uses[0].norm or 0.0)
        yield Remark(
            "adds up", "problem",
            f"Gradients add up: nothing clears them. In turn {last.turn} the optimizer used the "
            f"sum of {count(len(last.sources), 'backward pass', 'backward passes')}, of norm "
            f"{short(last.norm or 0)}{grown}. Clear them in each turn: optimizer.zero_grad().",
        )  # fmt: skip


def _accumulated(run: LoopRun, watch: Watch) -> Iterator[Remark]:
    """Several batches for one update, and what is left of them at the end."""
    mixed = [use for use in _used(watch) if len(set(use.sources)) > 1]
    if not mixed or any(True for _ in _adds_up(run, watch)):
        return
    turns = len(set(mixed[-1].sources))
    yield Remark(
        "accumulated", "note",
        f"Gradients of {turns} turns are added before they are used. That is their sum; for the "
        f"mean of the batches divide each loss by {turns}.",
    )  # fmt: skip
    left = [turn for turn in watch.left if turn > mixed[-1].turn]
    if left:
        yield Remark(
            "left over", "problem",
            f"The gradients of the last {count(len(left), 'turn')} were never used, and lie in "
            ".grad when the next epoch begins: step after the last batch too.",
        )  # fmt: skip


def _times(norm: float | None, first: float) -> str:
    if not norm or not first or not math.isfinite(norm) or norm < 1.5 * first:
        return ""
    return f": {short(norm / first)}x that of turn 1" if norm / first < 1e6 else ""


def _doubled(run: LoopRun, watch: Watch) -> Iterator[Remark]:
    twice = [use for use in _used(watch) if max(Counter(use.sources).values(), default=0) > 1]
    if twice:
        most = max(Counter(twice[0].sources).values())
        yield Remark(
            "doubled", "problem",
            f"{turns_said([use.turn for use in twice], run).capitalize()} backward ran {most} "
            f"times for one batch and the gradients were added: the optimizer used {most} times "
            "what one pass gives.",
        )  # fmt: skip


def _stale(run: LoopRun, watch: Watch) -> Iterator[Remark]:
    old = [use for use in _used(watch) if use.sources and use.turn not in use.sources]
    if not old:
        return
    first = old[0]
    what = (
        f"{turns_said([use.turn for use in old], run)} it used gradients of an earlier batch (in "
        f"turn {first.turn} those of turn {first.sources[-1]})"
    )
    none = " In turn 1 it found none." if watch.uses[0].norm is None else ""
    if first.forwarded:
        yield Remark(
            "stale", "problem",
            f"The optimizer steps before backward: {what}, after the forward of its own turn.{none}"
            " Put step after backward.",
        )  # fmt: skip
        return
    yield Remark(
        "begun elsewhere", "note",
        f"The turn begins with step: {what}, before any forward.{none} That is the same loop, "
        f"begun at another line; the gradients of turn {run.turns} are never used.",
    )  # fmt: skip


def _repeated(run: LoopRun, watch: Watch) -> Iterator[Remark]:
    again = [use.turn for use in watch.uses if use.again]
    if again:
        yield Remark(
            "used twice", "problem",
            f"The optimizer stepped again with gradients it had already used, "
            f"{turns_said(again, run)}: nothing had changed them in between.",
        )  # fmt: skip


def _nothing(run: LoopRun, watch: Watch) -> Iterator[Remark]:
    """Steps that found no gradient, or zeros only."""
    empty = [use for use in watch.uses if not use.norm]
    if not watch.trained or not empty or len(empty) < len(watch.uses):
        return
    cleared = [one for one in watch.changes if not one.after and one.sources]
    why = (
        f"{cleared[0].step} clears what backward has computed, before step can use it"
        if cleared
        else "no gradient has come to the parameters when step runs"
    )
    if not any(run.motions):
        yield Remark(
            "nothing moves", "problem",
            f"Nothing moves: {why}. {count(len(empty), 'call')} of optimizer.step(), and the "
            "parameters are where they were.",
        )  # fmt: skip


def _moved_by_zeros(run: LoopRun, watch: Watch) -> Iterator[Remark]:
    """Gradients that are zeros, and not None, let momentum and weight decay go on."""
    found = {use.turn for use in watch.uses if use.norm != 0}
    zeros = {use.turn for use in watch.uses if use.turn <= run.done} - found
    pushed = [turn for turn in zeros if run.motions[turn - 1]]
    if pushed:
        furthest = max(run.motions[turn - 1] for turn in pushed)
        yield Remark(
            "moved by zeros", "problem",
            "All gradients were zero, not None, and the parameters moved all the same "
            f"{turns_said(pushed, run)}, by up to {short(furthest)}: "
            "momentum and weight decay go on for zeros. With set_to_none=True, the default, step "
            "leaves such parameters alone.",
        )  # fmt: skip


def _never(run: LoopRun, watch: Watch) -> Iterator[Remark]:
    if run.failure and run.done == 0:
        return
    if not watch.uses and not any(run.motions):
        yield Remark(
            "no step", "problem",
            "Nothing called optimizer.step(): the parameters stay where they are.",
        )  # fmt: skip
    elif watch.uses and not watch.trained:
        yield Remark(
            "no backward", "problem",
            "No backward pass came to a parameter: there are no gradients for step to use.",
        )  # fmt: skip


# ---------------------------------------------------------------------- what changed the gradients


def _clips(run: LoopRun, watch: Watch) -> Iterator[Remark]:
    """Steps that changed gradients without clearing them: used afterwards, or for nothing."""
    touched = [one for one in watch.changes if one.after and one.before]
    unused = _unused(watch)
    late = [one for one in touched if id(one) in unused]
    for step in dict.fromkeys(one.step for one in late):
        turns = [one.turn for one in late if one.step == step]
        if len(turns) < sum(one.step == step for one in touched):
            continue
        yield Remark(
            "clip late", "problem",
            f"{step} changes nothing that is used: {turns_said(turns, run)} the optimizer had "
            "already stepped, and the gradients were cleared before the next step. Put it between "
            "backward and step.",
        )  # fmt: skip
    changed = [one for one in touched if not math.isclose(one.before, one.after, rel_tol=1e-5)]
    used = [one for one in changed if id(one) not in unused]
    for step in dict.fromkeys(one.step for one in used):
        mine = [one for one in used if one.step == step]
        most = max(mine, key=lambda one: one.before)
        yield Remark(
            "clip", "note",
            f"{step} changed the gradients {turns_said([one.turn for one in mine], run)}, at most "
            f"from norm {short(most.before)} to {short(most.after)} (turn {most.turn}).",
        )  # fmt: skip
    clips = [name for name, line in zip(run.order, run.lines, strict=True) if "clip_grad" in line]
    if clips and not used and not late and watch.trained:
        met = {one.step for one in touched}
        why = "its norm was below the limit" if clips[0] in met else "there was none when it ran"
        yield Remark("clip idle", "note", f"{clips[0]} never changed a gradient: {why}.")


def _unused(watch: Watch) -> set[int]:
    """The ids of changes that no optimizer step found before what they left was cleared."""
    found, used = set(), False
    for event in reversed(watch.events):
        if isinstance(event, Use):
            used = event.norm is not None
        elif not event.after:
            used = False
        elif not used:
            found.add(id(event))
    return found


FINDERS: tuple[Callable[[LoopRun, Watch], Iterator[Remark]], ...] = (
    _adds_up, _accumulated, _doubled, _stale, _repeated, _nothing, _moved_by_zeros, _never, _clips,
)  # fmt: skip
