"""The autograd graph of one recording: walked and read when the run is over, or before a backward.

A `backward()` inside the recorded code frees what the nodes keep, so they are read just before it,
and watched while it runs. Otherwise everything is read once, at the end.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from pytorch_lab.graph.autograd import Live, freeze, walk
from pytorch_lab.graph.backward import Seen, Summary, watch
from pytorch_lab.graph.naming import Names
from pytorch_lab.graph.record import Node
from pytorch_lab.graph.tensors import Tensors


class Grown:
    """The graph as far as it has been read.

    Attributes:
        live: torch's nodes.
        nodes: their records, by place.
        seen: what backward did, if one ran.
        reached: the leaves' nodes that the last backward inside the recorded code reached.
    """

    def __init__(self, tensors: Tensors, names: Names, summary: Summary | None) -> None:
        self.live = Live()
        self.nodes: list[Node] = []
        self.seen: Seen | None = None
        self.reached: list[int] = []
        self._tensors = tensors
        self._names = names
        self._summary = summary

    def read(self, roots: Iterable[Any], rows: Sequence[Any]) -> None:
        """Walk from more roots, and from all that ops made, and read the nodes that are new."""
        live = self.live
        for root in roots:
            live.add(root)
        known = live.place
        for origin in self._tensors.origins:
            if origin is not None and type(origin) is not int and origin not in known:
                live.add(origin)
        look = _Reader(rows, self._tensors, self._names)
        self.nodes += freeze(
            live,
            names=look.name,
            storages=look.storage,
            values=look.value,
            op_of_node=look.op_of,
            places=range(len(self.nodes), len(live)),
        )

    def watched(self, roots: Sequence[torch.Tensor], run: Callable[[], Any]) -> Any:
        """Run a backward through what has been read, and note what it does."""
        live = walk(roots)
        seen = Seen()
        try:
            with watch(live, self._summary) as seen:
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
        whole.accumulated |= {place_of[place]: how for place, how in seen.accumulated.items()}
        whole.empty |= {place_of[place] for place in seen.empty}

    def leaves(self) -> dict[int, int]:
        """From the `id` of a leaf tensor to the place of its AccumulateGrad."""
        nodes = self.live.nodes
        return {id(nodes[n.index].variable): n.index for n in self.nodes if n.kind == "accumulate"}

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

    def __init__(self, rows: Sequence[Any], tensors: Tensors, names: Names) -> None:
        made = sorted(
            (row.before, row.after, op) for op, row in enumerate(rows) if row.after > row.before
        )
        self._before = [one[0] for one in made]
        self._after = [one[1] for one in made]
        self._ops = [one[2] for one in made]
        self._rows = rows
        self._values = tensors.rows
        self._addresses = tensors.addresses
        self._names = names.tensors
        self._op: int | None = None
        self._storage: int | None = None

    def op_of(self, place: int, sequence: int) -> int | None:
        """The op that made a node: torch's count of nodes was there while it ran."""
        at = bisect_right(self._before, sequence) - 1
        self._op = self._ops[at] if at >= 0 and sequence < self._after[at] else None
        return self._op

    def name(self, leaf: torch.Tensor) -> str:
        """The name of a leaf tensor; empty if nobody named it."""
        return self._names.get(id(leaf), ("", ""))[1]

    def storage(self, tensor: torch.Tensor) -> int | None:
        """The number of a saved tensor's storage, if an op met it."""
        try:
            self._storage = self._addresses.get(tensor.untyped_storage()._cdata)
        except (RuntimeError, NotImplementedError):  # sparse
            self._storage = None
        return self._storage

    def value(self, tensor: torch.Tensor) -> int | None:
        """Which value a saved tensor is: one of the op's that has its memory and its shape."""
        if self._op is None or self._storage is None:
            return None
        row, values, storage = self._rows[self._op], self._values, self._storage
        shape = tensor.shape
        for place in (*row.outputs, *row.inputs):
            if values[place][6] == storage and values[place][2][0] == shape:
                return place
        return None
