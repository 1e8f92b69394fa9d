"""What does it cost to be told which derivative is wrong? `python benchmarks/customop.py`.

CPU time of this process, one thread, medians of interleaved repetitions: `customop.check` beside
`torch.autograd.gradcheck` on the same function and the same numbers in double precision. Both
compute the same two Jacobians; gradcheck then says yes or raises, and we keep every derivative,
judge it, and ask backward some more. On a wrong function gradcheck stops at the first mismatch of
an output and an input.

Exits with 1 when the bar is missed: at most twice gradcheck's time on a right function.
"""

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from pytorch_lab import customop

REPETITIONS = 7
BAR = 2.0


class RowNorm(Function):
    """Rows of root mean square 1, by hand."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor) -> Tensor:
        """The formula: x / r * gain."""
        r = (x.square().mean(-1, keepdim=True) + 1e-3).sqrt()
        ctx.save_for_backward(x, gain, r)
        return x / r * gain

    @classmethod
    def backward(cls, ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        """As derived by hand."""
        x, gain, r = ctx.saved_tensors
        h = grad_output * gain
        by_x = (h - x * (h * x).mean(-1, keepdim=True) / r.square()) / r
        return by_x, (grad_output * x / r).sum(0)


class WrongNorm(RowNorm):
    """The same with a term that is missing."""

    @classmethod
    def backward(cls, ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        """With r held still."""
        x, gain, r = ctx.saved_tensors
        return grad_output * gain / r, (grad_output * x / r).sum(0)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One head."""
    return (q @ k.T).softmax(-1) @ v


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "sin, 64 numbers": (torch.sin, ((64,),)),
    "x @ w + b, 8 rows": (lambda x, w, b: x @ w + b, ((8, 6), (6, 5), (5,))),
    "attention, 6 x 4": (attention, ((6, 4), (6, 4), (6, 4))),
    "RowNorm by hand, 8 x 8": (RowNorm.apply, ((8, 8), (8,))),
    "RowNorm by hand, wrong": (WrongNorm.apply, ((8, 8), (8,))),
}


def cpu_s(work: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compared(fn: Callable[..., Any], inputs: list[Tensor]) -> tuple[float, float, float, float]:
    """Medians of gradcheck and of ours, and the lowest and highest ratio of a pair."""

    def peer() -> None:
        torch.autograd.gradcheck(fn, inputs, raise_exception=False)

    def ours() -> None:
        customop.check(fn, *inputs)

    peer(), ours()  # what is imported once
    pairs = [(cpu_s(peer), cpu_s(ours)) for _ in range(REPETITIONS)]
    ratios = [mine / theirs for theirs, mine in pairs]
    theirs, mine = (statistics.median(side) for side in zip(*pairs, strict=True))
    return theirs, mine, min(ratios), max(ratios)


def main() -> int:
    """Print the table; 1 when the bar is missed."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    print(f"torch {torch.__version__}, 1 thread, median of {REPETITIONS}")
    print(f"{'CPU ms':28}{'gradcheck':>11}{'check':>9}{'ratio':>8}  range")
    worst = 0.0
    for name, (fn, shapes) in CASES.items():
        inputs = [torch.randn(shape, dtype=torch.float64).requires_grad_() for shape in shapes]
        theirs, mine, low, high = compared(fn, inputs)
        ratio = mine / theirs
        print(
            f"{name:28}{1000 * theirs:11.1f}{1000 * mine:9.1f}{ratio:8.2f}  {low:.2f} to {high:.2f}"
        )
        if customop.check(fn, *inputs).ok:
            worst = max(worst, ratio)
    print(f"slowest on a right function: {worst:.2f} times gradcheck (bar: {BAR:g})")
    return 0 if worst <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
