"""What does watching cost, and is it right? `python benchmarks/graph.py` prints figures and bars.

Five models, each step in random order with and without watching, in one process with one thread:
CPU time, medians with their spread; ratios are medians of what stood side by side in one round.
Garbage is collected before each step, which then runs twice, the first time to warm up; the
collector is on, as in a notebook (`record` lets it rest by itself). Exits with 1 when a bar is
missed.

    --peer NAME     torchlens or torchview in the same rounds, if it is installed; one at a time,
                    since torchlens changes all of torch, and torchview never ends after it
    --only NAMES    some of the models
    --quick         three rounds instead of up to a hundred: to see that it runs
"""

import argparse
import functools
import gc
import importlib
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import graph_truth
import torch
from models import MODELS, loss_of

from pytorch_lab import graph

Work = Callable[[], Any]


class Bar(NamedTuple):
    """A figure that must not be more than its limit; without one it is shown for its own sake."""

    says: str
    figure: float
    limit: float | None = None
    unit: str = "x"
    spread: str = ""

    def __str__(self) -> str:
        digits = 2 if self.unit in ("x", "MB", "ms") else 0
        limit = "" if self.limit is None else f"bar {self.limit:g} {self.unit}"
        verdict = "" if self.limit is None else "MISSED" if self.missed else "ok"
        figure = f"{self.figure:,.{digits}f} {self.unit}"
        return f"  {self.says:<46}{figure:>16}  {self.spread:<22}{limit:<15}{verdict}"

    @property
    def missed(self) -> bool:
        """Whether the figure is over its limit."""
        return self.limit is not None and self.figure > self.limit


# ------------------------------------------------------------------------------------------- time


def rounds(works: dict[str, Work], repetitions: int, before: Work) -> dict[str, list[float]]:
    """CPU milliseconds of each work in each round, in random order, after one round to warm up."""
    names = list(works)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(repetitions + 1):
        random.shuffle(names)
        for name in names:
            before()
            gc.collect()
            works[name]()  # after a collection all caches are cold, which is no part of the work
            before()
            start = time.process_time()
            kept = works[name]()
            elapsed = time.process_time() - start
            del kept
            if turn:
                times[name].append(1000 * elapsed)
    return times


def spread(times: list[float]) -> str:
    """`(0.31 to 0.44)`."""
    return f"({min(times):.2f} to {max(times):.2f})"


def against(times: dict[str, list[float]], name: str, plain: str) -> list[float]:
    """The ratios of what ran in the same round."""
    return [one / other for one, other in zip(times[name], times[plain], strict=True)]


def capture(model: torch.nn.Module, inputs: Any, name: str, args: Any) -> list[Bar]:
    """Forward and backward, watched and not."""
    works = {
        "plain step": lambda: loss_of(model, inputs).backward(),
        "values='none'": lambda: watched(model, inputs, "none"),
        "  the same, every part read": lambda: with_parts(model, inputs, "none"),
        "values='summary'": lambda: watched(model, inputs, "summary"),
    }
    if args.peer and (args.peer, name) not in ENDLESS:
        works |= peer(args.peer, model, inputs)
    before = functools.partial(model.zero_grad, set_to_none=True)
    times = rounds(works, args.rounds or MODELS[name].repetitions, before)
    bars = [Bar("plain step", statistics.median(times["plain step"]), unit="ms",
                spread=spread(times["plain step"]))]  # fmt: skip
    for work in works:
        if work == "plain step":
            continue
        ratios = against(times, work, "plain step")
        limit = {"ResNet-50": 1.15, "GPT-2": 1.15, "MLP": None}.get(name, 2.5)
        limit = limit if work == "values='none'" else None
        says = f"record(backward=True, {work})" if "values" in work else work
        bars.append(Bar(says, statistics.median(ratios), limit, spread=spread(ratios)))
    if name == "MLP":
        more = [b - a for a, b in zip(times["plain step"], times["values='none'"], strict=True)]
        bars.append(Bar("  the same, more than the plain step", statistics.median(more), 1.0, "ms",
                        spread(more)))  # fmt: skip
    return bars


def watched(model: torch.nn.Module, inputs: Any, values: str) -> graph.GraphRecord:
    """One step, recorded; it must have been recorded whole."""
    record = graph.record(loss_of, model, inputs, backward=True, values=values)
    if record.error or not record.backward_order:
        raise RuntimeError(f"expected a whole record, got {record!r} with {record.error}")
    return record


def with_parts(model: torch.nn.Module, inputs: Any, values: str) -> graph.GraphRecord:
    """The same, with the records of ops, nodes and values, which are made when first asked for."""
    record = watched(model, inputs, values)
    if not (record.ops and record.nodes and record.values):
        raise RuntimeError(f"expected a whole record, got {record!r}")
    return record


def stepped(model: torch.nn.Module, inputs: Any, name: str, args: Any) -> list[Bar]:
    """Backward node by node: its time over that of backward alone, and its gradients."""
    ready: list[Any] = []

    def forward() -> None:
        """A new graph, and no gradients; not timed."""
        ready.clear()
        model.zero_grad(set_to_none=True)
        torch.manual_seed(1)
        ready.append(graph.record(loss_of, model, inputs, values="none", keep_graph=True))
        ready.append(ready[0]._results[0])

    def step() -> None:
        stepper = ready[0].stepper()
        while not stepper.done:
            stepper.step()

    def backward() -> None:
        ready[1].backward()

    times = rounds({"stepped": step, "backward()": backward},
                   args.rounds or max(5, MODELS[name].repetitions), forward)  # fmt: skip
    ratios = against(times, "stepped", "backward()")
    found = []
    for way in (backward, step):
        forward()
        way()
        found.append([None if p.grad is None else p.grad.clone() for p in model.parameters()])
    ready.clear()
    other = sum(
        (a is None) != (b is None) or (a is not None and b is not None and not torch.equal(a, b))
        for a, b in zip(*found, strict=True)
    )
    return [
        Bar("stepped node by node, over backward()", statistics.median(ratios), 1.3,
            spread=spread(ratios)),
        Bar("  gradients that are not bit-equal", other, 0, "", f"of {len(found[0])}"),
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------ peers


ENDLESS = {("torchlens", "20k nodes")}  # it was stopped after minutes


PEERS: dict[str, Callable[[Any, torch.nn.Module, Any], Any]] = {
    "torchlens": lambda lens, model, inputs: lens.trace(model, inputs),
    "torchview": lambda view, model, inputs: view.draw_graph(model, input_data=inputs, depth=10),
}


def peer(name: str, model: torch.nn.Module, inputs: Any) -> dict[str, Work]:
    """What else is installed; it watches the forward alone."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        print(f"  {name} is not installed")
        return {}
    return {name: functools.partial(PEERS[name], module, model, inputs)}


# ------------------------------------------------------------------------------------------- main


def held(model: torch.nn.Module, inputs: Any, name: str) -> list[Bar]:
    """What a record weighs, and what of torch it keeps alive."""
    limit = {"ResNet-50": 2.0, "GPT-2": 2.0, "RNN": 10.0}.get(name)
    bars = []
    for values in ("none", "summary"):
        found = graph_truth.held(model, lambda v=values: with_parts(model, inputs, v))
        says = f"held by the record, values={values!r}"
        bars.append(Bar(says, found.megabytes, limit, "MB"))
        bars.append(Bar("  tensors and graphs of the reader kept alive", found.alive, 0, ""))
    return bars


def spans(model: torch.nn.Module, inputs: Any) -> list[Bar]:
    """Whether each op knows its line and its columns."""
    found = graph_truth.spans(lambda: with_parts(model, inputs, "none"))
    lines = 100 * (1 - found.lines / found.ops)
    columns = 100 * (1 - found.columns / found.ops)
    return [
        Bar(f"ops on a wrong line: {lines:.1f} % right", found.lines, 0, "", f"of {found.ops}"),
        Bar(f"ops with wrong columns: {columns:.1f} % right", found.columns, found.ops // 20,
            "", f"of {found.ops}"),
    ]  # fmt: skip


def whole(model: torch.nn.Module, inputs: Any) -> list[Bar]:
    """Whether the record has all nodes of torch's graph, and can be shown in every form."""
    found = graph_truth.failures(model, inputs, loss_of)
    return [Bar("failures" + (f": {'; '.join(found)}" if found else ""), len(found), 0, "")]


def judge(name: str, args: argparse.Namespace) -> Iterator[Bar]:
    """All figures of one model."""
    torch.manual_seed(0)
    model, inputs = MODELS[name].build()
    yield from whole(model, inputs)
    yield from capture(model, inputs, name, args)
    yield from stepped(model, inputs, name, args)
    yield from held(model, inputs, name)
    yield from spans(model, inputs)


def main() -> int:
    """Print the table; 1 if a bar was missed."""
    parser = argparse.ArgumentParser(description="What does watching cost, and is it right?")
    parser.add_argument("--peer", choices=list(PEERS))
    parser.add_argument("--only", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--quick", action="store_const", const=3, dest="rounds")
    args = parser.parse_args()
    torch.set_num_threads(1)
    random.seed(0)
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, 1 thread, CPU time")
    missed = []
    for name in args.only:
        print(f"{name}: {MODELS[name].what}")
        for bar in judge(name, args):
            print(bar, flush=True)
            if bar.missed:
                missed.append(f"{name}: {bar.says.strip()}")
    print(f"{len(missed)} bars missed" + "".join(f"\n  {one}" for one in missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
