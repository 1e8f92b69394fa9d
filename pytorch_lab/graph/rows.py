"""What is noted while recording: one flat row for each op and each call of a module."""

from typing import NamedTuple

from pytorch_lab.graph.sites import Place


class Row(NamedTuple):
    """One op while recording."""

    name: str
    kind: str
    place: Place | None
    call: int | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    before: int  # torch's count of nodes when it began, and when it was done
    after: int
    in_place: bool
    grad_mode: str
    autocast: str | None
    inside: int | None
    elapsed_ns: int


class Entered(NamedTuple):
    """One call of a module while recording."""

    path: str
    type: str
    count: int
    parent: int | None
    first_op: int
    training: bool
