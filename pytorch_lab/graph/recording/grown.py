"""The autograd graph of one recording: walked and read when the run is over, or before a backward.

A `backward()` inside the recorded code frees what the nodes keep, so they are read just before it,
and watched while it runs. Otherwise everything is read once, at the end.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any

import torch

from pytorch_lab.graph.naming import Names
from pytorch_lab.graph.recording.rows import INPUTS, OUTPUTS, Rows
from pytorch_lab.graph.recording.tensors import LOOK, STORAGE, Tensors
from pytorch_lab.graph.schema import Node, Saved, Shape
from pytorch_lab.graph.stats import numbers_of, size_of, sizes_of, summarise
from pytorch_lab.graph.walking.autograd import Live, walk
from pytorch_lab.graph.walking.backward import Seen, watch
from pytorch_lab.graph.walking.frozen import (
    KIND,
    NEXT,
    SEQUENCE,
    Identity,
    Reader,
    Row,
    node_rows,
    nodes_of,
)
from pytorch_lab.graph.walking.nodes import spell

_look = itemgetter(LOOK)
_kept = itemgetter(0, 1, 4)  # of a look: shape, dtype, bytes
_saved = partial(tuple.__new__, Saved)


class Grown:
    """The graph as far as it has been read.

    Attributes:
        live: torch's nodes.
        rows: what was read of them, by place: the fields of `schema.Node`.
        seen: what backward did, if one ran.
        reached: the leaves' nodes that the last backward inside the recorded code reached.
    """

    def __init__(self, tensors: Tensors, names: Names, values: str) -> None:
        self.live = Live()
        self.rows: list[Row] = []
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
        reader = _Known(rows, self._tensors, self._names)
        self.rows += node_rows(live, reader, len(self.rows))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The records of the nodes."""
        return nodes_of(self.rows)

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
        places = {row[SEQUENCE]: row[0] for row in self.rows}
        for row in self.rows:
            if row[KIND] == "accumulate":
                places[-1 - id(live[row[0]].variable)] = row[0]
        return list(map(places.get, self._tensors.origins()))

    def from_results(self, results: Sequence[torch.Tensor]) -> None:
        """Number the nodes anew, so that the places are those of `walk(results)` as far as it goes.

        Whoever walks the live graph later then finds the records under the same places.
        """
        ahead = walk(results)
        order = [self.live.place[node] for node in ahead.nodes]
        known = set(order)
        order += [place for place in range(len(self.rows)) if place not in known]
        new = [0] * len(order)
        for place, old in enumerate(order):
            new[old] = place
        rows = self.rows
        self.rows = [
            (place, *rows[old][1:NEXT], tuple([new[at] for at in rows[old][NEXT]]),
             *rows[old][NEXT + 1 :])
            for place, old in enumerate(order)
        ]  # fmt: skip
        for old in order[len(ahead) :]:
            ahead.add(self.live.nodes[old])
        self.live = ahead
        seen, self.seen = self.seen, None
        if seen is not None:
            self.add(seen, new)


class _Known(Reader):
    """What the recording knows about nodes and about the tensors that they keep."""

    def __init__(self, rows: Rows, tensors: Tensors, names: Names) -> None:
        super().__init__(lambda leaf: names.tensors.get(id(leaf), ("", ""))[1])
        self.ops = rows.made
        self.looks = dict(zip(tensors.origins(), map(_look, tensors.rows), strict=True))
        self._ops = rows.ops
        self._values = tensors.rows
        self._tensors = tensors
        self._last = tensors.known

    def saved(
        self, name: str, nodes: Sequence[Any], tensors: Sequence[Any], ops: Sequence[int | None]
    ) -> list[Saved | None]:
        """Most are values that were met themselves and never written to."""
        entries = map(self._last.get, map(id, tensors))
        values = self._values
        return [
            None
            if tensor is None
            else _saved((name, *_kept(values[known[3]][LOOK]), known[4], 0, known[3]))
            if known is not None and known[0]() is tensor and not known[1] and not tensor._version
            else self.save(name, node, tensor, op)
            for known, node, tensor, op in zip(entries, nodes, tensors, ops, strict=True)
        ]

    def identify(self, tensor: torch.Tensor, op: int | None) -> Identity:
        """Which value a saved tensor is: known itself, or by its memory among those of the op."""
        known = self._last.get(id(tensor))
        if known is None or known[0]() is not tensor:
            return self._by_memory(tensor, op)
        value = known[3]
        if known[1] and op is not None:  # it was written to: which of its versions did the op see?
            found = self._of_op(op, known[4], sizes_of(tensor))
            value = value if found is None else found
        look = self._values[value][LOOK]
        return *_kept(look), known[4], value

    def _by_memory(self, tensor: torch.Tensor, op: int | None) -> Identity:
        """Torch saves a result as a new tensor that shares its memory."""
        storage = self._tensors.number(tensor)
        if storage is None:
            return super().identify(tensor, op)
        value = None if op is None else self._of_op(op, storage, sizes_of(tensor))
        if value is not None:
            look = self._values[value][LOOK]
            return *_kept(look), storage, value
        return sizes_of(tensor), spell(tensor.dtype), size_of(tensor), storage, None

    def _of_op(self, op: int, storage: int, shape: Shape) -> int | None:
        row, values = self._ops[op], self._values
        for place in chain(row[OUTPUTS], row[INPUTS]):
            value = values[place]
            if value[STORAGE] == storage and value[LOOK][0] == shape:
                return place
        return None
