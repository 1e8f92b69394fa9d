"""The autograd graph of one recording: walked and read when the run is over, or before a backward.

A `backward()` inside the recorded code frees what the nodes keep, so they are read just before it,
and watched while it runs. Otherwise everything is read once, at the end.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from pytorch_lab.graph.naming import Names
from pytorch_lab.graph.recording.rows import INPUTS, OUTPUTS, Rows
from pytorch_lab.graph.recording.tensors import Look, Tensors
from pytorch_lab.graph.schema import Node, Shape
from pytorch_lab.graph.stats import numbers_of, size_of, sizes_of, summarise
from pytorch_lab.graph.walking.autograd import Identity, Live, freeze, spell, walk
from pytorch_lab.graph.walking.backward import Seen, watch


class Grown:
    """The graph as far as it has been read.

    Attributes:
        live: torch's nodes.
        nodes: their records, by place.
        seen: what backward did, if one ran.
        reached: the leaves' nodes that the last backward inside the recorded code reached.
    """

    def __init__(self, tensors: Tensors, names: Names, values: str) -> None:
        self.live = Live()
        self.nodes: list[Node] = []
        self.seen: Seen | None = None
        self.reached: list[int] = []
        self._tensors = tensors
        self._names = names
        self._summary = None if values == "none" else summarise
        self._numbers = numbers_of if values == "full" else None

    def read(self, roots: Iterable[Any], rows: Rows) -> None:
        """Walk from more roots, and from all that is alive, and read the nodes that are new."""
        live = self.live
        for root in roots:
            live.add(root)
        for tensor in self._tensors.living():
            if tensor.grad_fn not in live.place:
                live.add(tensor)
        look = _Reader(rows, self._tensors, self._names)
        self.nodes += freeze(
            live,
            names=look.name,
            identify=look.identify,
            op_of_node=look.op_of,
            received=look.received(),
            places=range(len(self.nodes), len(live)),
        )

    def watched(self, roots: Sequence[torch.Tensor], run: Callable[[], Any]) -> Any:
        """Run a backward through what has been read, and note what it does."""
        live = walk(roots)
        seen = Seen()
        try:
            with watch(live, self._summary, self._numbers) as seen:
                return run()
        finally:
            place_of = [self.live.place[node] for node in live.nodes]
            self.add(seen, place_of)
            self.reached = [place_of[place] for place in seen.accumulated]

    def add(self, seen: Seen, place_of: Sequence[int]) -> None:
        """Take in what one backward did; `place_of` translates its places."""
        whole = self.seen = self.seen or Seen()
        whole.order += [place_of[place] for place in seen.order]
        whole.grads |= {place_of[place]: grads for place, grads in seen.grads.items()}
        whole.numbers |= {place_of[place]: numbers for place, numbers in seen.numbers.items()}
        whole.accumulated |= {place_of[place]: how for place, how in seen.accumulated.items()}
        whole.empty |= {place_of[place] for place in seen.empty}

    def nodes_of_values(self) -> list[int | None]:
        """The node of each value, if it is still there."""
        live = self.live.nodes
        places = {node.sequence: node.index for node in self.nodes}
        for node in self.nodes:
            if node.kind == "accumulate":
                places[-1 - id(live[node.index].variable)] = node.index
        return [None if origin is None else places.get(origin) for origin in self._tensors.origins]

    def from_results(self, results: Sequence[torch.Tensor]) -> None:
        """Number the nodes anew, so that the places are those of `walk(results)` as far as it goes.

        Whoever walks the live graph later then finds the records under the same places.
        """
        ahead = walk(results)
        order = [self.live.place[node] for node in ahead.nodes]
        known = set(order)
        order += [place for place in range(len(self.nodes)) if place not in known]
        new = [0] * len(order)
        for place, old in enumerate(order):
            new[old] = place
        self.nodes = [
            self.nodes[old]._replace(
                index=place, next=tuple([new[target] for target in self.nodes[old].next])
            )
            for place, old in enumerate(order)
        ]
        for old in order[len(ahead) :]:
            ahead.add(self.live.nodes[old])
        self.live = ahead
        seen, self.seen = self.seen, None
        if seen is not None:
            self.add(seen, new)


class _Reader:
    """What the recording knows about nodes and about the tensors that they keep."""

    def __init__(self, rows: Rows, tensors: Tensors, names: Names) -> None:
        made = sorted(rows.made)
        self._before = [one[0] for one in made]
        self._after = [one[1] for one in made]
        self._made_by = [one[2] for one in made]
        self._ops = rows.ops
        self._values = tensors.rows
        self._tensors = tensors
        self._names = names.tensors

    def op_of(self, place: int, sequence: int) -> int | None:
        """The op that made a node: torch's count of nodes was there while it ran."""
        at = bisect_right(self._before, sequence) - 1
        return self._made_by[at] if at >= 0 and sequence < self._after[at] else None

    def received(self) -> dict[int, Look]:
        """What the gradient of each node looks like: as the result that the node belongs to."""
        return {
            origin: row[2]
            for origin, row in zip(self._tensors.origins, self._values, strict=True)
            if origin is not None and origin >= 0
        }

    def name(self, leaf: torch.Tensor) -> str:
        """The name of a leaf tensor; empty if nobody named it."""
        return self._names.get(id(leaf), ("", ""))[1]

    def identify(self, tensor: torch.Tensor, op: int | None) -> Identity | None:
        """Which value a saved tensor is: known itself, or by its memory among those of the op."""
        known = self._tensors.last(tensor)
        if known is None:
            return self._by_memory(tensor, op)
        value = known[3]
        if known[1] and op is not None:  # it was written to: which of its versions did the op see?
            value = self._of_op(op, known[4], sizes_of(tensor))
            if value is None:
                value = known[3]
        look = self._values[value][2]
        return look[0], look[1], look[4], known[4], value

    def _by_memory(self, tensor: torch.Tensor, op: int | None) -> Identity | None:
        """Torch saves a result as a new tensor that shares its memory."""
        storage = self._tensors.number(tensor)
        if storage is None:
            return None
        value = None if op is None else self._of_op(op, storage, sizes_of(tensor))
        if value is not None:
            look = self._values[value][2]
            return look[0], look[1], look[4], storage, value
        return sizes_of(tensor), spell(tensor.dtype), size_of(tensor), storage, None

    def _of_op(self, op: int, storage: int, shape: Shape) -> int | None:
        row, values = self._ops[op], self._values
        for place in row[OUTPUTS] + row[INPUTS]:
            if values[place][6] == storage and values[place][2][0] == shape:
                return place
        return None
