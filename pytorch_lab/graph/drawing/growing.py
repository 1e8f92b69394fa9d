"""From a record to the tree of its drawing: ops in the modules that ran them, what repeats folded.

`growing.py` makes the tree, `folding.py` folds it, `scene.py` writes it down.
"""

from collections import Counter
from typing import Any

from pytorch_lab.graph.drawing.folding import Bud, Folder
from pytorch_lab.graph.schema import Op

SHARED = 6  # what more ops read than that is a chip on each: as a box it would pull on all of them
TINY = 30  # nodes up to which a leaf's AccumulateGrad is a box of its own


class Tree:
    """The tree of one view, and what flows between its leaves.

    Attributes:
        root: item 0.
        edges: pairs of leaves, from the one that makes to the one that reads.
        chips: of each leaf, the names of the parameters that it reads.
        failed: where the run ended in an error.
    """

    def __init__(self, record: Any, view: str) -> None:
        self.record = record
        self.root = Bud("root", "")
        self.root.kids = []
        self.frames: dict[tuple[str, int], Bud] = {}  # parents before their kids
        self.edges: list[tuple[Bud, Bud]] = []
        self.chips: dict[Bud, list[str]] = {}
        self.failed: Bud | None = None
        self.holders = {op.inside for op in record.ops if op.inside is not None}
        if view == "ops":
            self._grow_ops()
        else:
            self._grow_nodes()
        folder = Folder()
        for frame in [*reversed(self.frames.values()), self.root]:
            folder.fold(frame)

    def _frame_of(self, op: Op) -> Bud:
        """The frame in which an op ran, made with all above it if it is new."""
        wanted: list[tuple[str, int]] = []
        step: tuple[str, int] | None = _home(op)
        while step is not None and step not in self.frames:
            wanted.append(step)
            kind, ref = step
            if kind == "op":
                step = _home(self.record.ops[ref])
            else:
                above = self.record.calls[ref].parent
                step = None if above is None else ("call", above)
        frame = self.root if step is None else self.frames[step]
        while wanted:
            kind, ref = wanted.pop()
            if kind == "op":
                inner = self._op_bud("function", ref)
            else:
                call = self.record.calls[ref]
                inner = Bud("call", call.type, ref, key=("call", call.path))
            inner.kids = []
            _add(frame, inner)
            frame = self.frames[kind, ref] = inner
        return frame

    def _op_bud(self, kind: str, ref: int) -> Bud:
        op = self.record.ops[ref]
        bud = Bud(kind, op.name, ref)
        if op.line:
            bud.key = (op.file, op.line, op.columns, op.name)
            bud.place = (op.file, op.site.first_line, op.line)
        return bud

    def _grow_ops(self) -> None:
        record = self.record
        readers = Counter(value for op in record.ops for value in dict.fromkeys(op.inputs))
        inputs = self._inputs(readers)
        leaves = {op.index: self._op_bud("op", op.index) for op in record.ops}
        for op in record.ops:
            if op.index in self.holders:  # it comes after what ran inside, which is not known yet
                self._frame_of(op._replace(inside=op.index))
            else:
                _add(self._frame_of(op), leaves[op.index])
        for kind, ref in self.frames:
            if kind == "op":
                _add(self.frames[kind, ref], leaves[ref])
        for op in record.ops:
            for value in dict.fromkeys(op.inputs):
                made_by = record.values[value].op
                source = inputs.get(value) if made_by is None else leaves.get(made_by)
                if source is not None and made_by != op.index:
                    self.edges.append((source, leaves[op.index]))
            self._chip(leaves[op.index], op, inputs)
        if record.error:
            self._end(leaves)

    def _end(self, leaves: dict[int, Bud]) -> None:
        """A box where the run ended in an error, in the module that had begun and done nothing."""
        ops, calls = self.record.ops, self.record.calls
        if ops and not ops[-1].outputs and ops[-1].kind != "exit":
            self.failed = leaves[len(ops) - 1]
            return
        self.failed = Bud("error", self.record.error)
        begun = [call for call in calls if call.first_op == call.end_op == len(ops)]
        call = begun[-1] if begun else next(iter(calls), None)
        frame = self.root
        if call is not None:
            where = ops[-1]._replace(inside=None, call=call.index) if ops else None
            frame = self._frame_of(where) if where else self.root
        _add(frame, self.failed)
        if ops:
            self.edges.append((leaves[len(ops) - 1], self.failed))

    def _inputs(self, readers: Counter[int]) -> dict[int, Bud]:
        found = {}
        for value in self.record.values:
            is_given = value.kind == "input" or (value.kind == "constant" and value.name)
            if is_given and value.op is None and 0 < readers[value.index] <= SHARED:
                found[value.index] = bud = Bud("input", value.name or "input", value.index)
                _add(self.root, bud)
        return found

    def _chip(self, leaf: Bud, op: Op, inputs: dict[int, Bud]) -> None:
        values = [self.record.values[value] for value in dict.fromkeys(op.inputs)]
        outer = [each for each in values if each.op is None and each.index not in inputs]
        names = [each.name for each in outer if each.kind in ("parameter", "input")]
        names = names or [each.name for each in outer if each.name]
        if names:
            self.chips[leaf] = [_within(name, op) for name in names]

    def _grow_nodes(self) -> None:
        record = self.record
        is_tiny = len(record.nodes) <= TINY
        inner = [node for node in record.nodes if node.kind != "accumulate"]
        # who came first in forward comes first here: the picture runs the way the data flowed
        inner.sort(key=lambda node: (node.sequence, -node.index))
        leaves: dict[int, Bud] = {}
        for node in inner:
            frame = self.root if node.op is None else self._frame_of(record.ops[node.op])
            for other in dict.fromkeys(node.next):
                ends = record.nodes[other].kind == "accumulate"
                if ends and is_tiny and other not in leaves:
                    name = record.nodes[other].parameter or "leaf"
                    op = None if node.op is None else record.ops[node.op]
                    leaves[other] = Bud("node", _within(name, op), other)
                    _add(frame, leaves[other])
            leaves[node.index] = leaf = Bud("node", node.name, node.index)
            op = None if node.op is None else record.ops[node.op]
            if op and op.line:
                leaf.key = (op.file, op.line, op.columns, node.name)
                leaf.place = (op.file, op.site.first_line, op.line)
            _add(frame, leaf)
        for node in inner:
            for other in dict.fromkeys(node.next):
                if other in leaves:
                    self.edges.append((leaves[other], leaves[node.index]))
                else:
                    name = record.nodes[other].parameter or "leaf"
                    op = None if node.op is None else record.ops[node.op]
                    self.chips.setdefault(leaves[node.index], []).append(_within(name, op))


def _home(op: Op) -> tuple[str, int] | None:
    if op.inside is not None:
        return "op", op.inside
    return None if op.call is None else ("call", op.call)


def _within(name: str, op: Op | None) -> str:
    """A parameter's name as the module says it that runs the op."""
    return name.removeprefix(f"{op.module}.") if op and op.module else name


def _add(frame: Bud, kid: Bud) -> None:
    frame.kids = [] if frame.kids is None else frame.kids
    frame.kids.append(kid)
