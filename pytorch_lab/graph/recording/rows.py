"""What is noted while recording: the ops, already in the shape of their records."""

from typing import Any, NamedTuple

from pytorch_lab.graph.schema import NOWHERE

# Where `record.Op` keeps what is filled in later
NAME, KIND, INPUTS, OUTPUTS, NODE, NODES, SAVED_BYTES = 1, 2, 6, 7, 8, 9, 10
ELAPSED = 15


class Rows:
    """The ops of one recording, each a list of the fields of `record.Op`.

    Attributes:
        ops: the ops.
        made: for each op that made nodes: torch's count of nodes before and after it, and the op.
    """

    def __init__(self) -> None:
        self.ops: list[list[Any]] = []
        self.made: list[tuple[int, int, int]] = []

    def function(self, name: str, kind: str, sequence: int) -> int:
        """An op that was not seen itself but left a node; its place."""
        index = len(self.ops)
        self.made.append((sequence, sequence + 1, index))
        self.ops.append(
            [
                index,
                name,
                kind,
                NOWHERE,
                "",
                None,
                (),
                (),
                None,
                (),
                0,
                False,
                "grad",
                None,
                None,
                0,
            ]
        )
        return index


class Entered(NamedTuple):
    """One call of a module while recording."""

    path: str
    type: str
    times: int  # how often this module was called before
    parent: int | None
    first_op: int
    training: bool
