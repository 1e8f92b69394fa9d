"""What is noted while recording: the ops, already in the shape of their records."""

from typing import Any, NamedTuple

from pytorch_lab.graph.schema import NOWHERE

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

    def function(self, name: str, kind: str, sequence: int) -> int:
        """An op that was not seen itself but left a node; its place."""
        op = len(self.ops)
        self.made[sequence] = op
        self.ops.append(
            (op, name, kind, NOWHERE, "", None, (), (), None, (), 0, False, "grad", None, None, 0)
        )
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
