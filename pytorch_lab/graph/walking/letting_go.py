"""A long graph that was looked at can be let go of.

Torch takes a graph apart node by node, without recursion. But a node that Python has seen keeps its
Python object for as long as it lives, and such nodes are taken apart from within one another: at
some 50,000 in a row the stack of C is full, and the process ends with a segmentation fault, long
after whoever looked is gone. Python's own tuples have a way out of that: where many die within one
another, the rest waits until the stack is short again. So here and there a node is given a tuple
that holds the ones behind it.
"""

from collections.abc import Sequence
from typing import Any

LONG = 10_000  # nodes; five times as many are still fine
_APART = 50  # on each way; tuples begin to wait at 50 within one another
_KEY = "pytorch_lab: next"


def is_chosen(sequence: int) -> bool:
    """Whether a node that is seen while its graph still grows shall hold those behind it.

    About one in 32 is, scattered by its number, so that no chain of many goes without.

    Example:
        >>> sum(map(is_chosen, range(100_000))) * 32 // 10_000
        10
    """
    return not (sequence * 0x9E3779B1) & 0x1F00000


def hold_next(node: Any) -> None:
    """Give a node a tuple of those behind it."""
    behind = tuple([there for there, _ in node.next_functions if there is not None])
    if behind:
        node.metadata[_KEY] = behind


def ease(nodes: Sequence[Any], targets: Sequence[tuple[int, ...]], start: int) -> None:
    """Make sure that nodes can die, whoever lets go of them last.

    Args:
        nodes: of a graph, and
        targets: the places of those behind each.
        start: the places before this one are done already.
    """
    ages = [node._sequence_nr() for node in nodes[start:]]
    ways = [0] * len(nodes)  # on the longest way to each, the nodes since the last with a tuple
    for age in sorted(range(len(ages)), key=ages.__getitem__, reverse=True):
        here = start + age
        behind = targets[here]
        if ways[here] >= _APART and behind:
            hold_next(nodes[here])
            ways[here] = 0
        way = ways[here] + 1
        for there in behind:
            if ways[there] < way:
                ways[there] = way
