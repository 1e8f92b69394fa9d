"""What the exercises of lesson 06 ask for, by another road: torch's own classes, or by hand."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer, lr_scheduler

OPTIMIZERS: dict[str, Callable[[list[Tensor], float, float], Optimizer]] = {
    "sgd": lambda p, lr, decay: SGD(p, lr, weight_decay=decay),
    "momentum": lambda p, lr, decay: SGD(p, lr, momentum=0.9, weight_decay=decay),
    "adam": lambda p, lr, decay: Adam(p, lr, weight_decay=decay),
    "adamw": lambda p, lr, decay: AdamW(p, lr, weight_decay=decay),
}


def rates(shape: str, lr: float, length: int, steps: int) -> list[float]:
    """Exercise 06.1: the rates that torch's scheduler sets, one for each step.

    Example:
        >>> rates("step", 1.0, 2, 3)
        [1.0, 1.0, 0.1]
    """
    optimizer = SGD([torch.zeros(1)], lr)
    kinds = {"step": lr_scheduler.StepLR, "cosine": lr_scheduler.CosineAnnealingLR}
    scheduler, found = kinds[shape](optimizer, length), []
    for _ in range(steps):
        found.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        scheduler.step()
    return found


def walk(
    kind: str, w: Tensor, slope: Callable[[Tensor], Tensor], lr: float, steps: int, decay: float
) -> list[Tensor]:
    """Exercise 06.2: where torch's optimizer stands before and after each step.

    Args:
        kind: a key of `OPTIMIZERS`.
        w: where it starts, of any shape.
        slope: gives the gradient at a place, of the shape of `w`.
        lr: the learning rate.
        steps: how many.
        decay: the weight decay.

    Example:
        >>> walk("sgd", torch.ones(1), lambda w: w, 0.5, 1, 0.0)
        [tensor([1.]), tensor([0.5000])]
    """
    moved = w.clone()
    optimizer = OPTIMIZERS[kind]([moved], lr, decay)
    places = [moved.clone()]
    for _ in range(steps):
        moved.grad = slope(moved).clone()
        optimizer.step()
        places.append(moved.clone())
    return places


def sorted_out(model: nn.Module, lr: float, decay: float) -> list[tuple[str, float, float]]:
    """Exercise 06.3: the name, rate and decay of each tensor to train, in order of the names.

    Example:
        >>> sorted_out(nn.ModuleDict({"body": nn.Linear(2, 1, bias=False)}), 1.0, 0.5)
        [('body.weight', 0.1, 0.5)]
    """
    found = []
    for name, p in model.named_parameters():
        if p.requires_grad:
            part = name.split(".")[0]
            found.append((name, lr / 10 if part == "body" else lr, decay if p.ndim > 1 else 0.0))
    return sorted(found)


def fine_tuned(
    model: nn.Module,
    batches: Sequence[tuple[Tensor, Tensor]],
    accuracies: Sequence[float],
    lr: float,
) -> tuple[list[float], list[Tensor]]:
    """Exercise 06.4: the rate of each epoch, and the weights at the end.

    Args:
        model: with its new head; its weights are moved.
        batches: pairs of inputs and classes.
        accuracies: what is measured after each epoch.
        lr: the first rate.

    Example:
        >>> fine_tuned(nn.Linear(2, 2), [], [0.5, 0.5, 0.5], 1.0)[0]
        [1.0, 1.0, 0.1]
    """
    weights, rates, best = list(model.parameters()), [], float("-inf")
    for accuracy in accuracies:
        rates.append(lr)
        for x, y in batches:
            slopes = torch.autograd.grad(F.cross_entropy(model(x), y), weights)
            length = torch.stack([slope.square().sum() for slope in slopes]).sum().sqrt()
            share = min(1.0, 1.0 / (length.item() + 1e-6))
            with torch.no_grad():
                for weight, slope in zip(weights, slopes, strict=True):
                    weight -= lr * share * slope
        lr = lr if accuracy > best else lr * 0.1
        best = max(best, accuracy)
    return rates, [weight.detach() for weight in weights]
