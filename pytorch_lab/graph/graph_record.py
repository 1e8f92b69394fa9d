"""The record of a run: what everybody else draws, compares and explains."""

import linecache
import math
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from pytorch_lab.errors import UsageError
from pytorch_lab.graph.collector import collector_rests
from pytorch_lab.graph.schema import Call, Failure, Node, Op, Value
from pytorch_lab.graph.stats import numbers_of, summarise
from pytorch_lab.graph.walking.autograd import Live, walk
from pytorch_lab.graph.walking.backward import Seen, watch
from pytorch_lab.graph.walking.hooks import Recorded
from pytorch_lab.graph.walking.memory import timeline
from pytorch_lab.graph.walking.nodes import sequence_of
from pytorch_lab.graph.walking.stepper import Stepper, check_gradient
from pytorch_lab.words import count, message_of

_NO_GRAPH = (
    "expected a graph that is still alive, but the result of {} is gone or was never one; "
    "record it again with keep_graph=True, and without backward=True, which uses the graph up."
)


class Parts(NamedTuple):
    """The three long lists of a record."""

    ops: tuple[Op, ...] = ()
    values: tuple[Value, ...] = ()
    nodes: tuple[Node, ...] = ()


@dataclass(repr=False, eq=False)
class GraphRecord:
    """What one run did; made by `record(...)` and `of(...)`.

    Everything is numbers and strings, and refers to everything else by its place:
    `rec.values[op.inputs[0]]`, `rec.nodes[value.node]`.

    Recording leaves columns of plain numbers and strings; `ops`, `values` and `nodes` are made of
    them when one of the three is first asked for, all at once.

    Attributes:
        function: the name of what ran.
        ops: the torch functions that it called, in order.
        values: the tensors that they handled, at each version.
        nodes: the autograd graph; the nodes behind the results come first.
        calls: of modules, in order.
        backward_order: the nodes in the order in which backward ran them; () before it.
        outputs: the values that were returned.
        roots: the nodes of these.
        modules: the paths of all modules that were called.
        failure: what was raised, and on which line; None if nothing was.
        notes: what one should know to read the record.
        accumulated: the AccumulateGrad nodes that ran, each with "set" or "added".
        storage_bytes: the size of each storage that a value names.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph import record
        >>> rec = record(lambda x: (x * 2).sum(), torch.ones(3, requires_grad=True))
        >>> [op.name for op in rec.ops], [node.name for node in rec.nodes]
        (['mul', 'sum'], ['SumBackward0', 'MulBackward0', 'AccumulateGrad'])
        >>> rec
        GraphRecord(<lambda>: 2 ops, 3 nodes)
    """

    function: str
    parts: Parts | Callable[[Sequence[Seen]], Parts] = field(default_factory=Parts)
    calls: tuple[Call, ...] = ()
    backward_order: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    roots: tuple[int, ...] = ()
    modules: tuple[str, ...] = ()
    failure: Failure | None = None
    notes: tuple[str, ...] = ()
    accumulated: tuple[tuple[int, str], ...] = ()
    storage_bytes: tuple[int, ...] = ()
    _results: list[Any] = field(default_factory=list, init=False)  # weak, or kept by wish
    _root: int | None = field(default=None, init=False)  # which of them backward starts from
    _ran: list[Seen] = field(default_factory=list, init=False)  # what `nodes` don't tell yet
    _recorded: Recorded | None = field(default=None, init=False)  # the graph as it was recorded

    def __getstate__(self) -> dict[str, Any]:
        """A copy, or what was pickled, has all numbers and words, and no live graph."""
        kept = {"parts": self._made(), "_results": [], "_root": None, "_recorded": None}
        return {**vars(self), **kept, "_ran": []}

    def __repr__(self) -> str:
        sizes = f"{count(len(self.ops), 'op')}, {count(len(self.nodes), 'node')}"
        return f"GraphRecord({self.function}: {sizes})"

    def __str__(self) -> str:
        from pytorch_lab.graph.text import render

        return render(self)

    @property
    def root(self) -> int | None:
        """Which of the results backward starts from; None if none requires a gradient."""
        return self._root

    @property
    def ops(self) -> tuple[Op, ...]:
        """The torch functions that were called, in order."""
        return self._made().ops

    @property
    def values(self) -> tuple[Value, ...]:
        """The tensors that they handled, at each version."""
        return self._made().values

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The autograd graph; the nodes behind the results come first."""
        return self._made().nodes

    @property
    def error(self) -> str | None:
        """What was raised, as a sentence; None if nothing was."""
        return None if self.failure is None else str(self.failure)

    def _made(self) -> Parts:
        if not callable(self.parts) and not self._ran:
            return self.parts
        with collector_rests():
            if callable(self.parts):
                made = self.parts(self._ran)
            else:
                made = self.parts
                for seen in self._ran:
                    made = made._replace(nodes=seen.fill(made.nodes))
            self._ran.clear()
            self.parts = made
        return made

    def source(self, file: str) -> list[str]:
        """The lines of a file that was met, also of a notebook's cell; empty if there is no text.

        Args:
            file: `op.file`.
        """
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
            if self.nodes[here].parameter == parameter:
                return _way_back(came, here)
            for there in self.nodes[here].next:
                if there not in came:
                    came[there] = here
                    queue.append(there)
        return ()

    def memory(self) -> list[tuple[str, int, int]]:
        """The bytes held for backward: `("op", i, bytes)` after each op, then `("node", i, bytes)`.

        Example:
            >>> import torch
            >>> from pytorch_lab.graph import record
            >>> x = torch.ones(3, requires_grad=True)
            >>> record(lambda: x.exp().sin().sum(), backward=True).memory()[:3]
            [('op', 0, 12), ('op', 1, 12), ('op', 2, 12)]
        """
        return timeline(self.nodes, range(len(self.ops)), self.backward_order)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, numbers and strings, ready for JSON.

        JSON has no NaN and no infinities; they are the strings "NaN", "Infinity" and "-Infinity".

        Example:
            >>> import json, torch
            >>> from pytorch_lab.graph import record
            >>> made = record(lambda x: x / 0, torch.zeros(1)).to_dict()
            >>> json.dumps(made["values"][1]["stats"], allow_nan=False)[:30]
            '{"min": "NaN", "max": "NaN", "'
        """
        return {
            "function": self.function,
            "ops": [_plain(op) for op in self.ops],
            "values": [_plain(value) for value in self.values],
            "nodes": [_plain(node) for node in self.nodes],
            "calls": [_plain(call) for call in self.calls],
            "backward_order": list(self.backward_order),
            "outputs": list(self.outputs),
            "roots": list(self.roots),
            "modules": list(self.modules),
            "error": self.error,
            "failure": None if self.failure is None else _plain(self.failure),
            "notes": list(self.notes),
            "accumulated": [list(pair) for pair in self.accumulated],
            "storage_bytes": list(self.storage_bytes),
        }

    def to_svg(self, **options: Any) -> str:
        """A still picture of the graph; `options` are those of `picture.to_svg`.

        Example:
            >>> import torch
            >>> from pytorch_lab.graph import record
            >>> record(torch.nn.Linear(2, 1), torch.ones(1, 2)).to_svg().startswith("<svg")
            True
        """
        from pytorch_lab.graph.drawing.picture import to_svg

        return to_svg(self, **options)

    # the live graph

    def keep(
        self,
        results: Sequence[torch.Tensor],
        root: int | None,
        strongly: bool,
        recorded: Recorded | None = None,
    ) -> None:
        """Remember the results, to go back from them; weakly, if not told otherwise."""
        self._results = list(results) if strongly else [weakref.ref(one) for one in results]
        self._root = root
        self._recorded = recorded if strongly else None

    def release(self) -> None:
        """Let go of the live graph that `keep_graph=True` kept."""
        self._results = []
        self._root = self._recorded = None

    def backward(
        self, gradient: torch.Tensor | None = None, *, retain_graph: bool = False
    ) -> "GraphRecord":
        """Go back from the result now, as `loss.backward()` does, and record that, too.

        Args:
            gradient: of the shape of the result; ones if there is none.
            retain_graph: keep the graph, so that it can be done again.

        Returns:
            The record itself, with `backward_order` and the gradients' figures in its nodes.

        Raises:
            UsageError: the graph is gone or another one, or `gradient` doesn't fit.

        Example:
            >>> import torch
            >>> from pytorch_lab.graph import record
            >>> x = torch.ones(3, requires_grad=True)
            >>> rec = record(lambda: (2 * x).sum(), keep_graph=True)
            >>> rec.backward().backward_order, x.grad
            ((0, 1, 2), tensor([2., 2., 2.]))
        """
        results = self._alive()
        root = results[self._root or 0]
        looked = "summary" if any(value.stats for value in self.values) else "none"
        looked = "full" if any(value.numbers for value in self.values) else looked
        if gradient is not None:
            check_gradient(root, gradient)
        live = walk(results)
        self._expect(live, root)
        self.walk_back(live, root, gradient, looked, retain_graph)
        if not retain_graph:
            self.release()
        return self

    def stepper(self, gradient: torch.Tensor | None = None) -> Stepper:
        """Go back one node at a time; the places of its nodes are those of this record.

        When it has come to its end, the record lets go of the graph, as after `backward`.

        Args:
            gradient: of the shape of the result; not needed if that is a single number.

        Raises:
            UsageError: the graph is gone or another one, or `gradient` doesn't fit.

        Example:
            >>> import torch
            >>> from pytorch_lab.graph import record
            >>> x = torch.ones(3, requires_grad=True)
            >>> rec = record(lambda: (2 * x).sum(), keep_graph=True)
            >>> stepper = rec.stepper()
            >>> while not stepper.done:
            ...     print(rec.nodes[stepper.node.index].name)
            ...     node = stepper.step()
            SumBackward0
            MulBackward0
            AccumulateGrad
        """
        results = self._alive()
        root = results[self._root or 0]
        recorded = self._recorded
        hooks = recorded is None or recorded.may_have_hooks(root)
        if recorded is None or hooks:
            live = walk(results)
            self._expect(live, root)
            nodes = self.nodes[: len(live)]
        else:
            live, nodes = recorded.live, recorded.nodes
        finished = self.release
        return Stepper(root, gradient, live=live, nodes=nodes, hooks=hooks, finished=finished)

    def _expect(self, live: Live, root: torch.Tensor) -> None:
        """Refuse a graph that is not the one recorded: who writes to a result gives it another."""
        same = 0 < len(live) <= len(self.nodes) and all(
            self.nodes[place].sequence == sequence_of(live.nodes[place]) for place, _ in live.roots
        )
        if not same:
            now = "no graph" if root.grad_fn is None else root.grad_fn.name()
            raise UsageError(
                f"expected the graph that was recorded, but the result of {self.function} was "
                f"written to since, and {now} is behind it now; record it again, or call "
                f"graph.of(tensor) again"
            )

    def _alive(self) -> list[torch.Tensor]:
        found = [one() if isinstance(one, weakref.ref) else one for one in self._results]
        results = [one for one in found if one is not None]
        if self._root is None or len(results) < len(found):
            raise UsageError(_NO_GRAPH.format(self.function))
        return results

    def walk_back(
        self,
        live: Live,
        root: torch.Tensor,
        gradient: torch.Tensor | None,
        values: str,
        retain_graph: bool = False,
    ) -> None:
        """Run torch's backward from a result, and take into the record what it did.

        Args:
            live: the graph, its places those of the record.
            root: the result.
            gradient: of its shape; ones if there is none.
            values: what is kept of each gradient: "none", "summary" or "full".
            retain_graph: as for `backward`.
        """
        if gradient is None and (root.numel() != 1 or root.is_complex()):
            gradient = torch.ones_like(root)
            self.notes += (
                f"the result has shape {tuple(root.shape)}, so backward began with ones",
            )
        seen = None
        try:
            summary = None if values == "none" else summarise
            numbers = numbers_of if values == "full" else None
            with watch(live, summary, numbers, None if retain_graph else root) as seen:
                root.backward(gradient, retain_graph=retain_graph)
        except Exception as error:  # noqa: BLE001 - a record is wanted of what goes wrong, too
            name, said = type(error).__name__, message_of(error)
            self.failure = Failure(name, said, in_backward=True)
        if seen is not None:
            self.backward_order += tuple(seen.order)
            self._ran.append(seen)
            self.accumulated += tuple(sorted(seen.accumulated.items()))


def _plain(value: Any) -> Any:
    """Without tuples, and without numbers that JSON has no letters for."""
    if hasattr(value, "_asdict"):
        return {name: _plain(inner) for name, inner in value._asdict().items()}
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


def _way_back(came: dict[int, int | None], here: int | None) -> tuple[int, ...]:
    way = []
    while here is not None:
        way.append(here)
        here = came[here]
    return tuple(reversed(way))
