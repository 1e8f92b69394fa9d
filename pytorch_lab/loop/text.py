"""A run as text: its order, three lines of figures, and the remarks."""

from collections.abc import Iterator, Sequence

from pytorch_lab import words
from pytorch_lab.loop.record import LoopRun, LoopRuns
from pytorch_lab.loop.wording import short
from pytorch_lab.remark import remark_lines

NAME, STRIP = 15, 40


def render(run: LoopRun) -> str:
    """The whole text, at most 80 columns wide.

    Example:
        >>> from pytorch_lab import loop
        >>> print(render(loop.run(["eval"], turns=2)))
        eval: 2 turns
        <BLANKLINE>
        ✗ Nothing called optimizer.step(): the parameters stay where they are.
    """
    return "\n".join(_lines(run))


def render_all(runs: LoopRuns) -> str:
    """One line for each run, then what is to be said of each."""
    wide = max(words.columns(name) for name in runs.names)
    wide = min(wide, 24)
    lines = [
        words.pad("", wide) + f"{'first loss':>12}{'last loss':>12}{'last norm':>12}{'motion':>10}"
    ]
    for name, run in runs.runs:
        losses = [short(run.losses[0]), short(run.losses[-1])] if run.losses else ["", ""]
        norm = (
            short(run.grad_norms[-1])
            if run.grad_norms and run.grad_norms[-1] is not None
            else "none"
        )
        motion = short(sum(run.motions))
        head = words.pad(words.clip(name, wide), wide)
        lines.append(f"{head}{losses[0]:>12}{losses[1]:>12}{norm:>12}{motion:>10}")
    for name, run in runs.runs:
        said = list(_said(run))
        if said:
            lines += ["", *words.wrap(f"{name}: {', '.join(run.order)}", indent="  "), *said]
    return "\n".join(lines)


def headline(run: LoopRun) -> str:
    """The order, and how far it came."""
    turns = words.count(run.turns, "turn")
    if run.done < run.turns:
        turns = f"{run.done} of {turns}"
    return f"{', '.join(run.order)}: {turns}"


def _lines(run: LoopRun) -> Iterator[str]:
    yield from words.wrap(headline(run), indent="  ")
    yield from _figures("loss", run.losses)
    if any(norm is not None for norm in run.grad_norms):
        yield from _figures("gradient norm", run.grad_norms)
    if any(run.motions):
        yield from _figures("motion a turn", run.motions)
    said = list(_said(run))
    if said:
        yield ""
    yield from said


def _figures(name: str, numbers: Sequence[float | None]) -> Iterator[str]:
    there = [number for number in numbers if number is not None]
    if there:
        ends = short(there[0]) if len(there) == 1 else f"{short(there[0])} to {short(there[-1])}"
        yield f"{words.pad(name, NAME)}{words.sparkline(numbers, STRIP)}  {ends}"


def _said(run: LoopRun) -> Iterator[str]:
    if run.failure:
        yield from words.wrap(f"Stopped in {run.failure}", head="✗ ", indent="  ")
    yield from remark_lines(run.remarks)
