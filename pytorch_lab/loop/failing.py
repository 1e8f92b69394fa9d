"""Why a step of the loop raised, in a sentence."""

from collections.abc import Callable

from pytorch_lab.loop.record import Failure
from pytorch_lab.loop.steps import Step
from pytorch_lab.loop.watching import Watch
from pytorch_lab.words import listed, message_of, shortened

MAKERS = {"output": "forward", "loss": "loss"}


def explained(error: Exception, turn: int, place: int, step: Step, watch: Watch) -> Failure:
    """The failure, with a reason where one is known."""
    message = shortened(message_of(error))
    says = next((says for known in KNOWN if (says := known(error, message, watch))), "")
    return Failure(turn, place, step.name, type(error).__name__, message, says)


def _undefined(error: Exception, _message: str, watch: Watch) -> str:
    name = getattr(error, "name", None)
    if not isinstance(error, NameError) or not name:
        return ""
    if name in MAKERS:
        return f"`{name}` is made by the step {MAKERS[name]!r}, which has to come before this one."
    there = listed(["x", "y", "turn", *watch.problem.names()])
    return f"Nothing at hand is called `{name}`; there are {there}, and what the steps make."


def _twice(_error: Exception, message: str, _watch: Watch) -> str:
    if "backward through the graph a second time" not in message:
        return ""
    return (
        "The first backward freed what the graph had saved. Run backward once for each forward; "
        "to go through one graph twice, the first must be backward(retain_graph=True)."
    )


def _in_place(_error: Exception, message: str, watch: Watch) -> str:
    if "modified by an inplace operation" not in message:
        return ""
    stepped = any(use.turn == watch.turn and use.norm for use in watch.uses)
    if stepped:
        return (
            "The graph saved the weights of its forward, and the optimizer has stepped since: they "
            "are no longer what they were. Run backward before step, or forward again after it."
        )
    return "A tensor that the graph had saved was written to before backward could use it."


def _unrecorded(_error: Exception, message: str, watch: Watch) -> str:
    if "does not require grad" not in message:
        return ""
    if watch.forwards and not watch.forwards[-1].recorded:
        return "The forward ran under no_grad, so no graph was recorded for backward to walk."
    return "Nothing that the loss was computed from requires a gradient."


def _vector(_error: Exception, message: str, _watch: Watch) -> str:
    if "grad can be implicitly created only for scalar outputs" not in message:
        return ""
    return (
        "backward starts from one number, and the loss has several: take its mean or its sum, or "
        "a weighted sum of them."
    )


KNOWN: tuple[Callable[[Exception, str, Watch], str], ...] = (
    _undefined, _twice, _in_place, _unrecorded, _vector,
)  # fmt: skip
