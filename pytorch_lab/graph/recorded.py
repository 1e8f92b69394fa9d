"""The record of a run: what everybody else draws, compares and explains."""

import linecache
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from pytorch_lab.graph.record import Call, Node, Op, Value


@dataclass(frozen=True, repr=False, eq=False)
class GraphRecord:
    """What one run did; made by `record(...)` and `of(...)`.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph import record
        >>> rec = record(lambda x: (x * 2).sum(), torch.ones(3, requires_grad=True))
        >>> [op.name for op in rec.ops], [node.name for node in rec.nodes]
        (['mul', 'sum'], ['SumBackward0', 'MulBackward0', 'AccumulateGrad'])
    """

    function: str
    ops: tuple[Op, ...] = ()
    values: tuple[Value, ...] = ()
    nodes: tuple[Node, ...] = ()
    calls: tuple[Call, ...] = ()
    backward_order: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    roots: tuple[int, ...] = ()
    modules: tuple[str, ...] = ()
    error: str | None = None
    notes: tuple[str, ...] = ()
    storage_bytes: tuple[int, ...] = ()
    _alive: Any = field(default=None, init=False)  # what keeps the live graph, or finds it

    def __repr__(self) -> str:
        ops, nodes = len(self.ops), len(self.nodes)
        return f"GraphRecord({self.function}: {ops} ops, {nodes} nodes)"

    def source(self, file: str) -> list[str]:
        """The lines of a file that was met, also of a notebook's cell; empty if there is no text."""
        return [line.rstrip("\n") for line in linecache.getlines(file)]

    def path_to(self, parameter: str) -> tuple[int, ...]:
        """The nodes from a result to a parameter's AccumulateGrad, the shortest way; () if none.

        Example:
            >>> import torch
            >>> from pytorch_lab.graph import record
            >>> rec = record(torch.nn.Linear(2, 1), torch.ones(1, 2))
            >>> [rec.nodes[i].name for i in rec.path_to("bias")]
            ['AddmmBackward0', 'AccumulateGrad']
        """
        came: dict[int, int | None] = dict.fromkeys(self.roots)
        queue = deque(self.roots)
        while queue:
            here = queue.popleft()
            if self.nodes[here].parameter == parameter and self.nodes[here].kind == "accumulate":
                return _way_back(came, here)
            for there in self.nodes[here].next:
                if there not in came:
                    came[there] = here
                    queue.append(there)
        return ()

    def release(self) -> None:
        """Let go of the live graph that `keep_graph=True` kept."""
        object.__setattr__(self, "_alive", None)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, numbers and strings, ready for JSON."""
        return {
            "function": self.function,
            "ops": [op._asdict() for op in self.ops],
            "values": [value._asdict() for value in self.values],
            "nodes": [node._asdict() for node in self.nodes],
            "calls": [call._asdict() for call in self.calls],
            "backward_order": list(self.backward_order),
            "outputs": list(self.outputs),
            "roots": list(self.roots),
            "error": self.error,
            "notes": list(self.notes),
        }


def _way_back(came: dict[int, int | None], here: int | None) -> tuple[int, ...]:
    way = []
    while here is not None:
        way.append(here)
        here = came[here]
    return tuple(reversed(way))
