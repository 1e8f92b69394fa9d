"""What a person should know of a run. Every sentence comes from what was measured in it.

An ordered list of small finders; each looks at what was seen and says what it knows. Those for the
gradients stand in `gradient_remarks`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pytorch_lab.loop import gradient_remarks
from pytorch_lab.loop.record import LoopRun, Remark
from pytorch_lab.loop.watching import Watch
from pytorch_lab.loop.wording import short, turns_said
from pytorch_lab.modules.text import spell_bytes
from pytorch_lab.remark import problems_first
from pytorch_lab.words import count, shortened

MOST_WARNINGS = 3


def remarks(run: LoopRun, watch: Watch, heard: Sequence[Any]) -> LoopRun:
    """The run with all that there is to say, problems first."""
    said = [remark for find in FINDERS for remark in find(run, watch)]
    said += _warnings(heard)
    return replace(run, remarks=problems_first(said))


def _rates(run: LoopRun, watch: Watch) -> Iterator[Remark]:
    if not run.rates or not watch.uses:
        return
    first, used = watch.rate, watch.uses[0].rate
    if watch.early:
        so = (
            f"the first rate, {short(first)}, was never used, the first step ran with {short(used)}"
            if used != first
            else "each change of the rate comes a turn early"
        )
        yield Remark(
            "rate early", "problem",
            f"scheduler.step() came before the first optimizer.step(): {so}. Put it after step.",
        )  # fmt: skip
    if run.rates[-1] != first:
        yield Remark(
            "rate", "note",
            f"The learning rate went from {short(first)} to {short(run.rates[-1])} in "
            f"{count(run.done, 'turn')}: the scheduler counts calls, here one for each batch.",
        )  # fmt: skip


def _modes(run: LoopRun, watch: Watch) -> Iterator[Remark]:
    """Training in eval mode; running for a look without no_grad."""
    asleep = [one.turn for one in watch.trained if not one.training]
    if asleep:
        differs = watch.behaving()
        changes = (
            f"its {differs} did not behave as in training"
            if differs
            else "this model has no dropout or BatchNorm, so here it changes nothing"
        )
        yield Remark(
            "trained in eval", "problem" if differs else "note",
            f"The model was in eval mode while it was trained {turns_said(asleep, run)}: "
            f"{changes}. Call model.train() before forward.",
        )  # fmt: skip
    trained = {id(one) for one in watch.trained}
    idle = [one for one in watch.forwards if id(one) not in trained]
    loud = [one.turn for one in idle if one.recorded and not one.training]
    if loud:
        yield Remark(
            "recorded for nothing", "note",
            "A forward in eval mode recorded a graph that nothing walked, "
            f"{turns_said(loud, run)}: eval() does not switch autograd off. Put it under "
            "torch.no_grad().",
        )  # fmt: skip
    noisy = [one.turn for one in idle if not one.recorded and one.training]
    if noisy and watch.behaving():
        yield Remark(
            "looked in training", "problem",
            f"A forward under no_grad ran in training mode {turns_said(noisy, run)}: "
            f"{watch.behaving()} behaved as in training. no_grad does not switch that off; call "
            "model.eval() first.",
        )  # fmt: skip


def _growth(run: LoopRun, _watch: Watch) -> Iterator[Remark]:
    if len(run.nodes) < 2 or run.nodes[-1] <= run.nodes[0] or not run.nodes[-1]:
        return
    held = run.held_bytes[-1]
    keeps = (
        f"with {spell_bytes(held)} that they keep for a backward"
        if held
        else "backward has freed the tensors they had saved, the operations themselves stay"
    )
    yield Remark(
        "graph grows", "problem",
        f"`total` keeps the graph of every turn: {count(run.nodes[-1], 'operation')} hang on it "
        f"after turn {run.done}, {count(run.nodes[0], 'operation')} after turn 1; {keeps}. Add "
        "numbers: total += loss.item().",
    )  # fmt: skip


def _kept(run: LoopRun, watch: Watch) -> Iterator[Remark]:
    """The graph of the last loss was walked, and is still whole."""
    walked = watch.trained and watch.forwards[-1] is watch.trained[-1]
    if walked and watch.kept_bytes and not run.failure:
        yield Remark(
            "graph kept", "note",
            f"backward left the last graph whole: it still holds {spell_bytes(watch.kept_bytes)}. "
            "retain_graph=True is for a second backward through the same graph.",
        )  # fmt: skip


def _losses(run: LoopRun, _watch: Watch) -> Iterator[Remark]:
    broken = [turn for turn, loss in enumerate(run.losses, 1) if not math.isfinite(loss)]
    if broken:
        first = broken[0]
        number = run.losses[first - 1]
        spoilt = not all(map(math.isfinite, run.motions))
        text = (
            f"The loss is {number} from turn {first} on: no later turn can heal that, since the "
            "parameters are no numbers any more."
            if spoilt
            else f"The loss is {number} {turns_said(broken, run)}, and the parameters are still "
            f"numbers: look at the batch of turn {first}."
        )
        yield Remark("not finite", "problem", text)
    elif len(run.losses) > 4 and run.losses[-1] > run.losses[0]:
        yield Remark(
            "rises", "note",
            f"The loss ends higher than it began: {short(run.losses[0])} to "
            f"{short(run.losses[-1])}.",
        )  # fmt: skip


def _warnings(heard: Sequence[Any]) -> Iterator[Remark]:
    """What torch warned of; the scheduler's own place is said by what was measured."""
    texts = dict.fromkeys(str(one.message) for one in heard)
    known = ("lr_scheduler.step()", "optimizer.step()` has been overridden")
    new = [text for text in texts if not any(part in text for part in known)]
    for text in new[:MOST_WARNINGS]:
        yield Remark("warning", "note", f"Python warned: {shortened(' '.join(text.split()))}")


FINDERS: tuple[Callable[[LoopRun, Watch], Iterator[Remark]], ...] = (
    *gradient_remarks.FINDERS, _rates, _modes, _growth, _kept, _losses,
)  # fmt: skip
