"""Which graph is behind the backward that failed, and which of it earlier ones went through?"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pytorch_lab.graph.explaining.cuts import backward_ops
from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.schema import Op


def behind(record: GraphRecord, roots: Iterable[int]) -> set[int]:
    """The nodes that lead to some values, in autograd's own graph.

    Args:
        record: the recording.
        roots: places of values.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph import record
        >>> rec = record(lambda w: (w * 2).sum(), torch.ones(2, requires_grad=True))
        >>> sorted(rec.nodes[place].name for place in behind(rec, rec.outputs))
        ['AccumulateGrad', 'MulBackward0', 'SumBackward0']
    """
    stack = [node for root in roots if (node := record.values[root].node) is not None]
    seen: set[int] = set()
    while stack:
        here = stack.pop()
        if here not in seen:
            seen.add(here)
            stack.extend(record.nodes[here].next)
    return seen


@dataclass(frozen=True)
class Failed:
    """The last backward of a recording, and those before it.

    Attributes:
        record: the recording.
        last: the backward that raised.
        earlier: those that ran before it.
    """

    record: GraphRecord
    last: Op
    earlier: tuple[Op, ...]

    @cached_property
    def nodes(self) -> set[int]:
        """Behind the one that failed."""
        return behind(self.record, self.last.inputs)

    @cached_property
    def common(self) -> set[int]:
        """Those of them that an earlier backward went through, leaves left out."""
        went = set[int]().union(*(behind(self.record, op.inputs) for op in self.earlier))
        return {place for place in self.nodes & went if self.record.nodes[place].op is not None}

    @property
    def same(self) -> Op | None:
        """The last earlier backward of the very same value."""
        roots = self.last.inputs[:1]
        return next((op for op in reversed(self.earlier) if roots and op.inputs[:1] == roots), None)

    def carrier(self) -> Op | None:
        """The op that reads a state which the same line has made before, in an earlier step.

        In a loop the same line, in the same module and with the same weights, is on both sides:
        in what an earlier backward went through, and in what was computed since. Two losses on one
        common part have different ones.
        """
        before = {self._line(place) for place in self.common}
        fresh = [
            place
            for place in self.nodes - self.common
            if self.record.nodes[place].op is not None and self._line(place) in before
        ]
        if not fresh:
            return None
        readers = {
            place
            for place in self.nodes - self.common
            if self.common.intersection(self.record.nodes[place].next)
        }
        made = [op for place in readers if (op := self.record.nodes[place].op) is not None]
        return self.record.ops[min(made)] if made else None

    def _line(self, place: int) -> tuple[object, ...]:
        node = self.record.nodes[place]
        op = self.record.ops[node.op] if node.op is not None else self.last
        values = (self.record.values[i] for i in op.inputs)
        weights = tuple(v.storage for v in values if v.is_leaf and v.requires_grad)
        return (node.name, op.site, op.module, weights)


def failed_in(record: GraphRecord) -> Failed | None:
    """The last backward of a recording that ended in one.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph import record
        >>> def step(w):
        ...     loss = w.exp().sum()
        ...     loss.backward()
        ...     loss.backward()
        >>> failed = failed_in(record(step, torch.ones(2, requires_grad=True)))
        >>> failed.same.name, failed.last.name, failed.carrier()
        ('backward', 'backward', None)

    Args:
        record: the recording.
    """
    ran = backward_ops(record)
    return Failed(record, ran[-1], tuple(ran[:-1])) if ran and ran[-1].inputs else None
