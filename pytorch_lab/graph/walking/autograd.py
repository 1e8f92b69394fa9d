"""Walk torch's own graph: from a result back to the leaves.

    live = walk([loss])         # torch's nodes, held alive

`Live` holds torch's nodes, and with them every tensor that they saved: keep it for as long as it is
looked at, no longer. A node that is let go may hand its `id` to the next one, so nodes are known by
their place in `Live`, and a record knows places alone. What they say is in `frozen.py`.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from pytorch_lab.errors import UsageError
from pytorch_lab.graph.walking.letting_go import LONG, ease


class Live:
    """The nodes of a graph that still lives, each known by its place.

    Places are given as nodes are met, so they are the same in every run of the same code.
    `next[place]` and `next_inputs[place]` are the edges, as in `schema.Node`.

    Example:
        >>> import torch
        >>> x = torch.ones(3, requires_grad=True)
        >>> live = Live()
        >>> live.add((2 * x).sum())
        range(0, 3)
        >>> [node.name() for node in live.nodes]
        ['SumBackward0', 'MulBackward0', 'torch::autograd::AccumulateGrad']
        >>> live.next
        [(1,), (2,), ()]
        >>> live.add(x)  # known already
        range(3, 3)
    """

    __slots__ = ("_eased", "next", "next_inputs", "nodes", "place", "roots")

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.place: dict[Any, int] = {}
        self.next: list[tuple[int, ...]] = []
        self.next_inputs: list[tuple[int, ...]] = []
        self.roots: list[tuple[int, int]] = []  # place, and which output of that node
        self._eased = 0  # see `letting_go.py`

    def __len__(self) -> int:
        return len(self.nodes)

    def add(self, root: Any) -> range:
        """Go back from `root` and take in what is not here yet; the new places.

        Args:
            root: a tensor, a `GradientEdge` or a node. A tensor without a graph adds nothing.
        """
        start = len(self.nodes)
        edge = edge_of(root)
        if edge is None:
            return range(start, start)
        node = edge[0]
        if node not in self.place:
            self._meet(node)
            self._follow(start)
            if len(self.nodes) - self._eased > LONG:
                ease(self.nodes, self.next, self._eased)
                self._eased = len(self.nodes)
        self.roots.append((self.place[node], edge[1]))
        return range(start, len(self.nodes))

    def _meet(self, node: Any) -> None:
        self.place[node] = len(self.nodes)
        self.nodes.append(node)
        self.next.append(())
        self.next_inputs.append(())

    def _follow(self, start: int) -> None:
        """A stack and no recursion: Python's own stack ends at about a thousand calls."""
        place, nodes, nexts, next_inputs = self.place, self.nodes, self.next, self.next_inputs
        same: dict[tuple[int, ...], tuple[int, ...]] = {}
        stack = [start]
        while stack:
            here = stack.pop()
            targets: list[int] = []
            inputs: list[int] = []
            for node, number in nodes[here].next_functions:
                if node is None:
                    continue
                there = place.get(node)
                if there is None:
                    there = place[node] = len(nodes)  # as `_meet` does it
                    nodes.append(node)
                    nexts.append(())
                    next_inputs.append(())
                    stack.append(there)
                targets.append(there)
                inputs.append(number)
            if targets:
                nexts[here] = tuple(targets)
                numbers = tuple(inputs)
                next_inputs[here] = same.setdefault(numbers, numbers)


def edge_of(root: Any) -> tuple[Any, int] | None:
    """The node behind `root` and which of its outputs; None if no graph leads there.

    Example:
        >>> import torch
        >>> edge_of(torch.ones(2)) is None
        True
        >>> edge_of(torch.ones(2, requires_grad=True).exp())[0].name()
        'ExpBackward0'
    """
    if isinstance(root, torch.Tensor):
        if not root.requires_grad:
            return None
        try:
            edge = get_gradient_edge(root)
        except AttributeError:  # a leaf inside a transform of torch.func: it has no node there
            return None
        return edge.node, edge.output_nr
    if isinstance(root, GradientEdge):
        return root.node, root.output_nr
    if hasattr(root, "next_functions"):
        return root, 0
    raise UsageError(
        f"expected a tensor, a GradientEdge or a node as the root of a graph, "
        f"got {type(root).__name__}; pass the result that you would call backward() on"
    )


def walk(roots: Iterable[Any]) -> Live:
    """All nodes behind some results; see `Live`.

    Args:
        roots: tensors, gradient edges or nodes.

    Example:
        >>> import torch
        >>> layer = torch.nn.Linear(3, 2)
        >>> len(walk([layer(torch.ones(1, 3))]))
        4
    """
    live = Live()
    for root in roots:
        live.add(root)
    return live
