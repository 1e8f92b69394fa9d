"""What a drawing of a record shows: boxes in frames in frames, and what flows between them.

A scene is a tree. Its leaves are ops (or, in the view "autograd", nodes) and inputs; what lies
above them can be folded into one box: the call of a module, a repeated block ("× 12"), a loop and
its steps, a custom Function, and, so that nothing opens into hundreds of boxes, a range of a long
sequence. `Scene.open` is how much of it is unfolded at first: about forty boxes for any model.

Parameters and buffers are not boxes but chips on the op that reads them: a weight that five hundred
steps share would pull the whole picture towards itself.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from pytorch_lab.errors import UsageError
from pytorch_lab.graph.drawing.folding import Bud
from pytorch_lab.graph.drawing.growing import Tree
from pytorch_lab.graph.drawing.layout import Diagram
from pytorch_lab.svg import MONO_WIDTH

VIEWS = ("ops", "autograd")
BOXES = 40  # that are unfolded at first
TITLE, SMALL, CHIP = 12.0, 10.5, 9.5  # sizes of letters
WIDEST = 230.0
FAMILIES = {"op": "op", "node": "node", "input": "value", "call": "call", "function": "op"}


class Look(NamedTuple):
    """What stands in a box; equal boxes share one.

    `kind` is one of

    - leaves: "op", "node", "input", "error" (what was to come when the run ended);
    - frames: "root", "call" (of a module), "function" (an op with others inside), "repeat" (equal
      neighbours), "loop", "step" (of a loop), "range" (some of a long sequence).
    """

    kind: str
    title: str  # "linear", "GPT2Block", "GPT2Block × 12", "step 3"
    sub: str  # the path of a module, how many items a range has, or ""
    shape: str  # of what comes out: "(32, 10)", "scalar", or ""
    chips: tuple[str, ...]  # parameters and buffers that the op reads
    width: float  # of the box: of a leaf, or of a folded frame
    height: float
    marks: tuple[str, ...]  # of "no_grad", "inference", "detach", "error", "output", "in_place"


@dataclass(frozen=True)
class Scene:
    """The tree in preorder, as columns: item `i` has the descendants `i + 1` to `ends[i] - 1`.

    Attributes:
        view: "ops" or "autograd".
        ends: one past the last descendant of each item; of a leaf, the next item. Item 0 is the
            root: it is always open and has no frame.
        look: which of `looks` each item has.
        refs: what each item stands for: the place in `record.ops` ("op", "function"), in
            `record.nodes` ("node"), in `record.values` ("input"), in `record.calls` ("call"), and
            for all others -1.
        looks: see `Look`.
        edges: pairs of leaves, sorted: what the first makes, the second reads. In the view
            "autograd" too they point the way the data flowed, against the gradient.
        open: the frames that are unfolded at first.
    """

    view: str
    ends: tuple[int, ...]
    look: tuple[int, ...]
    refs: tuple[int, ...]
    looks: tuple[Look, ...]
    edges: tuple[tuple[int, int], ...]
    open: tuple[int, ...]

    @property
    def diagram(self) -> Diagram:
        """What `layout` needs to know."""
        sizes = [(look.width, look.height) for look in self.looks]
        return Diagram(self.ends, [sizes[place] for place in self.look], self.edges)

    def to_dict(self) -> dict[str, Any]:
        """The scene as JSON: small numbers, because twenty thousand items have to travel.

        - `view`: "ops" or "autograd".
        - `spans`: of each item, how many items it and its descendants are (1 for a leaf).
        - `look`: of each item, its place in `looks`.
        - `looks`: `[kind, title, sub, shape, [chip, ...], width, height, [mark, ...]]`, see `Look`.
        - `refs`: of each item whose kind refers to something, in order: the difference from the
          last one of the same family (op with function, node, input, call).
        - `edges`: flat pairs: how far the source lies behind the source before, how far the target
          lies behind the source.
        - `open`: the items that are unfolded at first.

        `unpackScene` of `graph_scene.js` undoes this.

        Example:
            >>> look = Look("op", "relu", "", "(2,)", (), 60, 40, ())
            >>> root = Look("root", "", "", "", (), 0, 0, ())
            >>> refs, edges = (-1, 0, 1), ((1, 2),)
            >>> scene = Scene("ops", (3, 2, 3), (0, 1, 1), refs, (root, look), edges, (0,))
            >>> packed = scene.to_dict()
            >>> packed["spans"], packed["refs"], packed["edges"]
            ([3, 1, 1], [0, 1], [1, 1])
        """
        last = dict.fromkeys(FAMILIES.values(), 0)
        refs = []
        for item, ref in enumerate(self.refs):
            family = FAMILIES.get(self.looks[self.look[item]].kind)
            if family:
                refs.append(ref - last[family])
                last[family] = ref
        edges, before = [], 0
        for source, target in self.edges:
            edges += [source - before, target - source]
            before = source
        return {
            "view": self.view,
            "spans": [end - item for item, end in enumerate(self.ends)],
            "look": list(self.look),
            "looks": [[*each[:4], list(each[4]), *each[5:7], list(each[7])] for each in self.looks],
            "refs": refs,
            "edges": edges,
            "open": list(self.open),
        }


def scene_of(record: Any, view: str = "ops") -> Scene:
    """What there is to draw of a record.

    Args:
        record: a `GraphRecord`.
        view: "ops", what ran forward; "autograd", the nodes that backward goes through. A record
            without ops, as `of(tensor)` makes it, has only the second.

    Raises:
        UsageError: if there is no such view.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph import record
        >>> scene = scene_of(record(torch.nn.Linear(2, 1), torch.ones(3, 2)))
        >>> [scene.looks[place].title for place in scene.look]
        ['', 'input', 'Linear', 'linear']
    """
    if view not in VIEWS:
        raise UsageError(f"expected a view of {VIEWS}, got {view!r}; leave it out for 'ops'")
    if not record.ops and record.nodes:
        view = "autograd"
    return _Writer(Tree(record, view), record, view).scene()


class _Writer:
    """Numbers the items of a tree and says what stands in each."""

    def __init__(self, tree: Tree, record: Any, view: str) -> None:
        self.tree, self.record, self.view = tree, record, view
        self.items: list[Bud] = []
        self.ends: list[int] = []
        self.number: dict[Bud, int] = {}
        self.looks: dict[Look, int] = {}
        self._walk()
        self.done = [Look("root", "", "", "", (), 0, 0, ())] * len(self.items)
        for item in reversed(range(1, len(self.items))):  # a frame speaks for what is in it
            self.done[item] = self._look(item)

    def scene(self) -> Scene:
        look = [self.looks.setdefault(each, len(self.looks)) for each in self.done]
        edges = {(self.number[a], self.number[b]) for a, b in self.tree.edges}
        return Scene(
            self.view,
            tuple(self.ends),
            tuple(look),
            tuple([bud.ref for bud in self.items]),
            tuple(self.looks),
            tuple(sorted(edges)),
            tuple(sorted(self._open())),
        )

    def _walk(self) -> None:
        stack = [self.tree.root]
        while stack:
            bud = stack.pop()
            self.number[bud] = len(self.items)
            self.items.append(bud)
            stack += reversed(bud.kids or [])
        self.ends = list(range(1, len(self.items) + 1))
        for item in reversed(range(len(self.items))):
            kids = self.items[item].kids
            if kids:
                self.ends[item] = self.ends[self.number[kids[-1]]]

    def _look(self, item: int) -> Look:
        bud, record = self.items[item], self.record
        chips = self._chips(bud)
        if bud.kind == "op":
            op = record.ops[bud.ref]
            shape = spell_shape(record.values[op.outputs[0]].shape) if op.outputs else ""
            sub = "→ Python" if op.kind == "exit" else ""
            return _boxed(bud.kind, bud.title, sub, shape, chips, self._op_marks(bud))
        if bud.kind == "node":
            node = record.nodes[bud.ref]
            shape = spell_shape(node.shapes[0]) if node.shapes else ""
            marks = ("leaf",) if node.kind == "accumulate" else ()
            return _boxed(bud.kind, bud.title, "", shape, chips, marks)
        if bud.kind == "input":
            return _boxed("input", bud.title, "", spell_shape(record.values[bud.ref].shape), (), ())
        if bud.kind == "error":
            name, _, says = bud.title.partition(": ")
            return _boxed("error", name, says.split("\n")[0], "", (), ("error",))
        return self._frame_look(item)

    def _chips(self, bud: Bud) -> tuple[str, ...]:
        names = self.tree.chips.get(bud, [])
        if len(names) > 3:
            return (*names[:2], f"+{len(names) - 2}")
        return tuple(names)

    def _op_marks(self, bud: Bud) -> tuple[str, ...]:
        op = self.record.ops[bud.ref]
        marks = []
        if op.grad_mode != "grad":
            marks.append(op.grad_mode)
        if op.kind == "detach":
            marks.append("detach")
        if op.in_place:
            marks.append("in_place")
        if set(op.outputs) & set(self.record.outputs):
            marks.append("output")
        if bud is self.tree.failed:
            marks.append("error")
        return tuple(marks)

    def _frame_look(self, item: int) -> Look:
        bud = self.items[item]
        kids = bud.kids or []
        looks = [self._look_of(kid) for kid in kids]
        title, sub = bud.title, ""
        if bud.kind == "call":
            call = self.record.calls[bud.ref]
            above = "" if call.parent is None else self.record.calls[call.parent].path
            sub = call.path.removeprefix(f"{above}." if above else "")
        elif bud.kind == "range":
            title, sub = self._range_words(bud)
        elif bud.kind == "repeat":
            sub = self._paths(kids[0].span[0], kids[-1].span[1])
        elif bud.kind == "loop":
            sub = self._where(item)
        ends = [look for look in looks if look.shape]
        chips = max((look.chips for look in looks), key=len) if _is_small(bud) else ()
        marks = [
            mark for mark in ("no_grad", "inference") if all(mark in look.marks for look in looks)
        ]
        marks += [mark for mark in ("error", "output") if any(mark in look.marks for look in looks)]
        return _boxed(bud.kind, title, sub, ends[-1].shape if ends else "", chips, tuple(marks))

    def _look_of(self, bud: Bud) -> Look:
        return self.done[self.number[bud]]

    def _range_words(self, bud: Bud) -> tuple[str, str]:
        first, last, count = bud.span
        if first.form == last.form and first.title == last.title:
            return f"{first.title} × {count}", self._paths(first, last)
        if first.kind == last.kind == "step":
            return f"{first.title} … {last.title.removeprefix('step ').removeprefix('#')}", ""
        return f"{first.title} … {last.title}", f"{count} items"

    def _paths(self, first: Bud, last: Bud) -> str:
        """What a series of modules is called: "h.1 … h.10"; nothing for others."""
        if first.kind != "call" or last.kind != "call":
            return ""
        return " … ".join(self.record.calls[bud.ref].path for bud in (first, last))

    def _where(self, item: int) -> str:
        """The line of the first op in a frame; in which file it stands would not fit in."""
        for bud in self.items[item : self.ends[item]]:
            if bud.kind == "op":
                line = self.record.ops[bud.ref].line
                return f"line {line}" if line else ""
        return ""

    def _open(self) -> list[int]:
        """Unfold level by level as long as the boxes stay few; of a series, the first one."""
        opened, n_boxes = [], 1
        level = [0]
        while level:
            below = []
            for item in level:
                kids = self.items[item].kids or []
                more = len(kids) - 1
                if item and n_boxes + more > BOXES:
                    continue
                opened.append(item)
                n_boxes += more
                is_series = self.items[item].kind in ("loop", "repeat")
                for kid in kids[:1] if is_series else kids:
                    if kid.kids and kid.kind != "range" and not _is_small(kid):
                        below.append(self.number[kid])
            level = below
        return opened


def _is_small(bud: Bud) -> bool:
    """A frame with one op in it or two, as most of torch's layers are: its box says it all."""
    kids = bud.kids or []
    return len(kids) <= 2 and all(kid.kids is None for kid in kids)


def spell_shape(shape: tuple[int, ...]) -> str:
    """A tensor's shape as boxes show it.

    Example:
        >>> spell_shape((32, 10)), spell_shape((5,)), spell_shape(())
        ('(32, 10)', '(5,)', 'scalar')
    """
    return str(tuple(shape)) if shape else "scalar"


def _boxed(
    kind: str, title: str, sub: str, shape: str, chips: tuple[str, ...], marks: tuple[str, ...]
) -> Look:
    """A look whose box has room for its words."""
    room = len(title) * TITLE
    room = max(room, len(sub) * SMALL, len(shape) * SMALL) * MONO_WIDTH
    pills = sum(chip_width(chip) + 4 for chip in chips) - 4 if chips else 0
    series = 6 if kind in ("repeat", "loop", "range") else 0  # sheets behind the box
    width = min(max(room, pills), WIDEST - 22) + 22 + series
    n_small = bool(sub) + bool(shape)
    height = 26 + 14 * n_small + (19 if chips else 0) + series
    return Look(kind, title, sub, shape, chips, float(round(width)), float(height), marks)


def chip_width(chip: str) -> float:
    """Of the pill around a parameter's name."""
    return min(len(chip), 14) * CHIP * MONO_WIDTH + 10
