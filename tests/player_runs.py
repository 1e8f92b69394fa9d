"""A small training step that the player's tests play, without a page and in one."""

import torch
from torch import nn

from pytorch_lab import graph


class Net(nn.Module):
    """Two layers, with a stretch that has no gradient between them."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.fc2 = nn.Linear(8, 2)

    def forward(self, x):
        h = self.fc1(x).relu()
        with torch.no_grad():
            shift = h.mean()
        return self.fc2(h - shift)


def loss(net, x, y):
    return nn.functional.cross_entropy(net(x), y)


def trained_step():
    """The record of a step with all its numbers; every tensor has at most 64."""
    torch.manual_seed(0)
    net, x, y = Net(), torch.randn(3, 4), torch.tensor([0, 1, 1])
    return graph.record(loss, net, x, y, backward=True, values="full")
