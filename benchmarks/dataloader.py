"""What does timing a loader cost? `python benchmarks/dataloader.py` prints it beside a plain epoch.

A training epoch of a digits network (scikit-learn's 1,797 pictures of 8 × 8), once plain and once
inside `time_loader`, in turn. Measured is CPU time, so that what else runs on the machine does not
count: of this process until the last step is done, and of the workers until they end. The bar, 5 %,
is on the medians. The whole call costs a little more by what it does once, after the epoch: it puts
back what was trained, and asks the system for the memory of each worker.
"""

import resource
import statistics
import sys
from collections.abc import Callable

import torch
from digits import digits, network
from torch import nn
from torch.utils.data import DataLoader

from pytorch_lab.dataloader import time_loader

REPETITIONS = 15
BAR = 1.05


def training() -> Callable[[list[torch.Tensor]], None]:
    """A step as people write it."""
    torch.manual_seed(0)
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    def step(batch: list[torch.Tensor]) -> None:
        x, y = batch
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    return step


def cpu(who: int = resource.RUSAGE_SELF) -> float:
    """Seconds of this process, or of its ended children."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def cost(work: Callable[[Callable[..., None]], object], step: Callable[..., None]) -> list[float]:
    """CPU seconds until the last step is done, with the workers'; and of the whole call."""
    ends = [0.0]

    def counted(batch: list[torch.Tensor]) -> None:
        step(batch)
        ends[0] = cpu()

    start, of_workers = cpu(), cpu(resource.RUSAGE_CHILDREN)
    work(counted)
    whole, of_workers = cpu() - start, cpu(resource.RUSAGE_CHILDREN) - of_workers
    return [ends[0] - start + of_workers, whole + of_workers]


def main() -> None:
    """Print the table; the exit code is 1 if a bar is missed."""
    torch.set_num_threads(1)
    data, missed = digits(), False
    print(f"torch {torch.__version__}, 1 thread, CPU ms, medians of {REPETITIONS} in turn")
    print(f"{'':<36}{'plain':>10}{'timed':>10}{'ratio':>8}{'whole call':>12}")
    for workers, batch_size in ((0, 32), (0, 64), (2, 64)):
        loader = DataLoader(data, batch_size=batch_size, shuffle=True, num_workers=workers)
        step = training()

        def plain(step: Callable[..., None], loader: DataLoader = loader) -> None:
            for batch in loader:
                step(batch)

        def timed(step: Callable[..., None], loader: DataLoader = loader) -> None:
            time_loader(loader, step, batches=len(loader), workers=())

        cost(plain, step), cost(timed, step)
        pairs = [(cost(plain, step), cost(timed, step)) for _ in range(REPETITIONS)]
        before = 1000 * statistics.median(one[0] for one, _ in pairs)
        after, whole = (1000 * statistics.median(one[k] for _, one in pairs) for k in (0, 1))
        missed |= after / before > BAR
        name = f"an epoch, batches of {batch_size}, {workers} workers"
        print(f"{name:<36}{before:10.1f}{after:10.1f}{after / before:8.3f}{whole:12.1f}")
    if missed:
        sys.exit(f"missed: time_loader costs more than {BAR - 1:.0%} of an epoch")


if __name__ == "__main__":
    main()
