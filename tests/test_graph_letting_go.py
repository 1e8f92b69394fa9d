"""A long graph that was looked at dies like one that was not; in Pythons that may crash."""

import subprocess
import sys
from collections.abc import Iterable

import pytest
import torch

from pytorch_lab.graph import of
from pytorch_lab.graph.walking.autograd import walk
from pytorch_lab.graph.walking.letting_go import ease

CHAIN = """
y = x
for _ in range(N):
    y = y * 1.0
loss = y.sum()
del y
"""
LADDER = """
y = z = x
for _ in range(N // 3):
    y, z = y * 1.0, (z + y) * 1.0
loss = (y + z).sum()
del y, z
"""
RECORDED = """
def run():
    y = x
    for _ in range(N):
        y = y * 1.0
    return y.sum()
"""
DROPPED = """
w, b = torch.ones(1, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
def run():
    y = torch.ones(1, 1)
    for _ in range(N):
        y = torch.nn.functional.linear(y, w, b)
"""
WAYS = {
    "of, then the loss": CHAIN + "r = of(loss); del loss",
    "of a ladder": LADDER + "r = of(loss); del loss",
    "handles, the oldest last": CHAIN
    + "live = walk([loss]); some = list(live.nodes); del live, loss\nwhile some: some.pop(0)",
    "a graph that is gone before the recording ends": DROPPED + "r = record(run, values='none')",
    "a recording": RECORDED + "r = record(run, values='none', keep_graph=True); r.release(); del r",
}


def run(n: int, ways: Iterable[str]) -> subprocess.CompletedProcess[str]:
    head = f"""
import torch
from pytorch_lab.graph import of, record
from pytorch_lab.graph.walking.autograd import walk
from pytorch_lab.graph.walking.letting_go import ease
N = {n}
x = torch.ones(1, requires_grad=True)
"""
    bodies = [f"{WAYS[way]}\nprint({way!r}, flush=True)\n" for way in ways]
    return subprocess.run(
        [sys.executable, "-c", head + "\n".join(bodies)], capture_output=True, text=True
    )


@pytest.mark.heavy
def test_long_graphs_die_in_peace() -> None:
    done = run(70_000, WAYS)
    assert done.stdout.splitlines() == list(WAYS), done.stderr
    assert done.returncode == 0


@pytest.mark.heavy
def test_300_000_nodes_too() -> None:
    done = run(300_000, ["of, then the loss"])
    assert (done.returncode, done.stdout) == (0, "of, then the loss\n"), done.stderr


def test_short_graphs_are_left_alone() -> None:
    loss = torch.ones(2, requires_grad=True).exp().sum()
    of(loss)
    assert all(not node.metadata for node in walk([loss]).nodes)


class Link:
    """What `ease` asks of a node."""

    def __init__(self, number: int, behind: "Link | None") -> None:
        self.number, self.metadata = number, {}
        self.next_functions = () if behind is None else ((behind, 0),)

    def _sequence_nr(self) -> int:
        return self.number


@pytest.mark.parametrize("stride", [1, 722, 2455, 2**25])
def test_no_way_goes_without_for_long(stride: int) -> None:
    """Whatever else was made between two nodes of a chain; 2455 is where a hash would fail."""
    chain: list[Link] = []
    for number in range(1000):
        chain.append(Link(1 + number * stride, chain[-1] if chain else None))
    chain.reverse()
    ease(chain, [(place + 1,) for place in range(999)] + [()], 0)
    holding = [place for place, node in enumerate(chain) if node.metadata]
    ways = [b - a for a, b in zip([0, *holding], [*holding, 999], strict=True)]
    assert max(ways) <= 51
