"""What is noted while recording: the ops, already in the shape of their records."""

from itertools import repeat
from typing import Any, NamedTuple

from pytorch_lab.graph.schema import Site

Row = tuple[Any, ...]

# Where `schema.Op` keeps what is looked at or filled in later
NAME, KIND, INPUTS, OUTPUTS, NODE, NODES, SAVED_BYTES = 1, 2, 6, 7, 8, 9, 10
ELAPSED = 15


class Rows:
    """The ops of one recording, each a tuple of the fields of `schema.Op`.

    Attributes:
        ops: the ops.
        made: which op made a node, by torch's count of nodes.
    """

    def __init__(self) -> None:
        self.ops: list[Row] = []
        self.made: dict[int, int] = {}

    def add(
        self,
        name: str,
        kind: str,
        site: Site,
        path: str,
        call: int | None,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        before: int,
        after: int,
        elapsed_ns: int,
        autocast: str | None,
        in_place: bool = False,
        grad_mode: str = "grad",
        inside: int | None = None,
    ) -> int:
        """Note an op, as in `schema.Op`, with torch's counts of nodes; returns its place."""
        op = len(self.ops)
        if after == before + 1:
            self.made[before] = op
        else:
            self.made.update(zip(range(before, after), repeat(op)))
        self.ops.append(
            (op, name, kind, site, path, call, inputs, outputs, None, (), 0, in_place, grad_mode,
             autocast, inside, elapsed_ns)
        )  # fmt: skip
        return op

    def change(self, op: int, field: int, value: Any) -> None:
        """Give a field of an op another value."""
        row = self.ops[op]
        self.ops[op] = (*row[:field], value, *row[field + 1 :])


class Entered(NamedTuple):
    """One call of a module while recording."""

    path: str
    type: str
    times: int  # how often this module was called before
    parent: int | None
    training: bool
