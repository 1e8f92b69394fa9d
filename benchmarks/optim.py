"""What does looking ahead cost, and does a slider keep up? `python benchmarks/optim.py`.

CPU time of this process, one thread, medians of the repetitions, each beside the plain thing in the
same run: a bare loop of `scheduler.step()` for `trace_schedule`, a bare loop of gradient and
`optimizer.step()` for the slider of a race, the same epoch of a digits network for
`watch_schedule`.

Exits with 1 when a bar is missed: `trace_schedule` over 10,000 steps within 0.5 s for every
scheduler of torch, a slider's answer within 100 ms, a watched epoch within 1.1 times a plain one.
"""

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from digits import digits, network
from torch import nn
from torch.optim import SGD, Adam, AdamW, Muon, Optimizer, RMSprop
from torch.optim import lr_scheduler as S
from torch.optim.swa_utils import SWALR

import pytorch_lab as lab
from pytorch_lab import optim

STEPS = 10_000
REPETITIONS = 5
TRACE_BAR_S, SLIDER_BAR_S, WATCH_BAR = 0.5, 0.1, 1.1


def optimizer(groups: int = 2) -> Optimizer:
    """SGD with some groups."""
    return SGD([{"params": [torch.zeros(4)]} for _ in range(groups)], lr=0.1, momentum=0.9)


def chained(o: Optimizer) -> Any:
    """Two schedulers at once."""
    return S.ChainedScheduler([S.LinearLR(o, 0.1, total_iters=500), S.ExponentialLR(o, 0.9999)])


def sequential(o: Optimizer) -> Any:
    """One after the other."""
    parts = [S.LinearLR(o, 0.1, total_iters=500), S.CosineAnnealingLR(o, STEPS - 500)]
    return S.SequentialLR(o, parts, [500])


SCHEDULERS: dict[str, Callable[[Optimizer], Any]] = {
    "LambdaLR": lambda o: S.LambdaLR(o, lambda k: 0.9999**k),
    "MultiplicativeLR": lambda o: S.MultiplicativeLR(o, lambda _k: 0.9999),
    "StepLR": lambda o: S.StepLR(o, 3000),
    "MultiStepLR": lambda o: S.MultiStepLR(o, [3000, 6000]),
    "ConstantLR": lambda o: S.ConstantLR(o, 0.5, 1000),
    "LinearLR": lambda o: S.LinearLR(o, 0.1, total_iters=STEPS),
    "ExponentialLR": lambda o: S.ExponentialLR(o, 0.9999),
    "PolynomialLR": lambda o: S.PolynomialLR(o, STEPS),
    "CosineAnnealingLR": lambda o: S.CosineAnnealingLR(o, STEPS),
    "CosineAnnealingWarmRestarts": lambda o: S.CosineAnnealingWarmRestarts(o, 500, 2),
    "CyclicLR": lambda o: S.CyclicLR(o, 0.01, 0.1, 500),
    "OneCycleLR": lambda o: S.OneCycleLR(o, 0.1, STEPS),
    "SWALR": lambda o: SWALR(o, 0.05, 500),
    "ReduceLROnPlateau": lambda o: S.ReduceLROnPlateau(o, patience=500),
    "ChainedScheduler": chained,
    "SequentialLR": sequential,
    "LambdaLR, 20 groups": lambda _o: S.LambdaLR(optimizer(20), lambda k: 0.9999**k),
}

RACERS: dict[str, Callable[[Any], Optimizer]] = {
    "SGD": lambda p: SGD(p, lr=0.04),
    "momentum": lambda p: SGD(p, lr=0.04, momentum=0.9),
    "Nesterov": lambda p: SGD(p, lr=0.04, momentum=0.9, nesterov=True),
    "RMSprop": lambda p: RMSprop(p, lr=0.1),
    "Adam": lambda p: Adam(p, lr=0.3),
    "AdamW": lambda p: AdamW(p, lr=0.3),
    "Muon": lambda p: Muon(p, lr=0.3),
}


def plain_schedule(scheduler: Any) -> None:
    """What trace_schedule is measured against."""
    watches = isinstance(scheduler, S.ReduceLROnPlateau)
    for _ in range(STEPS):
        [float(group["lr"]) for group in scheduler.optimizer.param_groups]
        scheduler.step(1.0) if watches else scheduler.step()


def traced(scheduler: Any) -> None:
    """The same with everything that is said of it."""
    watches = isinstance(scheduler, S.ReduceLROnPlateau)
    optim.trace_schedule(scheduler, STEPS, metric=[1.0] * STEPS if watches else None)


def plain_race(surface: optim.Surface, steps: int) -> None:
    """All racers by hand, the gradient from autograd."""
    for name, make in RACERS.items():
        shape = (1, 2) if name == "Muon" else (2,)
        point = torch.nn.Parameter(torch.tensor(surface.start, dtype=torch.float64).view(shape))
        racer = make([point])
        for _ in range(steps):
            racer.zero_grad()
            x, y = point.flatten()
            surface.height(x, y).backward()
            racer.step()


def cost_s(
    prepare: Callable[[], Any], work: Callable[[Any], Any], repetitions: int = REPETITIONS
) -> float:
    """Median CPU seconds of `work` on what `prepare` makes anew."""
    times = []
    for _ in range(repetitions):
        given = prepare()
        start = time.process_time()
        work(given)
        times.append(time.process_time() - start)
    return statistics.median(times)


def schedules() -> float:
    """The table of the schedulers; the longest time."""
    print(f"{f'trace_schedule, {STEPS:,} steps':32}{'plain':>10}{'traced':>10}{'ratio':>8}   CPU s")
    worst = 0.0
    traced(S.StepLR(optimizer(), 10))  # what is imported once
    for name, make in SCHEDULERS.items():
        plain = cost_s(lambda make=make: make(optimizer()), plain_schedule)
        ours = cost_s(lambda make=make: make(optimizer()), traced)
        print(f"{name:32}{plain:10.3f}{ours:10.3f}{ours / plain:8.2f}")
        worst = max(worst, ours)
    return worst


def sliders() -> float:
    """The table of the sliders; the longest time."""
    print(f"{'a slider, 7 racers, 60 steps':32}{'plain':>10}{'slider':>10}{'ratio':>8}   CPU ms")
    worst = 0.0
    for where in ("ravine", "bowl", "saddle", "rosenbrock"):
        widget = lab.show(optim.trace_optimizer(RACERS, where))
        surface = optim.surface(where)
        stops = iter(range(1, 1000))
        plain_race(surface, 5)
        plain = cost_s(lambda: None, lambda _, s=surface: plain_race(s, 60))

        def move(_: Any, widget: Any = widget, stops: Any = stops) -> None:
            widget.on_tune(conditioning=5 + next(stops) / 100)

        ours = cost_s(lambda: None, move)
        print(f"{where:32}{1000 * plain:10.1f}{1000 * ours:10.1f}{ours / plain:8.2f}")
        worst = max(worst, ours)
    return worst


def epoch(*, watched: bool) -> None:
    """One epoch of a small convolutional network over the digits, its rate set in each batch."""
    (pictures, shown), net = digits().tensors, network()
    trained = SGD(net.parameters(), lr=0.05, momentum=0.9)
    scheduler = S.CosineAnnealingLR(trained, 57)
    with optim.watch_schedule(scheduler) if watched else nullcontext():
        for x, y in zip(pictures.split(32), shown.split(32), strict=True):
            trained.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            trained.step()
            scheduler.step()


def watching() -> float:
    """How much longer a watched epoch is, side by side."""
    epoch(watched=True)
    ratios = []
    for _ in range(3 * REPETITIONS):
        plain = cost_s(lambda: None, lambda _: epoch(watched=False), 1)
        ratios.append(cost_s(lambda: None, lambda _: epoch(watched=True), 1) / plain)
    return statistics.median(ratios)


def main() -> int:
    """Print the tables; 1 when a bar is missed."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"torch {torch.__version__}, 1 thread, median of {REPETITIONS}")
    longest, slowest, watched = schedules(), sliders(), watching()
    print(f"longest trace {longest:.3f} s (bar: {TRACE_BAR_S} s)")
    print(f"slowest slider {1000 * slowest:.0f} ms (bar: {1000 * SLIDER_BAR_S:.0f} ms)")
    print(f"a watched epoch of the digits over a plain one {watched:.3f} (bar: {WATCH_BAR})")
    met = longest <= TRACE_BAR_S and slowest < SLIDER_BAR_S and watched <= WATCH_BAR
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
