"""What does watching a loop cost? `python benchmarks/loop.py` prints it beside a plain epoch.

Training epochs of a digits network (scikit-learn's 1,797 pictures of 8 × 8), in turn: plain, inside
`loop.progress` with its loss logged, and as an order of steps in `loop.run`, which measures norms
and motion in every turn. Measured is CPU time of this process. The bar, 10 %, is on the medians
of the ratios. An epoch of `loop.run` is what two epochs cost more than one; what it does once
beside them (copies of the model and the optimizer, seeds) stands in the last column. That is a
difference of differences: on a busy machine it may come out negative, and says nothing then.
"""

import io
import statistics
import sys
import time
from collections.abc import Callable

import torch
from digits import digits, network
from torch import nn
from torch.utils.data import DataLoader

from pytorch_lab import loop

REPETITIONS = 15
BAR = 1.10


class Tty(io.StringIO):
    """A terminal that nobody reads: the bar is drawn as often as on a real one."""

    def isatty(self) -> bool:
        """It says so."""
        return True


class Training:
    """A network, and an epoch of it in three ways."""

    def __init__(self, loader: DataLoader) -> None:
        torch.manual_seed(0)
        self.loader, self.net = loader, network()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)

    def step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """One batch."""
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.net(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    def plain(self) -> None:
        """As people write it, with the loss kept as a number."""
        losses = []
        for x, y in self.loader:
            losses.append(self.step(x, y).item())

    def barred(self) -> None:
        """With a progress bar."""
        for x, y in (bar := loop.progress(self.loader, "epoch", file=Tty())):
            bar.log(loss=self.step(x, y))

    def measured(self, epochs: int = 1) -> None:
        """As an order of steps."""
        loop.run(
            turns=epochs * len(self.loader), model=self.net, batches=self.loader,
            optimizer=self.optimizer, loss_fn=nn.functional.cross_entropy,
        )  # fmt: skip


def cost(work: Callable[[], None]) -> float:
    """CPU milliseconds."""
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def main() -> int:
    """Print the table; 1 when a bar is missed."""
    torch.set_num_threads(1)
    data, missed = digits(), False
    print(f"torch {torch.__version__}, 1 thread, CPU ms of an epoch, medians of {REPETITIONS}")
    print(
        f"{'':<22}{'plain':>9}{'progress':>10}{'ratio':>8}{'loop.run':>10}{'ratio':>8}{'once':>8}"
    )
    for batch_size in (32, 64):
        training = Training(DataLoader(data, batch_size=batch_size, shuffle=True))
        ways = (
            training.plain,
            training.barred,
            training.measured,
            lambda t=training: t.measured(2),
        )
        for way in ways:
            way()
        rows = [[cost(way) for way in ways] for _ in range(REPETITIONS)]
        # Within a turn of all ways the machine is equally busy: ratios first, then their median.
        bar = statistics.median(barred / plain for plain, barred, _, _ in rows)
        run = statistics.median((double - single) / plain for plain, _, single, double in rows)
        plain, barred, single, double = map(statistics.median, zip(*rows, strict=True))
        missed |= max(bar, run) > BAR
        print(
            f"batches of {batch_size:<11}{plain:9.1f}{barred:10.1f}{bar:8.3f}"
            f"{double - single:10.1f}{run:8.3f}{2 * single - double:8.1f}"
        )
    print(f"the bar: {BAR - 1:.0%} of an epoch")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
