"""Graphs of many kinds: each case builds a result and names the leaves that get a gradient."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.functional import embedding
from torch.utils.checkpoint import checkpoint

Case = Callable[[], tuple[torch.Tensor, list[torch.Tensor]]]


def leaf(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


class Two(torch.autograd.Function):
    """Two outputs, of which the second is often not used."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x.exp()

    @staticmethod
    def backward(ctx, product, exponential):
        x, y = ctx.saved_tensors
        return product * y + exponential * x.exp(), product * x


class NoZeros(torch.autograd.Function):
    """Wants None where no gradient comes, and gives None back for one of its inputs."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * 2, y * 3

    @staticmethod
    def backward(ctx, x, y):
        return None if x is None else x * 2, None if y is None else y * 3


class Gated(nn.Module):
    """An unrolled recurrent cell with a branch on a value."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.of_input = nn.Linear(size, size)
        self.of_state = nn.Linear(size, size)
        self.new = nn.Linear(size, size)

    def forward(self, x: torch.Tensor, steps: int) -> torch.Tensor:
        state = torch.zeros_like(x)
        for _ in range(steps):
            gate = torch.sigmoid(self.of_input(x) + self.of_state(state))
            state = gate * state + (1 - gate) * torch.tanh(self.new(state))
            if state.sum() > 0:
                state = state * 0.99
        return state.sum()


class Block(nn.Module):
    """One layer of a small GPT."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.first(x)).chunk(3, -1)
        mask = torch.ones(x.shape[1], x.shape[1]).tril() == 0
        scores = (q @ k.transpose(1, 2)) / q.shape[-1] ** 0.5
        x = x + self.out(scores.masked_fill(mask, float("-inf")).softmax(-1) @ v)
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


def chain(x: torch.Tensor, rounds: int) -> torch.Tensor:
    """A long chain with branches."""
    for i in range(rounds):
        x = x * 0.5 + (x + 1).tanh() if i % 2 else x * 0.9 - (x + 1) * 0.1
    return x.sum()


def mlp():
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    loss = nn.functional.cross_entropy(net(torch.randn(5, 8)), torch.tensor([0, 1, 2, 3, 0]))
    return loss, list(net.parameters())


def gpt():
    table, blocks = nn.Embedding(11, 16), nn.Sequential(Block(16), Block(16))
    tokens = torch.randint(11, (2, 6))
    logits = blocks(table(tokens)) @ table.weight.T
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    return loss, [*table.parameters(), *blocks.parameters()]


def recurrent():
    cell = Gated(4)
    x = leaf(2, 4)
    return cell(x, 20), [x, *cell.parameters()]


def branches():
    x = leaf(6)
    return chain(x, 40), [x]


def function_with_unused_output():
    x, y = leaf(3), leaf(3)
    product, _ = Two.apply(x, y)
    return product.sum(), [x, y]


def function_with_both_outputs():
    x, y = leaf(3), leaf(3)
    product, exponential = Two.apply(x, y)
    return (product * exponential).sum(), [x, y]


def function_that_wants_none():
    x, y = leaf(3), leaf(3)
    first, _ = NoZeros.apply(x.exp(), y.exp())
    return first.sum(), [x, y]


def views_and_in_place():
    x, y = leaf(4, 3), leaf(3)
    z = x * 2
    row = z[1]
    row.mul_(y)
    z[2:, 0].add_(1)
    z.relu_()
    return (z.t() @ z).sum(), [x, y]


def split_and_cat():
    x, y = leaf(6, 2), leaf(2, 2)
    first, second, third = x.split(2)
    return (torch.cat([second, y, first]) ** 2).sum() + torch.stack([third, y]).prod(), [x, y]


def lstm():
    net = nn.LSTM(3, 4, num_layers=2)
    x = leaf(5, 2, 3)
    out, (state, _) = net(x)
    return out.sum() + state.square().sum(), [x, *net.parameters()]


def transformer_layer():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1)
    x = leaf(4, 2, 8)
    return layer(x).square().sum(), [x, *layer.parameters()]


def convolutions():
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.Dropout(0.2),
        nn.MaxPool2d(2),
    )
    x = leaf(2, 2, 8, 8)
    return net(x).square().sum(), [x, *net.parameters()]


def checkpointed():
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.3), nn.Linear(4, 4), nn.Tanh())
    x = leaf(3, 4)
    return checkpoint(net, x * 2, use_reentrant=False).sum(), [x, *net.parameters()]


def checkpointed_reentrant():
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.3), nn.Linear(4, 4), nn.Tanh())
    x = leaf(3, 4)
    return checkpoint(net, x * 2, use_reentrant=True).sum(), [x, *net.parameters()]


def sparse_embedding():
    table = leaf(7, 3)
    few = embedding(torch.tensor([1, 2, 1]), table, sparse=True)
    more = embedding(torch.tensor([2, 5]), table, sparse=True)
    return few.square().sum() + more.exp().sum(), [table]


def sparse_and_dense():
    table = leaf(7, 3)
    few = embedding(torch.tensor([1, 2, 1]), table, sparse=True)
    return few.square().sum() + (table * 2).exp().sum(), [table]


def sparse_then_dense():
    """Backward brings two sparse gradients before the dense one."""
    table = leaf(7, 3)
    whole = (table * 2).exp().sum()
    few = embedding(torch.tensor([1, 2, 1]), table, sparse=True)
    more = embedding(torch.tensor([2, 5]), table, sparse=True)
    return whole + few.square().sum() + more.exp().sum(), [table]


def many_outputs():
    x = leaf(4, 5)
    best, _ = x.max(1)
    top, _ = x.topk(2, 1)
    first, *_ = x.unbind()
    return torch.where(best > 0, best, top.sum(1)).sum() + first.square().sum(), [x]


def casts():
    x, y = leaf(4, 3), leaf(3, dtype=torch.float64)
    half = x.to(torch.bfloat16) * 3
    return (half.double() * y).sum() + x.double().sum(), [x, y]


def broadcasts():
    x, y, z = leaf(4, 1, 3), leaf(5, 1), leaf(())
    return (x * y + z).square().mean(), [x, y, z]


def complex_numbers():
    x, y = leaf(4, dtype=torch.complex64), leaf(4)
    return torch.view_as_real(torch.fft.fft(x * y).exp() * 1j).square().sum(), [x, y]


def linear_algebra():
    x = leaf(3, 3)
    square = x @ x.T + 3 * torch.eye(3)
    values, vectors = torch.linalg.eigh(square)
    return torch.logdet(square) + (values * vectors[0]).sum() + torch.linalg.svdvals(x).sum(), [x]


def shared_leaf():
    x = leaf(3)
    return (x * x + x.exp() * x).sum(), [x]


def sum_of_two_leaves():
    """Both leaves get the very same gradient tensor."""
    x, y = leaf(3), leaf(3)
    return (x + y).square().sum() + (x + y).sum(), [x, y]


CASES: dict[str, Case] = {
    case.__name__: case
    for case in (
        mlp,
        gpt,
        recurrent,
        branches,
        function_with_unused_output,
        function_with_both_outputs,
        function_that_wants_none,
        views_and_in_place,
        split_and_cat,
        lstm,
        transformer_layer,
        convolutions,
        checkpointed,
        checkpointed_reentrant,
        sparse_embedding,
        sparse_and_dense,
        sparse_then_dense,
        many_outputs,
        casts,
        broadcasts,
        complex_numbers,
        linear_algebra,
        shared_leaf,
        sum_of_two_leaves,
    )
}


def build(name: str) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The same numbers each time."""
    torch.manual_seed(0)
    return CASES[name]()


def bits(leaves: list[torch.Tensor]) -> list[tuple[object, ...] | None]:
    """The gradients of leaves, such that equal means equal to the last bit."""
    found: list[tuple[object, ...] | None] = []
    for one in leaves:
        if one.grad is None:
            found.append(None)
            continue
        layout, grad = one.grad.layout, one.grad.detach().to_dense().contiguous()
        found.append((layout, grad.dtype, tuple(grad.shape), grad.numpy().tobytes()))
    return found
