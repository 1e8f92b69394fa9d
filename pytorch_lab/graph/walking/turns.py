"""In which order torch's engine takes the nodes of a graph.

Of the nodes that have all their gradients the youngest runs first, and an AccumulateGrad before all
others. As a node is younger than those that it hands its gradients to, that is the order of age,
with each leaf behind the last node that it waits for. Only after writing in place into a view can
a node be older than the next one; then the turns are found step by step.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import chain
from operator import itemgetter

from pytorch_lab.graph.schema import Node

_sequence = itemgetter(Node._fields.index("sequence"))
Targets = Sequence[tuple[int, ...]]  # where the gradients of each node go
_FIRST = float("-inf")  # the turn of an AccumulateGrad


def waiting_for(targets: Targets, start: int) -> dict[int, int]:
    """How many gradients each node behind `start` gets before it is ready; `targets` as below.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph.walking.autograd import walk
        >>> x = torch.ones(2, requires_grad=True)
        >>> waiting_for(walk([x * x]).next, 0)
        {0: 0, 1: 2}
    """
    counts = {start: 0}
    stack = [start]
    while stack:
        for there in targets[stack.pop()]:
            if there in counts:
                counts[there] += 1
            else:
                counts[there] = 1
                stack.append(there)
    return counts


def turns(targets: Targets, nodes: Sequence[Node], start: int) -> list[int]:
    """The places of the nodes behind `start`, in the order in which torch's engine takes them.

    Args:
        targets: `live.next`.
        nodes: the records of the graph.
        start: where backward begins.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph.walking.autograd import walk
        >>> from pytorch_lab.graph.walking.frozen import freeze
        >>> x = torch.ones(2, requires_grad=True)
        >>> live = walk([x.exp() + x.sin()])
        >>> nodes = freeze(live)
        >>> [nodes[place].name for place in turns(live.next, nodes, 0)]
        ['AddBackward0', 'SinBackward0', 'ExpBackward0', 'AccumulateGrad']
    """
    ages = list(map(_sequence, nodes))
    reached = {*chain.from_iterable(targets)}
    alone = start not in reached and len(reached) == len(nodes) - 1  # all is behind `start`
    keys = _by_age(targets, ages) if alone else None
    if keys is None:
        return _one_by_one(targets, ages, start)
    return sorted(range(len(nodes)), key=keys.__getitem__, reverse=True)


def _by_age(next_of: Targets, ages: list[int]) -> list[float] | None:
    """What to sort the places by, the largest first; None if a node is older than its next."""
    last: dict[int, int] = {}  # who is the last to give to a leaf
    for here, targets in zip(ages, next_of, strict=True):
        for there in targets:
            age = ages[there]
            if age < 0:
                if here <= last.get(there, here):
                    last[there] = here
            elif age >= here:
                return None
    keys: list[float] = [*ages]
    for leaf, here in last.items():
        keys[leaf] = here - 0.5
    return keys


def _one_by_one(targets: Targets, ages: list[int], start: int) -> list[int]:
    waiting = waiting_for(targets, start)
    order = []
    heap: list[tuple[float, int]] = [(0, start)]
    while heap:
        place = heappop(heap)[1]
        order.append(place)
        for there in targets[place]:
            waiting[there] -= 1
            if not waiting[there]:
                heappush(heap, (-ages[there] if ages[there] >= 0 else _FIRST, there))
    return order
