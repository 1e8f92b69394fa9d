"""One function, two inputs: which graph did each build, and which line made the difference?

    diff = graph.compare(net, short, long)
    print(diff)             # the ops of both side by side, and the `if` or `for` that parted them
    diff.branch.site        # its file, line and columns

Both runs are recorded, and Python's decisions in the reader's own code with them. One alignment of
ops and decisions together shows where the runs stood on the same instruction and left it for
different ones; that instruction is the difference, whatever came after it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch.overrides import TorchFunctionMode

from pytorch_lab.errors import UsageError
from pytorch_lab.graph.comparing.alignment import align, hunks
from pytorch_lab.graph.comparing.compare_text import diff_text
from pytorch_lab.graph.comparing.parting import Branch, Side, parting
from pytorch_lab.graph.comparing.trail import Trail, Turns
from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.recording.capture import record
from pytorch_lab.graph.recording.compiled import uncompiled
from pytorch_lab.modules.copies import Guard
from pytorch_lab.modules.patient import left_as_found

__all__ = ["Branch", "GraphDiff", "compare"]


@dataclass(frozen=True)
class GraphDiff:
    """Two records of one function, aligned.

    Attributes:
        a: the record of the first input.
        b: the record of the second.
        ops: pairs of places of the ops that both have, in order.
        only_a: places of the ops that only A has.
        only_b: places of the ops that only B has.
        nodes: pairs of places of the autograd nodes that both have.
        nodes_only_a: places of the nodes that only A has.
        nodes_only_b: places of the nodes that only B has.
        branches: every decision that made a difference to the ops, in order.
        quiet: the decisions that went differently and changed no op by themselves.
        notes: what a reader should know of this comparison.
    """

    a: GraphRecord
    b: GraphRecord
    ops: tuple[tuple[int, int], ...]
    only_a: tuple[int, ...]
    only_b: tuple[int, ...]
    nodes: tuple[tuple[int, int], ...]
    nodes_only_a: tuple[int, ...]
    nodes_only_b: tuple[int, ...]
    branches: tuple[Branch, ...] = ()
    quiet: tuple[Branch, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def branch(self) -> Branch | None:
        """The decision at which the ops part first; None if they are the same ones."""
        return self.branches[0] if self.branches else None

    def __str__(self) -> str:
        """At most 80 columns: the line that made the difference, the counts, the ops."""
        return diff_text(self)

    def __repr__(self) -> str:
        same, a, b = len(self.ops), len(self.only_a), len(self.only_b)
        return f"GraphDiff({self.a.function}: {same} ops in common, {a} only in A, {b} only in B)"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the records themselves are left out."""
        return {
            "ops": [list(pair) for pair in self.ops],
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
            "nodes": [list(pair) for pair in self.nodes],
            "nodes_only_a": list(self.nodes_only_a),
            "nodes_only_b": list(self.nodes_only_b),
            "branches": [branch.to_dict() for branch in self.branches],
            "quiet": [branch.to_dict() for branch in self.quiet],
            "notes": list(self.notes),
        }


def compare(fn: Callable[..., Any], *inputs: Any) -> GraphDiff:
    """Run `fn` on two inputs and say which ops and nodes they share, and why not all.

    Example:
        >>> import torch
        >>> def f(x):
        ...     if x.sum() > 0:
        ...         x = x * 2
        ...     return x.exp()
        >>> diff = compare(f, torch.ones(3), -torch.ones(3))
        >>> diff.branch.kind, diff.branch.condition, diff.branch.says
        ('if', 'x.sum() > 0', 'true in A, false in B')
        >>> [diff.a.ops[i].name for i in diff.only_a], diff.only_b
        (['mul'], ())

    Args:
        fn: a module or any callable. It is run twice, once on each input. What the first run
            changed is put back before the second, and what that changed afterwards: the random
            numbers of torch (all devices), numpy and Python, and what `fn` and the inputs hold, by
            attributes, containers, closures and the globals that `fn` reads: buffers, weights,
            gradients, counters. Not put back: globals that `fn` rebinds, files, what an optimizer
            keeps, iterators that were read, and a GPU's random numbers if the first run is the
            first to use a GPU at all.
        inputs: exactly two; a tuple is taken for several arguments.

    Raises:
        UsageError: if `fn` cannot be called, or there are not two inputs.
    """
    if not callable(fn):
        raise UsageError(
            f"compare(fn, a, b) expected something to call, got {type(fn).__name__!r}; pass the "
            f"module or the function first, then the two inputs"
        )
    if len(inputs) != 2:
        raise UsageError(
            f"compare expected two inputs after the function, got {len(inputs)}; several arguments "
            "of one run go into a tuple: compare(fn, (x, h), (y, h))"
        )
    numbers: Turns = {}
    first, second = (_run(fn, given, inputs, numbers) for given in inputs)
    return _difference(first, second)


class _Writes(TorchFunctionMode):
    """Has large tensors copied just before an op writes to them."""

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self._guard = guard

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        self._guard.before(getattr(func, "__name__", ""), args, kwargs)
        return func(*args, **kwargs)


def _run(fn: Callable[..., Any], given: Any, inputs: tuple[Any, ...], numbers: Turns) -> Side:
    arguments = given if isinstance(given, tuple) else (given,)
    trail = Trail(numbers)
    with left_as_found(fn, inputs) as guard, uncompiled(), _Writes(guard), trail.following():
        made = record(fn, *arguments)
    side = Side(made, trail)
    side.lay_out()
    return side


def _difference(a: Side, b: Side) -> GraphDiff:
    numbers: dict[Any, int] = {}
    row_a = [numbers.setdefault(key, len(numbers)) for key in a.keys]
    row_b = [numbers.setdefault(key, len(numbers)) for key in b.keys]
    pairs = align(row_a, row_b)
    places = ((a.ops[i], b.ops[j]) for i, j in pairs)  # None where a decision stands, and no op
    ops = tuple((i, j) for i, j in places if i is not None and j is not None)
    found = [
        branch
        for hunk in hunks(pairs, len(row_a), len(row_b))
        if (branch := parting(a, b, hunk)) is not None
    ]
    nodes = tuple(_common_nodes(a.record, b.record, ops))
    return GraphDiff(
        a=a.record,
        b=b.record,
        ops=ops,
        only_a=_rest(len(a.record.ops), (i for i, _ in ops)),
        only_b=_rest(len(b.record.ops), (j for _, j in ops)),
        nodes=nodes,
        nodes_only_a=_rest(len(a.record.nodes), (i for i, _ in nodes)),
        nodes_only_b=_rest(len(b.record.nodes), (j for _, j in nodes)),
        branches=tuple(branch for branch in found if branch.only_a or branch.only_b),
        quiet=tuple(branch for branch in found if not branch.only_a and not branch.only_b),
        notes=tuple(_notes(a, b)),
    )


def _rest(count: int, known: Iterator[int | None]) -> tuple[int, ...]:
    seen = set(known)
    return tuple(place for place in range(count) if place not in seen)


def _notes(a: Side, b: Side) -> Iterator[str]:
    for name, side in (("A", a), ("B", b)):
        if side.record.error:
            yield f"run {name} ended in an error: {side.record.error}"
        if not side.trail.complete:
            yield f"run {name} was too long to follow to its end"
        if side.trail.skipped:
            yield f"run {name} has a long loop without ops, which was not followed turn by turn"


def _common_nodes(
    a: GraphRecord, b: GraphRecord, ops: tuple[tuple[int, int], ...]
) -> Iterator[tuple[int, int]]:
    """Nodes that the same ops made, and what both lead to that no recorded op made."""
    numbers: dict[str, int] = {}
    queue: list[tuple[int, int]] = []
    for i, j in ops:
        mine, theirs = a.ops[i].nodes, b.ops[j].nodes
        row_a = [numbers.setdefault(a.nodes[n].name, len(numbers)) for n in mine]
        row_b = [numbers.setdefault(b.nodes[n].name, len(numbers)) for n in theirs]
        queue += [(mine[k], theirs[m]) for k, m in align(row_a, row_b)]
    seen_a, seen_b = {i for i, _ in queue}, {j for _, j in queue}
    while queue:
        i, j = queue.pop()
        yield i, j
        for k, m in zip(a.nodes[i].next, b.nodes[j].next, strict=False):
            one, two = a.nodes[k], b.nodes[m]
            same = (one.name, one.parameter) == (two.name, two.parameter)
            if same and one.op is None and two.op is None and k not in seen_a and m not in seen_b:
                seen_a.add(k)
                seen_b.add(m)
                queue.append((k, m))
