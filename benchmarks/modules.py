"""What does looking cost? `python benchmarks/modules.py` prints the table of this file's claim.

CPU time of this process, one thread, medians of the repetitions with their spread, each beside the
nearest thing that torch itself offers: `print(model)` for looking, a plain forward for watching.
"""

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from pytorch_lab.modules import describe

REPETITIONS = 7


class Block(nn.Module):
    """A pre-norm transformer block in GPT-2's shape."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, C) to (B, T, C)."""
        b, t, c = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """GPT-2 small by default: 124 M parameters with a tied head."""

    def __init__(self, layers: int = 12, width: int = 768, vocabulary: int = 50257) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(1024, width)
        self.blocks = nn.ModuleList([Block(width, width // 64) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """(B, T) numbers to (B, T, V) logits."""
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def thousand() -> nn.Module:
    """1,000 modules: 249 blocks of a layer, a norm and an activation, and their containers."""
    blocks = [
        nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.ReLU(inplace=True))
        for _ in range(249)
    ]
    return nn.Sequential(nn.Sequential(*blocks), nn.Linear(16, 2), nn.Softmax(-1))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Any, ...]]]] = {
    "GPT-2 small, 64 tokens": (GPT, lambda: (torch.randint(0, 50257, (1, 64)),)),
    "1,000 modules": (thousand, lambda: (torch.randn(8, 16),)),
}


def cost_ms(work: Callable[[], Any]) -> tuple[float, float, float]:
    """Median, smallest and largest CPU milliseconds of a call, after one to warm up."""
    work()
    times = []
    for _ in range(REPETITIONS):
        gc.collect()
        start = time.process_time()
        work()
        times.append(1000 * (time.process_time() - start))
    return statistics.median(times), min(times), max(times)


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, 1 thread, CPU ms, median (min to max) of {REPETITIONS}")
    print(f"{'':<24}{'':<28}{'ms':>26}{'ratio':>8}")
    for name, (make, inputs) in MODELS.items():
        model, x = make(), inputs()
        tree = describe(model, *x)
        rows: list[tuple[str, Callable[[], Any], str]] = [
            ("str(model)", lambda m=model: str(m), ""),
            ("describe(model)", lambda m=model: describe(m), "str(model)"),
            ("str(tree)", lambda t=tree: str(t), "str(model)"),
            ("model(x)", lambda m=model, x=x: m(*x), ""),
            ("describe(model, x)", lambda m=model, x=x: describe(m, *x), "model(x)"),
        ]
        known: dict[str, float] = {}
        print(f"{name}: {len(tree.modules):,} modules, {tree.n_parameters:,} parameters")
        for label, work, against in rows:
            median, least, most = cost_ms(work)
            known[label] = median
            ratio = f"{median / known[against]:.2f} x" if against else ""
            spread = f"{median:9.1f} ({least:.1f} to {most:.1f})"
            print(f"{'':<24}{label:<28}{spread:>26}{ratio:>8} {against}")


if __name__ == "__main__":
    main()
