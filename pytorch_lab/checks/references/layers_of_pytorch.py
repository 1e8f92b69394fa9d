"""What the exercises of lesson 04 ask for."""

from collections.abc import Sequence

import torch
from torch import Tensor


def soft_threshold(x: Tensor, width: Tensor) -> Tensor:
    """Exercise 04.2: each number moved by `width` towards 0; the shape of both together.

    Args:
        x: of any shape.
        width: not negative; broadcast against x.

    Example:
        >>> soft_threshold(torch.tensor([-3.0, 0.5, 2.0]), torch.tensor(1.0))
        tensor([-2.,  0.,  1.])
    """
    return x - torch.maximum(torch.minimum(x, width), -width)


def lion(
    start: Tensor,
    gradients: Sequence[Tensor | None],
    rates: Sequence[float],
    betas: tuple[float, float],
    weight_decay: float,
) -> Tensor:
    """Exercise 04.3: where a parameter is after these steps of Lion.

    Chen and others, Symbolic Discovery of Optimization Algorithms (2023), algorithm 2.

    Args:
        start: the parameter before.
        gradients: of each step; None where it has none.
        rates: of each step.
        betas: how much of the memory counts in the direction, and how much is kept.
        weight_decay: of each step.

    Example:
        >>> lion(torch.zeros(2), [torch.tensor([3.0, -0.1])], [0.5], (0.9, 0.99), 0.0)
        tensor([-0.5000,  0.5000])
    """
    place, memory = start.double(), torch.zeros_like(start).double()
    for gradient, rate in zip(gradients, rates, strict=True):
        if gradient is not None:
            mixed = betas[0] * memory + (1 - betas[0]) * gradient.double()
            place = place - rate * (torch.sign(mixed) + weight_decay * place)
            memory = betas[1] * memory + (1 - betas[1]) * gradient.double()
    return place.to(start.dtype)
