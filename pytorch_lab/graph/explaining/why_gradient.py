"""Why is this gradient NaN, infinite, zero, or far too large? The node at which it became so.

    graph.why_gradient(net.fc.weight, lambda: loss_fn(net(x), y))    forward, backward, recorded
    graph.why_gradient(net.fc.weight, lambda: step(batch))           a whole step, with clipping

`why_none` answers for a gradient that is not there; this is for one that is there and wrong.
An ordered list of small finders looks at the recorded run; the first that sees a cause says it.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from pytorch_lab.graph.explaining.arguments import expect_loss, expect_optional, expect_tensor
from pytorch_lab.graph.explaining.explanation import Explanation
from pytorch_lab.graph.explaining.gradient_story import Story, percent, tell
from pytorch_lab.graph.explaining.spots import capital
from pytorch_lab.graph.explaining.why_bad_number import why_not_finite
from pytorch_lab.graph.explaining.why_bad_size import why_scaled, why_wrong_size
from pytorch_lab.graph.explaining.why_cut import why_cut
from pytorch_lab.graph.explaining.why_error import why_error
from pytorch_lab.graph.explaining.why_tensor import name_of, not_asking
from pytorch_lab.graph.explaining.why_zero import why_zero

FINDERS: tuple[Callable[[Story], Explanation | None], ...] = (
    why_scaled,
    why_not_finite,
    why_zero,
    why_wrong_size,
)


def why_gradient(
    parameter: torch.Tensor,
    loss: torch.Tensor | Callable[[], Any],
    *,
    model: nn.Module | None = None,
) -> Explanation:
    """Say why the gradient of `parameter` is NaN, infinite, zero or far too large.

    Example:
        >>> w = torch.tensor([3.0, 4.0], requires_grad=True)
        >>> print(why_gradient(w, lambda: (w - w.detach()).square().sum().sqrt()))
        The slope of `sqrt` is infinite here: its input is 0 somewhere. The gradient of
        `w` became NaN behind it.
          where   cell line 1
          seen    SqrtBackward0 received a finite gradient, 1 of length, and sent inf
                  the input of sqrt: 0 to 0, 100 % zeros
                  cell line 1: print(why_gradient(w, lambda: (w -
                    w.detach()).square().sum().sqrt()))
          fix     keep the input away from 0: (x + 1e-8).sqrt(), or
                    torch.linalg.vector_norm, whose slope at 0 is 0

    Args:
        parameter: the tensor whose gradient is in question.
        loss: a function without arguments that computes the loss, or does a whole training step;
            it is run once. If it does not call backward, that is done on its result, and the
            gradients that were there before are put back; of several results on the one called
            `loss`, else on the first that requires a gradient. Or a loss tensor: then nodes can
            be named, but no lines.
        model: for the parameter's name.

    Raises:
        UsageError: if an argument is none of these; a record is none, for it keeps no graph that
            could be walked back.
    """
    expect_tensor("why_gradient", parameter, "whose gradient is in question")
    expect_loss("why_gradient", loss, records=False)
    expect_optional("why_gradient", "model", model, nn.Module, "an nn.Module")
    name = name_of(parameter, model)
    if not parameter.requires_grad:
        return not_asking(parameter, name)
    if isinstance(loss, torch.Tensor):
        story = tell(parameter, lambda: loss, name, keep=True)
    else:
        story = tell(parameter, loss, name, keep=False)
    if story.error is not None:
        try:
            return why_error(story.error, story.record)
        finally:
            story.error = None  # its frames hold this story
    if story.arrived is None:
        return why_cut(story.record, story.place, story.name)
    return next(filter(None, (finder(story) for finder in FINDERS)), None) or _fine(story)


def _fine(story: Story) -> Explanation:
    arrived = story.arrived
    facts = []
    if arrived is not None:
        facts = [
            f"its length is {arrived.norm:.3g}",
            f"its elements are {arrived.min:.3g} to {arrived.max:.3g}, none is NaN or inf, "
            f"{percent(arrived.zeros)} are 0",
        ]
    return Explanation(
        "fine",
        f"{capital(story.name)} gets a usable gradient.",
        evidence=tuple(facts),
    )
