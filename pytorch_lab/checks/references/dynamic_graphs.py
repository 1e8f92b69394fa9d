"""Lesson 01, written slowly: what a net of the learner's shape gives."""

from typing import Any

import torch
from torch import Tensor

Tree = int | tuple[Any, ...]


def settle(net: Any, x: Tensor) -> tuple[Tensor, int]:
    """Exercise 01.2: the state after the last turn, and the number of turns.

    Args:
        net: has `step` (a linear layer), `tol` and `most`.
        x: `(width,)` or `(rows, width)`.

    Example:
        >>> from types import SimpleNamespace
        >>> from torch import nn
        >>> net = SimpleNamespace(step=nn.Linear(2, 2), tol=9.0, most=5)
        >>> state, turns = settle(net, torch.zeros(2))
        >>> tuple(state.shape), turns
        ((2,), 1)
    """
    state = torch.zeros_like(x)
    for turn in range(1, net.most + 1):
        old, state = state, torch.tanh(state @ net.step.weight.T + net.step.bias + x)
        if all(abs(change) < net.tol for change in (state - old).flatten().tolist()):
            return state, turn
    return state, net.most


def smoother(net: Any, series: Tensor, last: Tensor) -> Tensor:
    """Exercise 01.4: what is remembered after the last row, `(width,)`.

    Args:
        net: has `gate` (a number) and `mix` (a linear layer).
        series: `(rows, width)`.
        last: what was remembered before, `(width,)`.

    Example:
        >>> from types import SimpleNamespace
        >>> from torch import nn
        >>> net = SimpleNamespace(gate=torch.tensor(0.0), mix=nn.Linear(2, 2))
        >>> smoother(net, torch.zeros(0, 2), torch.tensor([3.0, 4.0]))
        tensor([3., 4.])
    """
    h, keep = last, 1 / (1 + torch.exp(-net.gate))
    for row in series:
        h = keep * h + (1 - keep) * torch.tanh(net.mix(row))
        size = h.square().sum().sqrt()
        h = h / size if size > 1 else h
    return h


def tree_net(net: Any, tree: Tree) -> Tensor:
    """Exercise 01.5: the vector of a word or a phrase, `(width,)`.

    Args:
        net: has `embed`, and the linear layers `merge` and `again`.
        tree: a word's number, or a tuple of trees.

    Example:
        >>> from types import SimpleNamespace
        >>> from torch import nn
        >>> net = SimpleNamespace(embed=nn.Embedding(3, 2))
        >>> torch.equal(tree_net(net, 1), net.embed.weight[1])
        True
    """
    if isinstance(tree, int):
        return net.embed.weight[tree]
    total = torch.stack([tree_net(net, part) for part in tree]).sum(0)
    h = (total @ net.merge.weight.T + net.merge.bias).tanh()
    if h.sum().item() >= 0:
        return h
    return (h @ net.again.weight.T + net.again.bias).tanh()
