"""Models whose graphs are drawn in tests and measured, and what can be measured of a drawing."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

from pytorch_lab.graph.drawing.layout import Layout

Line = tuple[int, int, Sequence[tuple[float, float]]]  # source, target, points


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q = q.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        k = k.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        v = v.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5
        past = torch.ones(t, t).tril()
        weights = scores.masked_fill(past == 0, float("-inf")).softmax(-1)
        y = (weights @ v).transpose(1, 2).contiguous().view(b, t, c)
        return self.out(y)


class Feedforward(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.act, self.drop = nn.GELU(), nn.Dropout(0.1)

    def forward(self, x):
        return self.drop(self.down(self.act(self.up(x))))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln_2, self.mlp = nn.LayerNorm(width), Feedforward(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    """The graph of GPT-2 small; its tensors are narrow, because nobody looks at their values."""

    def __init__(self, layers: int = 12, width: int = 16, vocabulary: int = 50) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(32, width)
        self.drop = nn.Dropout(0.1)
        self.h = nn.ModuleList([Block(width, 4) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids, targets):
        x = self.drop(self.wte(ids) + self.wpe(torch.arange(ids.shape[1])))
        for block in self.h:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Bottleneck(nn.Module):
    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        after = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, after, 1, bias=False), nn.BatchNorm2d(after)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or before != after:
            conv = nn.Conv2d(before, after, 1, stride, bias=False)
            self.downsample = nn.Sequential(conv, nn.BatchNorm2d(after))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet50(nn.Module):
    """The graph of ResNet-50, narrow as well."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        before = width
        for level, n_blocks in enumerate((3, 4, 6, 3)):
            blocks = []
            for place in range(n_blocks):
                stride = 2 if level and not place else 1
                blocks.append(Bottleneck(before, width * 2**level, stride))
                before = 4 * width * 2**level
            setattr(self, f"layer{level + 1}", nn.Sequential(*blocks))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(before, 10)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class Recurrent(nn.Module):
    """A gated net by hand, with a branch that depends on the data."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.reads, self.keeps = nn.Linear(4, width), nn.Linear(width, width, bias=False)
        self.gate, self.out = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, x, state):
        for t in range(x.shape[0]):
            new = torch.tanh(self.reads(x[t]) + self.keeps(state))
            if new.sum() > 0:
                new = new * 0.9
            gate = torch.sigmoid(self.gate(new))
            state = gate * new + (1 - gate) * state
        return self.out(state)


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))


def gpt2(layers: int = 12):
    ids = torch.arange(12).reshape(1, 12)
    return GPT2(layers), (ids, ids)


def resnet50():
    return ResNet50(), (torch.ones(1, 3, 64, 64),)


def recurrent(steps: int):
    torch.manual_seed(0)  # its weights decide which steps take the branch
    generator = torch.Generator().manual_seed(0)
    return Recurrent(), (torch.randn(steps, 2, 4, generator=generator), torch.zeros(2, 8))


# --- what can be measured of a drawing -----------------------------------------------------------


def lines_of(placed: Layout) -> list[Line]:
    return [(route.source, route.target, route.points) for route in placed.routes]


def boxes_of(placed: Layout) -> list[tuple[int, float, float, float, float]]:
    return [box[:5] for box in placed.boxes]


def length(lines: list[Line]) -> float:
    return sum(
        ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
        for _, _, points in lines
        for (x0, y0), (x1, y1) in pairwise(points)
    )


def crossings(lines: list[Line]) -> int:
    """Pairs of segments that cross; not those of edges that share an end, which part or meet."""
    pieces = sorted(
        (min(a[1], b[1]), max(a[1], b[1]), a, b, source, target)
        for source, target, points in lines
        for a, b in pairwise(points)
    )
    tops = [piece[0] for piece in pieces]
    total = 0
    for at, (_, bottom, a, b, source, target) in enumerate(pieces):
        for other in pieces[at + 1 : bisect_right(tops, bottom)]:
            c, d = other[2:4]
            if source != other[4] and target != other[5] and _cross(a, b, c, d):
                total += 1
    return total


def _cross(a, b, c, d) -> bool:
    def side(p, q, r):
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0


def through_boxes(lines: list[Line], boxes, ends: Sequence[int]) -> list[tuple[int, int, int]]:
    """Edges that pass through a box or frame in which neither of their ends lies: by points."""
    found = []
    for source, target, points in lines:
        foreign = [
            box
            for box in boxes
            if not box[0] <= source < ends[box[0]] and not box[0] <= target < ends[box[0]]
        ]
        ways = list(_walk(points))
        low, high = min(y for _, y in ways), max(y for _, y in ways)
        for item, x, y, width, height in foreign:
            if y > high or y + height < low:
                continue
            inside = (x + 0.5 < px < x + width - 0.5 for px, _ in ways)
            if any(
                is_in and y + 0.5 < py < y + height - 0.5
                for is_in, (_, py) in zip(inside, ways, strict=True)
            ):
                found.append((source, target, item))
    return found


def _walk(points) -> Iterator[tuple[float, float]]:
    """Points on the drawn curve, close to each other: `M x0 y0 C x0 half x1 half x1 y1`."""
    for (x0, y0), (x1, y1) in pairwise(points):
        n_steps = 2 + int((abs(x1 - x0) + abs(y1 - y0)) / 4)
        straight = x0 == x1 or y0 == y1
        for step in range(n_steps + 1):
            t = step / n_steps
            if straight:
                yield x0 + t * (x1 - x0), y0 + t * (y1 - y0)
            else:  # both handles at half the height
                half, s = (y0 + y1) / 2, 1 - t
                x = (s**3 + 3 * s * s * t) * x0 + (3 * s * t * t + t**3) * x1
                yield x, s**3 * y0 + (3 * s * s * t + 3 * s * t * t) * half + t**3 * y1
