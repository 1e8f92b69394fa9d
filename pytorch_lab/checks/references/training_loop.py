"""Lesson 07, written slowly: updates by hand, from gradients that were asked for by name."""

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

Batches = Sequence[tuple[Tensor, Tensor]]


def gradients_used(calls: Sequence[str]) -> list[list[int]]:
    """Exercise 07.1: which backward passes each step applies, as a real optimizer shows it.

    The gradient of backward pass k points along axis k, so a step tells by where it went.

    Args:
        calls: "zero_grad", "backward" and "step", in the order in which they are called.

    Example:
        >>> gradients_used(["backward", "step", "backward", "step"])
        [[0], [0, 1]]
    """
    place = torch.zeros(len(calls), dtype=torch.float64, requires_grad=True)
    optimizer, numbers, used = torch.optim.SGD([place], lr=1.0), count(), []
    for call in calls:
        before = place.detach().clone()
        if call == "backward":
            place[next(numbers)].backward()
        else:
            getattr(optimizer, call)()
        if call == "step":
            used.append((place.detach() - before).nonzero().flatten().tolist())
    return used


def epoch(model: nn.Module, batches: Batches, lr: float) -> tuple[float, list[Tensor]]:
    """Exercise 07.2: the mean loss over all rows, and the weights after the pass.

    Args:
        model: its weights are moved, by plain gradient descent on the squared error.
        batches: inputs `(rows, inputs)` and targets `(rows, outputs)`.
        lr: the learning rate.

    Example:
        >>> epoch(nn.Linear(2, 1), [(torch.ones(3, 2), torch.ones(3, 1))], 0.0)[1][0].shape
        torch.Size([1, 2])
    """
    errors = []
    for x, y in batches:
        error = (model(x) - y).square().mean(1)  # (rows,)
        slopes = torch.autograd.grad(error.mean(), list(model.parameters()))
        with torch.no_grad():
            for p, slope in zip(model.parameters(), slopes, strict=True):
                p.sub_(lr * slope)
        errors.append(error.detach())
    return torch.cat(errors).mean().item(), [p.detach() for p in model.parameters()]


def mean_loss(model: nn.Module, batches: Batches) -> float:
    """Exercise 07.3: the squared error in eval mode, of all rows at once.

    Args:
        model: a copy of it is asked.
        batches: inputs `(rows, inputs)` and targets `(rows, outputs)`.

    Example:
        >>> mean_loss(nn.Identity(), [(torch.zeros(2, 1), torch.full((2, 1), 3.0))])
        9.0
    """
    x, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
    return (copy.deepcopy(model).eval()(x) - y).square().mean().item()


def fitted(
    net: Any,
    batches: Sequence[tuple[int, Tensor, Tensor]],
    lr: float,
    momentum: float = 0.0,
    decay: float = 0.0,
    max_norm: float = 1.0,
) -> tuple[list[float], list[float], list[Tensor]]:
    """Exercise 07.4: losses, norms before clipping, and the weights after the pass.

    Args:
        net: called as `net(x, task)`; its weights are moved.
        batches: a task, inputs `(rows, inputs)` and targets `(rows, outputs)`.
        lr: the learning rate, of a plain SGD with these settings:
        momentum: the share of the last step that is added.
        decay: the share of a weight that is added to its gradient.
        max_norm: the longest gradient that is applied, over all weights together.

    Example:
        >>> class Shift(nn.Linear):
        ...     def forward(self, x, task):
        ...         return super().forward(x)
        >>> batch = (0, torch.zeros(1, 2), torch.zeros(1, 1))
        >>> len(fitted(Shift(2, 1), [batch, batch], 0.1)[0])
        2
    """
    weights, speeds = list(net.parameters()), {}
    losses, norms = [], []
    for task, x, y in batches:
        loss = (net(x, task) - y).square().mean()
        found = torch.autograd.grad(loss, weights, allow_unused=True)
        slopes = {k: slope for k, slope in enumerate(found) if slope is not None}
        norm = torch.cat([slope.flatten() for slope in slopes.values()]).norm().item()
        losses, norms = [*losses, loss.item()], [*norms, norm]
        if not norm < float("inf"):  # NaN is not less than anything
            continue
        for k, slope in slopes.items():
            weight = weights[k].detach()
            pull = slope * min(1.0, max_norm / (norm + 1e-6)) + decay * weight
            speeds[k] = momentum * speeds[k] + pull if k in speeds else pull
            weight.sub_(lr * speeds[k])
    return losses, norms, [p.detach() for p in weights]


def noisy_run(looks: int, inside: Callable[..., AbstractContextManager]) -> list[Tensor]:
    """Exercise 07.5: the weights after three epochs with dropout and shuffling.

    Args:
        looks: how often after each epoch somebody draws a batch and some numbers of their own.
        inside: makes the block in which that happens; it gets the loader's generator.

    Example:
        >>> from contextlib import nullcontext
        >>> [tuple(p.shape) for p in noisy_run(0, nullcontext)]
        [(8, 3), (8,), (1, 8), (1,)]
    """
    torch.manual_seed(1)
    chance = torch.Generator().manual_seed(2)
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1)).double()
    x = torch.linspace(-2, 2, 36, dtype=torch.float64).sin().view(12, 3)
    data = DataLoader(TensorDataset(x, x[:, :1]), batch_size=4, shuffle=True, generator=chance)
    for _ in range(3):
        for batch in data:
            epoch(model, [batch], 0.1)
        for _ in range(looks):
            with inside(chance):
                next(iter(data))
                torch.randn(5)
    return [p.detach() for p in model.parameters()]
