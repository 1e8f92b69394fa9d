"""What a person should know of a curve: small finders, each for one thing.

Each looks at the numbers and the settings, and yields what it has to say, or nothing.
"""

import math
from collections.abc import Callable, Iterator, Sequence

from pytorch_lab.optim.curve import Remark
from pytorch_lab.optim.curve_text import short
from pytorch_lab.optim.look import Look
from pytorch_lab.optim.shapes import bad_numbers, climbs, constant, grows, teeth, zeros
from pytorch_lab.remark import problems_first
from pytorch_lab.words import count

MANY = 10  # times longer than planned: somebody counted epochs and calls for batches


def factors(look: Look) -> Iterator[Remark]:
    """LambdaLR multiplies: its function must not return a rate."""
    if look.kind not in ("LambdaLR", "MultiplicativeLR") or not look.lambda_name:
        return
    for (name, row), base in zip(look.rows, look.initial, strict=True):
        finite = [rate for rate in row if math.isfinite(rate)]
        if not base or not finite or look.kind == "MultiplicativeLR":
            continue
        most = max(finite) / base
        rising = len(row) > 1 and row[-1] == max(finite) and row[-1] > row[0]
        if 0 < most < 0.1 and not rising:
            alike = 0.5 * base <= most <= 1.05 * base
            rate = f"{short(most)}, like the lr itself" if alike else f"at most {short(most)}"
            yield Remark(
                "factors", "problem",
                f"The lr{look.of(name)} is at most {short(max(finite))}, though the optimizer was "
                f"given {short(base)}: `{look.lambda_name}` returns {rate}. It must return a "
                "factor (1.0 for the lr as given), not a rate.",
                (0, len(row) - 1),
            )  # fmt: skip
        else:
            yield Remark(
                "factor_range", "note",
                f"`{look.lambda_name}` gives factors from {short(min(finite) / base)} to "
                f"{short(most)} of lr={short(base)}{look.of(name)}.",
            )  # fmt: skip


def products(look: Look) -> Iterator[Remark]:
    """MultiplicativeLR multiplies what is there already, again and again."""
    if look.kind != "MultiplicativeLR":
        return
    yield Remark(
        "product", "note",
        f"MultiplicativeLR multiplies the lr of the step before: after {count(look.steps, 'step')} "
        "all factors are multiplied together. LambdaLR takes the factor of the first lr.",
    )  # fmt: skip


def length(look: Look) -> Iterator[Remark]:
    """Longer or much shorter than planned, or ended by an error."""
    plan = look.plan
    calls = look.began + look.steps
    if look.stopped:
        yield _ended(look)
    elif plan is not None and plan.then == "returns" and calls >= MANY * plan.calls:
        yield Remark(
            "per_batch", "problem",
            f"{look.kind} is planned for {plan.calls:,} calls of step() ({plan.says}) and gets "
            f"{calls:,}, {calls // plan.calls} times as many: as if step() were called after every "
            "batch and the plan counted epochs. Call it once per epoch, or plan in batches.",
        )  # fmt: skip
    elif plan is not None and plan.then != "stays" and calls * 2 < plan.calls:
        yield Remark(
            "per_epoch", "problem",
            f"{look.kind} is planned for {plan.calls:,} calls of step() ({plan.says}) and gets "
            f"{calls:,}: only the first {calls / plan.calls:.0%} of the curve is used. If that is "
            "one call per epoch, call step() after every batch.",
        )  # fmt: skip
    elif plan is not None and plan.says.startswith("num_training_steps") and calls * 2 < plan.calls:
        yield Remark(
            "per_epoch", "problem",
            f"The schedule is planned for {plan.says} and gets {calls:,} calls of step(): only "
            f"{calls / plan.calls:.0%} of the curve is used. Call step() after every batch.",
        )  # fmt: skip


def _ended(look: Look) -> Remark:
    came = len(look.rows[0][1]) if look.rows else 0
    last = (came - 1, came - 1)
    if look.plan is not None and look.plan.then == "raises" and "ValueError" in look.stopped:
        call = look.began + came
        return Remark(
            "longer", "problem",
            f"{look.kind} is planned for {look.plan.calls:,} calls of step() ({look.plan.says}) "
            f"and is asked for {look.began + look.steps:,}: call number {call:,} raises "
            f"ValueError. Plan for all of them: total_steps={look.began + look.steps}.",
            last,
        )  # fmt: skip
    if look.known != look.groups:
        return Remark(
            "groups", "problem",
            f"The optimizer has {count(look.groups, 'group')}, the scheduler knows {look.known}: "
            f"a group was added after the scheduler was made, and step() raises "
            f"{look.stopped.partition(':')[0]}. Make the scheduler after the last add_param_group.",
            last,
        )  # fmt: skip
    return Remark("stopped", "problem", f"Call {came:,} of step() raised {look.stopped}.", last)


def order(look: Look) -> Iterator[Remark]:
    """What was done with the scheduler before."""
    if look.early:
        yield Remark(
            "order", "problem",
            f"scheduler.step() has run {count(look.early, 'time')} and optimizer.step() never: the "
            "first lr of the schedule was skipped. Call optimizer.step() first, then "
            "scheduler.step().",
        )  # fmt: skip
    if look.set_by_others:
        now, had = look.set_by_others
        yield Remark(
            "set_by_others", "note",
            f"The optimizer's lr is {short(now)}, but the scheduler had set {short(had)}: "
            "something else sets it too.",
        )  # fmt: skip


def plateau(look: Look) -> Iterator[Remark]:
    """A metric that is watched in the wrong direction."""
    if not look.metric or not look.mode:
        return
    better = _records(look.metric, look.mode)
    other = "max" if look.mode == "min" else "min"
    worse = _records(look.metric, other)
    if look.reductions and worse >= 2 and worse > 2 * better:
        way, good = ("rises", "higher") if look.mode == "min" else ("falls", "lower")
        yield Remark(
            "direction", "problem",
            f"The metric {way}, from {short(look.metric[0])} to {short(look.metric[-1])}, while "
            f'{look.kind} has mode="{look.mode}": each {good} value counts as a bad step, and the '
            f'lr was reduced {count(len(look.reductions), "time")}. If {good} is better, as of '
            f'{"an accuracy" if good == "higher" else "a loss"}, give mode="{other}".',
            (look.reductions[0], look.reductions[-1]),
        )  # fmt: skip
    elif look.reductions:
        said = ", ".join(f"{k:,}" for k in look.reductions[:6])
        more = "" if len(look.reductions) <= 6 else f" and {len(look.reductions) - 6} more"
        yield Remark("reduced", "note", f"The lr was reduced at step {said}{more}.")
    if any(math.isnan(one) for one in look.metric):
        yield Remark(
            "metric_nan", "problem",
            "The metric is nan in some steps; each of them counts as a bad step.",
        )  # fmt: skip


def _records(metric: Sequence[float], mode: str) -> int:
    """How often the metric was better than ever before."""
    best, times = metric[0], 0
    for one in metric[1:]:
        if one < best if mode == "min" else one > best:
            best, times = one, times + 1
    return times


def momentum(look: Look) -> Iterator[Remark]:
    """Some schedules turn momentum the other way."""
    for row in look.momenta:
        if row and max(row) != min(row):
            yield Remark(
                "momentum", "note",
                f"{look.kind} moves the momentum too, between {short(min(row))} and "
                f"{short(max(row))} (cycle_momentum).",
            )  # fmt: skip
            return


FINDERS: tuple[Callable[[Look], Iterator[Remark]], ...] = (
    length, order, bad_numbers, zeros, climbs, teeth, factors, plateau, grows,
    constant, momentum, products,
)  # fmt: skip


def remarks(look: Look) -> tuple[Remark, ...]:
    """All that there is to say, problems first."""
    found = [remark for finder in FINDERS for remark in finder(look)]
    unique = {(one.code, one.text): one for one in found}
    return problems_first(unique.values())
