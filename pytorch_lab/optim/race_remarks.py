"""What a person should know of a race: why one flew away, why one was refused."""

from collections.abc import Iterator, Mapping, Sequence

from pytorch_lab.optim.curve import Remark
from pytorch_lab.optim.path import Racer
from pytorch_lab.optim.surfaces import Surface
from pytorch_lab.remark import problems_first
from pytorch_lab.words import count

MATRIX = (
    "takes matrices only and got the two numbers as one of shape (1, 2). Muon makes its step "
    "orthogonal, for one row that is a step of fixed length: it does not get shorter near the "
    "end, only a falling lr does that."
)


def remarks(
    racers: Sequence[Racer], place: Surface, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[Remark, ...]:
    """All that there is to say, problems first."""
    said = []
    for racer in racers:
        said += _ended(racer, place)
        said += _stuck(racer)
        if len(shapes.get(racer.name, ())) == 2:
            said.append(Remark("matrix", "note", f"{racer.name} {MATRIX}"))
    return problems_first(said)


def _ended(racer: Racer, place: Surface) -> Iterator[Remark]:
    if racer.diverged:
        yield Remark(
            "diverged", "problem",
            f"{racer.name} {racer.stopped}: each step overshoots more than the one before."
            + _limit(racer, place),
        )  # fmt: skip
    elif "a leaf Variable that requires grad" in racer.stopped:
        yield Remark(
            "recorded", "problem",
            f"{racer.name} changes its parameter while autograd records: {racer.stopped}. "
            "Write `@torch.no_grad()` above its step.",
        )  # fmt: skip
    elif racer.stopped.startswith("not made"):
        yield Remark("stopped", "problem", f"{racer.name} was {racer.stopped}.")
    elif racer.stopped:
        steps = count(len(racer.points) - 1, "step")
        yield Remark("stopped", "problem", f"{racer.name} stopped after {steps}: {racer.stopped}.")


def _limit(racer: Racer, place: Surface) -> str:
    """The largest rate that plain gradient descent bears on a quadratic."""
    if place.name not in ("ravine", "bowl") or racer.optimizer != "SGD":
        return ""
    if "momentum" in racer.settings:
        return ""
    steepest = max(place.conditioning, 1.0)
    return f" On this surface SGD bears an lr below 2 / {steepest:g} = {2 / steepest:.3g}."


def _stuck(racer: Racer) -> Iterator[Remark]:
    if not racer.stopped and len(racer.points) > 2 and len(set(racer.points)) == 1:
        yield Remark(
            "stuck", "problem",
            f"{racer.name} never moved: its step changes nothing. Does it write to `p` in place, "
            "under `torch.no_grad()`?",
        )  # fmt: skip
