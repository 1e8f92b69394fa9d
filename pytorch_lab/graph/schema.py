"""What a recorded graph is made of: numbers and strings, so that nothing of torch is kept alive.

    GraphRecord
    ├── ops             what ran forward, in order            Op     (reads and makes values)
    ├── values          the tensors that the ops handled      Value  (one per tensor and version)
    ├── nodes           the autograd graph                    Node   (the same op, seen from behind)
    ├── calls           which module was entered, and when    Call
    └── backward_order  the nodes in the order in which backward ran them

Everything refers to everything else by its place: `record.values[op.inputs[0]]`.

The small records are named tuples because a recurrent net makes tens of thousands of them: a frozen
dataclass takes four times as long to build. (A tuple has methods called `index` and `count`; ours
hide them, and the type checker is told so.) Equal sites, shapes and names are one object.
"""

from typing import NamedTuple

from pytorch_lab.words import shortened

Shape = tuple[int, ...]


class Site(NamedTuple):
    """The place in the reader's own source that called an op.

    `columns` are the first and the one-past-last character of the expression on `line`, counted
    from 0 as `str` slices them, or None where Python does not know; `end_line` differs from `line`
    where the expression goes over several lines, and then `columns[1]` belongs to `end_line`.
    """

    file: str  # as Python names it; a notebook's cell has a name of its own
    line: int  # from 1; 0 if no line of the reader's was running
    columns: tuple[int, int] | None
    end_line: int
    function: str  # "Net.forward", "<module>"
    first_line: int  # of that function

    @property
    def where(self) -> str:
        """`model.py:12`, or `cell [7] line 3` in a notebook; empty without a line."""
        from pytorch_lab.modules.lines import spell_line

        return spell_line(self.file, self.line) if self.line else ""


NOWHERE = Site("", 0, None, 0, "", 0)


class Failure(NamedTuple):
    """The exception that ended a run."""

    kind: str  # "RuntimeError"
    message: str  # all that it said
    site: Site = NOWHERE  # the innermost line of the reader's that it came through
    in_backward: bool = False

    def __str__(self) -> str:
        """One sentence; of a very long message the middle is left out."""
        says = f": {shortened(self.message)}" if self.message else ""
        where = f" at {self.site.where}" if self.site.line else ""
        return f"{self.kind}{says}{where}{' (in backward)' if self.in_backward else ''}"


class Stats(NamedTuple):
    """A small summary of a tensor's values; the four figures leave NaN and inf out."""

    min: float
    max: float
    mean: float
    norm: float  # the Euclidean length
    zeros: float  # share of all elements, 0 to 1
    nan: int  # how many
    inf: int


class Value(NamedTuple):
    """A tensor at one moment: an in-place op makes a new value of the same tensor."""

    index: int  # pyright: ignore[reportIncompatibleMethodOverride]
    kind: str  # "input", "parameter", "buffer", "constant" (met, but made before), "result"
    name: str  # "x", "fc.weight"; a result has one only if it is a new version of a named tensor
    shape: Shape
    dtype: str  # "float32"
    device: str
    stride: Shape
    bytes: int
    requires_grad: bool
    is_leaf: bool
    version: int | None  # None for an inference tensor: it does not count
    storage: int  # values with the same number share memory
    view_of: int | None  # the value whose memory this one looks into
    op: int | None  # which op made it; None for what came from outside
    node: int | None  # its grad_fn, for a leaf its AccumulateGrad; None if dropped when read
    stats: Stats | None
    numbers: tuple[float, ...] | None  # all elements in order, of small tensors with values="full"


class Op(NamedTuple):
    """One call of a torch function."""

    index: int  # pyright: ignore[reportIncompatibleMethodOverride]
    name: str  # "linear", "add", "relu_", "cross_entropy"
    kind: str  # see KINDS
    site: Site
    module: str  # the path of the innermost module that was running; "" is the root or none
    call: int | None  # which of `record.calls`; None outside of every module
    inputs: tuple[int, ...]  # places in `record.values`
    outputs: tuple[int, ...]
    node: int | None  # the grad_fn of its first output that has one
    nodes: tuple[int, ...]  # all nodes that it made; a composite op makes several
    saved_bytes: int  # what its nodes keep for backward and no earlier op kept already
    in_place: bool
    grad_mode: str  # "grad", "no_grad", "inference"
    autocast: str | None  # the dtype it casts to, where autocast is on
    inside: int | None  # the op within which this one ran: a custom Function, a checkpoint
    elapsed_ns: int  # from call to return, including what recording it cost

    @property
    def file(self) -> str:
        """The file of the line that called it."""
        return self.site.file

    @property
    def line(self) -> int:
        """The line that called it, from 1; 0 if none of the reader's was running."""
        return self.site.line

    @property
    def columns(self) -> tuple[int, int] | None:
        """The characters of that line which are the call; see `Site`."""
        return self.site.columns


KINDS = {
    "op": "an op like any other",
    "detach": "the graph ends here on purpose: detach(), .data",
    "exit": "the value leaves torch: item(), numpy(), tolist(), bool(), int(), float()",
    "function": "a custom autograd.Function; what ran in its forward lies inside",
    "checkpoint": "a checkpoint: what ran in it is run again in backward",
    "transform": "torch.func: grad, vmap, jvp, ...; its inner ops lie inside",
    "compiled": "compiled code, one node for all of it",
    "backward": "backward() or autograd.grad(), called by the recorded code",
    "optimizer": "an op of an optimizer's step",
}


class Saved(NamedTuple):
    """What a node keeps for its backward."""

    name: str  # "self", "mat2", "result", as the derivative's formula calls it
    shape: Shape
    dtype: str
    bytes: int
    storage: int | None  # the same numbers as `Value.storage`
    version: int | None  # at which it was saved
    value: int | None  # which of `record.values`, if it is one of them


class Node(NamedTuple):
    """A node of the autograd graph."""

    index: int  # pyright: ignore[reportIncompatibleMethodOverride]
    name: str  # "AddmmBackward0"
    kind: str  # "builtin", "accumulate", "function", "compiled", "checkpoint"
    next: tuple[int, ...]  # where its gradients go: places in `record.nodes`; nobody's are left out
    next_inputs: tuple[int, ...]  # to which output of that node, one for each of `next`
    shapes: tuple[Shape, ...]  # of the gradients that it receives, one for each of its outputs
    dtype: str
    device: str
    saved: tuple[Saved, ...]
    freed: bool | None  # whether `saved` is gone; None before backward, and where nothing was saved
    parameter: str | None  # of an AccumulateGrad: the name of its leaf, "" if it has none
    op: int | None  # which of `record.ops` made it; None for AccumulateGrad
    sequence: int  # torch's own count; the larger is the younger. -1 for AccumulateGrad
    grads: tuple[Stats | None, ...]  # of the gradients that reached it; empty if it did not run
    hooks: int  # how many hooks of the reader's are on it
    numbers: tuple[tuple[float, ...] | None, ...] = ()  # of these gradients, as `Value.numbers`


class Call(NamedTuple):
    """One run of a module's forward."""

    index: int  # pyright: ignore[reportIncompatibleMethodOverride]
    path: str  # "encoder.layers.0"; "" is the root
    type: str  # "TransformerEncoderLayer"
    count: int  # pyright: ignore[reportIncompatibleMethodOverride] # the how-manieth call of this module, from 0
    parent: int | None
    first_op: int
    end_op: int  # one past its last
    training: bool
