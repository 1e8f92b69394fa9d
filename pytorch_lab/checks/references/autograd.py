"""Lesson 02, written slowly: gradients that were asked for by name."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def output_gradients(
    model: nn.Module, steps: dict[str, nn.Module], x: Tensor
) -> tuple[dict[str, list[float]], list[Tensor]]:
    """Exercise 02.3: the gradient's length at each step's output, and the parameters' gradients.

    Args:
        model: what consists of the steps.
        steps: its layers by name, in the order in which they run.
        x: the input of the first; the loss is the sum of the squares of what comes out.

    Example:
        >>> x, step = torch.ones(4, requires_grad=True), nn.Identity()
        >>> output_gradients(step, {"step": step}, x)[0]
        {'step': [4.0]}
    """
    outputs = {}
    for name, step in steps.items():
        x = outputs[name] = step(x)
    wanted = [*outputs.values(), *model.parameters()]
    grads = torch.autograd.grad(x.square().sum(), wanted)
    norms = {name: [g.norm().item()] for name, g in zip(outputs, grads, strict=False)}
    return norms, list(grads[len(norms) :])


def learned(
    cell: nn.Module, chunks: Sequence[tuple[Tensor, Tensor]], lr: float
) -> tuple[list[float], list[Tensor]]:
    """Exercise 02.4: what a sound loop does, as its losses and the weights after it.

    Args:
        cell: gives `(out, state)` for `(inputs, state)`; its weights are moved.
        chunks: pairs of inputs and targets.
        lr: the learning rate.

    Example:
        >>> learned(nn.RNN(2, 3), [], 0.1)[0]
        []
    """
    losses, state = [], None
    for inputs, targets in chunks:
        out, state = cell(inputs, None if state is None else state.detach())
        loss = (out - targets).square().mean()
        slopes = torch.autograd.grad(loss, list(cell.parameters()))
        with torch.no_grad():
            for p, slope in zip(cell.parameters(), slopes, strict=True):
                p.sub_(lr * slope)
        losses += [loss.item()]
    return losses, [p.detach() for p in cell.parameters()]
