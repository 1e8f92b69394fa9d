"""The autograd graph of one recording: walked and read when the run is over, or before a backward.

A `backward()` inside the recorded code frees what the nodes keep, so they are read just before it,
and watched while it runs. Otherwise everything is read once, at the end.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, repeat
from operator import call, eq, is_, itemgetter
from typing import Any

import torch

from pytorch_lab.graph.naming import Names
from pytorch_lab.graph.recording.rows import INPUTS, OUTPUTS, Row, Rows
from pytorch_lab.graph.recording.tensors import LOOK, STORAGE, VERSION, Known, Tensors
from pytorch_lab.graph.schema import Node, Saved, Shape
from pytorch_lab.graph.stats import numbers_of, size_of, sizes_of, summarise
from pytorch_lab.graph.walking.autograd import Live, walk
from pytorch_lab.graph.walking.backward import Seen, watch
from pytorch_lab.graph.walking.frozen import Identity, NodeRows, Reader, nodes_of
from pytorch_lab.graph.walking.nodes import spell

_look, _storage = itemgetter(LOOK), itemgetter(STORAGE)  # of a value
_saved = partial(tuple.__new__, Saved)
_kept = itemgetter(0, 1, 4)  # of a look: shape, dtype, bytes
_reference, _version, _value = itemgetter(0), itemgetter(1), itemgetter(3)  # of what is known
# What is known of a tensor that was never met, and of none
_NOBODY: Known = (lambda: None, 0, False, -1, -1)


class Grown:
    """The graph as far as it has been read.

    Attributes:
        live: torch's nodes.
        rows: what was read of them.
        seen: what backward did, if one ran.
        reached: the leaves' nodes that the last backward inside the recorded code reached.
    """

    def __init__(self, tensors: Tensors, names: Names, values: str) -> None:
        self.live = Live()
        self.rows = NodeRows()
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
        self.rows.read(live, _Known(rows, self._tensors, self._names))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The records of the nodes."""
        return nodes_of(self.rows.made())

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
        places: dict[int | None, int] = {}
        for group in self.rows.groups:
            origins = group.sequences
            if group.kind == "accumulate":
                origins = [-1 - id(live[place].variable) for place in group.places]
            places.update(zip(origins, group.places, strict=True))
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
        self.rows = self.rows.renumbered(new)
        for old in order[len(ahead) :]:
            ahead.add(self.live.nodes[old])
        self.live = ahead
        seen, self.seen = self.seen, None
        if seen is not None:
            self.add(seen, new)


def _as_met(name: str, values: Sequence[Row], place: int) -> Saved | None:
    """What is saved of a value that was met itself and never written to; -1 is none at all."""
    if place < 0:
        return None
    value = values[place]
    shape, dtype, _, _, size = value[LOOK]
    return _saved((name, shape, dtype, size, value[STORAGE], 0, place))


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
    ) -> Iterable[Saved | None]:
        """Most are values that were met themselves and never written to."""
        known = list(map(self._last.get, map(id, tensors), repeat(_NOBODY)))
        spelled = partial(_as_met, name, self._values)
        same = map(is_, map(call, map(_reference, known)), tensors)
        versions = map(getattr, tensors, repeat("_version"), repeat(0))
        if all(same) and not any(map(_version, known)) and not any(versions):
            return map(spelled, list(map(_value, known)))
        if name == "result" and (places := self._results(tensors, ops)):
            return map(spelled, places)
        return [
            spelled(entry[3])
            if entry[0]() is tensor and not entry[1] and not getattr(tensor, "_version", 0)
            else self.save(name, node, tensor, op)
            for entry, node, tensor, op in zip(known, nodes, tensors, ops, strict=True)
        ]

    def _results(self, tensors: Sequence[Any], ops: Sequence[int | None]) -> list[int]:
        """The values that nodes keep, if each is the one result of its op; else none.

        Torch keeps a result as a new tensor that shares its memory.
        """
        rows = self._ops
        places = [
            rows[op][OUTPUTS][0] for op in ops if op is not None and len(rows[op][OUTPUTS]) == 1
        ]
        if len(places) < len(ops):
            return []
        values = list(map(self._values.__getitem__, places))
        versions = map(getattr, tensors, repeat("_version"), repeat(1))
        if any(versions) or any(value[VERSION] for value in values):
            return []
        numbers = map(self._tensors.number, tensors)
        shapes = [look[0] for look in map(_look, values)]
        same = all(map(eq, map(_storage, values), numbers))
        return places if same and all(map(eq, shapes, map(sizes_of, tensors))) else []

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
        storage, shape = self._tensors.number(tensor), sizes_of(tensor)
        value = None if op is None or storage is None else self._of_op(op, storage, shape)
        if value is None:
            return shape, spell(tensor.dtype), size_of(tensor), storage, None
        return *_kept(self._values[value][LOOK]), storage, value

    def _of_op(self, op: int, storage: int, shape: Shape) -> int | None:
        row, values = self._ops[op], self._values
        for place in chain(row[OUTPUTS], row[INPUTS]):
            value = values[place]
            if value[STORAGE] == storage and value[LOOK][0] == shape:
                return place
        return None
