"""What does watching a loop cost? `python benchmarks/loop.py` prints it beside plain training.

A digits network (scikit-learn's 1,797 pictures of 8 × 8) is trained plainly and beside it inside
`loop.progress` with its loss logged, then plainly and beside it as an order of steps in
`loop.run`, which measures norms and motion in every turn. The two take turns batch by batch, a few
milliseconds each, so that a busy machine slows both alike. Measured is CPU time of this process,
the fetching of the batch included; the bar, 10 %, is on the medians of the turns. What `loop.run`
does once beside them (copies of the model and the optimizer, seeds) stands in the last column.
"""

import io
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any

import torch
from digits import digits, network
from torch import nn
from torch.utils.data import DataLoader

from pytorch_lab import loop

EPOCHS = 20
BAR = 1.10


class Tty(io.StringIO):
    """A terminal that nobody reads: the bar is drawn as often as on a real one."""

    def isatty(self) -> bool:
        """It says so."""
        return True


class Training:
    """A network that is trained as people write it, a batch at a time."""

    def __init__(self, loader: DataLoader) -> None:
        torch.manual_seed(0)
        self.loader, self.net, self.losses = loader, network(), list[float]()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        self.batches: Iterator = chain.from_iterable(repeat(loader))

    def step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """One batch."""
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.net(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    def turn(self) -> None:
        """One batch, fetched, with the loss kept as a number."""
        self.losses.append(self.step(*next(self.batches)).item())


def milliseconds(work: Callable[[], object]) -> float:
    """CPU time of a piece of work."""
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def barred(loader: DataLoader) -> tuple[float, float]:
    """A plain turn, and one with a progress bar."""
    plain, other = Training(loader), Training(loader)
    rows = []
    for _ in range(EPOCHS):
        bar = loop.progress(loader, "epoch", file=Tty())
        batches = iter(bar)

        def turn(bar: Any = bar, batches: Iterator = batches) -> None:
            bar.log(loss=other.step(*next(batches)))

        rows += [(milliseconds(plain.turn), milliseconds(turn)) for _ in range(len(loader))]
        for _ in batches:  # it ends, and says so
            pass
    return medians(rows)


def measured(loader: DataLoader) -> tuple[float, float, float]:
    """A plain turn, one of `loop.run`, and what a run does once."""
    plain, other = Training(loader), Training(loader)
    rows, ended = [], 0.0

    def beside(_: loop.Here) -> None:
        """The last step of the order: the plain turn, whose time is not the run's."""
        nonlocal ended
        run = 1000 * (time.process_time() - ended)
        rows.append((milliseconds(plain.turn), run))
        ended = time.process_time()

    def runs(turns: int, *more: Callable[[loop.Here], None]) -> None:
        loop.run(
            [*loop.RIGHT, *more], turns=turns, model=other.net, batches=loader,
            optimizer=other.optimizer, loss_fn=nn.functional.cross_entropy,
        )  # fmt: skip

    runs(EPOCHS * len(loader), beside)
    turn, run = medians(rows[1:])  # before the first, the batches were fetched
    fetch = milliseconds(lambda: list(loader)) / len(loader)
    once = statistics.median(milliseconds(lambda: runs(1)) for _ in range(EPOCHS))
    return turn, run + fetch, once - run - fetch


def medians(rows: list[tuple[float, float]]) -> tuple[float, float]:
    """Of each column."""
    one, other = map(statistics.median, zip(*rows, strict=True))
    return one, other


def main() -> int:
    """Print the table; 1 when a bar is missed."""
    torch.set_num_threads(1)
    data, missed = digits(), False
    print(f"torch {torch.__version__}, 1 thread, CPU ms of a turn, medians of {EPOCHS} epochs")
    print(f"{'':<16}{'plain':>8}{'progress':>10}{'ratio':>8}", end="")
    print(f"{'plain':>10}{'loop.run':>10}{'ratio':>8}{'once':>8}")
    for batch_size in (32, 64):
        loader = DataLoader(data, batch_size=batch_size, shuffle=True)
        plain, bar = barred(loader)
        bare, run, once = measured(loader)
        missed |= max(bar / plain, run / bare) > BAR
        print(f"batches of {batch_size:<5}{plain:8.2f}{bar:10.2f}{bar / plain:8.3f}", end="")
        print(f"{bare:10.2f}{run:10.2f}{run / bare:8.3f}{once:8.1f}")
    print(f"the bar: {BAR - 1:.0%} of a turn")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
