"""The five models of the graph's benchmarks, from a few ops to twenty thousand nodes.

Each entry of `MODELS` builds a model with its inputs; `loss_of(model, inputs)` is one forward to a
number. Everything is random and seeded, nothing is downloaded.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Built = tuple[nn.Module, tuple[Tensor, ...]]


class Model(NamedTuple):
    """A benchmark model: how it is built, and how often a step of it is repeated."""

    build: Callable[[], Built]
    repetitions: int
    what: str


def loss_of(model: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    """One forward, down to a number."""
    result = model(*inputs)
    logits = getattr(result, "logits", result)
    return logits.square().mean()


# ---------------------------------------------------------------------------------------- small


def mlp() -> Built:
    """64-128-128-10, three layers, a batch of 32."""
    layers = (nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    return nn.Sequential(*layers), (torch.randn(32, 64),)


# ------------------------------------------------------------------------------------ ResNet-50


class Bottleneck(nn.Module):
    """1 × 1, 3 × 3, 1 × 1 convolutions around a shortcut (He et al., 2015)."""

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        outside = 4 * width
        self.conv1 = nn.Conv2d(inside, width, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outside, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(outside)
        self.shortcut = nn.Identity()
        if stride != 1 or inside != outside:
            project = nn.Conv2d(inside, outside, 1, stride, bias=False)
            self.shortcut = nn.Sequential(project, nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to (B, 4 · width, H / stride, W / stride)."""
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = F.relu(self.norm2(self.conv2(y)), inplace=True)
        y = self.norm3(self.conv3(y))
        y += self.shortcut(x)
        return F.relu(y, inplace=True)


class ResNet(nn.Module):
    """ResNet-50: 3, 4, 6, 3 blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        inside, stages = 64, []
        for stage, blocks in enumerate((3, 4, 6, 3)):
            width = 64 * 2**stage
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                stages.append(Bottleneck(inside, width, stride))
                inside = 4 * width
        self.blocks = nn.Sequential(*stages)
        self.head = nn.Linear(inside, 1000)

    def forward(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) to (B, 1000)."""
        x = self.blocks(self.stem(x))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


def resnet50() -> Built:
    """ResNet-50, one picture of 224 × 224."""
    return ResNet(), (torch.randn(1, 3, 224, 224),)


# ----------------------------------------------------------------------------------------- GPT-2


def gpt2() -> Built:
    """GPT-2 small as `transformers` writes it: 124 M parameters, tied head, 64 tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(use_cache=False))
    return model, (torch.randint(0, 50257, (1, 64)),)


# ------------------------------------------------------------------------------- many small ops


class GatedRNN(nn.Module):
    """A gated cell by hand; each step looks at its own state and may take another way."""

    def __init__(self, inputs: int = 16, width: int = 32) -> None:
        super().__init__()
        self.reset, self.update, self.new = (nn.Linear(inputs + width, width) for _ in range(3))
        self.out = nn.Linear(width, 4)
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        """(T, B, inputs) to (B, 4)."""
        h = x.new_zeros(x.shape[1], self.width)
        for step in x:
            both = torch.cat((step, h), 1)
            r = torch.sigmoid(self.reset(both))
            z = torch.sigmoid(self.update(both))
            new = torch.tanh(self.new(torch.cat((step, r * h), 1)))
            if new.mean() > 0:  # noqa: SIM108 - two ways, on lines of their own
                h = z * h + (1 - z) * new
            else:
                h = h - (1 - z) * (h - new)
        return self.out(h)


def rnn() -> Built:
    """500 steps of a hand-written gated cell with an `if` on a tensor's value."""
    return GatedRNN(), (torch.randn(500, 8, 16),)


class Braid(nn.Module):
    """A chain of small ops in which every link is also read a few links later."""

    def __init__(self, links: int) -> None:
        super().__init__()
        self.links = links
        self.weight = nn.Parameter(torch.full((8,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        """(8,) to (8,)."""
        strands = [x * self.weight, x + self.weight, x - self.weight]
        for link in range(self.links):
            left, middle, right = strands
            new = torch.tanh(left * self.weight) + middle.sin()
            strands = [middle, right, new] if link % 3 else [right, new, middle]
        return sum(strands, x)


def braid() -> Built:
    """A synthetic graph of 20,000 autograd nodes."""
    return Braid(5000), (torch.randn(8),)


MODELS = {
    "MLP": Model(mlp, 41, "64-128-128-10, batch 32"),
    "ResNet-50": Model(resnet50, 7, "1 × 3 × 224 × 224"),
    "GPT-2": Model(gpt2, 7, "small, 64 tokens"),
    "RNN": Model(rnn, 9, "500 steps, data-dependent if"),
    "20k nodes": Model(braid, 7, "synthetic"),
}
