"""What the course's exercises ask for, written slowly: the visible checks compare answers with it.

It lies here and not in a check's cell, where a learner would read the answer before trying. Each
function takes the learner's module, or its tensors, and says what should have come out.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

Tree = int | tuple[Any, ...]


def settle(net: Any, x: Tensor) -> tuple[Tensor, int]:
    """Exercise 01.2: the state after the last turn, and the number of turns.

    Args:
        net: has `step` (a linear layer), `tol` and `most`.
        x: `(width,)` or `(rows, width)`.

    Example:
        >>> from types import SimpleNamespace
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


def tower(parameters: Sequence[Tensor], x: Tensor) -> Tensor:
    """Exercise 03.2: linear layers with ReLU between them, `(rows, last size)`.

    Args:
        parameters: weight and bias of each layer, in order.
        x: `(rows, first size)`.

    Example:
        >>> tower([torch.eye(2), torch.zeros(2)], torch.tensor([[-1.0, 2.0]]))
        tensor([[-1.,  2.]])
    """
    for weight, bias in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
        x = (x @ weight.T + bias).relu()
    return x @ parameters[-2].T + parameters[-1]


def reader(net: Any, words: Tensor) -> list[Tensor]:
    """Exercise 03.4: the scores of each task in eval mode, `(texts, classes)`.

    Args:
        net: has `counts`, `embed` and `heads`.
        words: ids, `(texts, words)`.

    Example:
        >>> from types import SimpleNamespace
        >>> net = SimpleNamespace(counts=torch.ones(3), embed=nn.Embedding(3, 2), heads=[])
        >>> reader(net, torch.zeros(1, 2, dtype=torch.long))
        []
    """
    weight = net.counts[words] / torch.arange(1, words.shape[1] + 1)
    x = torch.einsum("bt,btw->bw", weight, net.embed.weight[words])
    return [x @ head.weight.T + head.bias for head in net.heads]
