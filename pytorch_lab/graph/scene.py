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

ROOT = 0
FAMILIES = {"op": "op", "node": "node", "input": "value", "call": "call", "function": "op"}


class Look(NamedTuple):
    """What stands in a box; equal boxes share one.

    `kind` is one of

    - leaves: "op", "node", "input";
    - frames: "root", "call" (of a module), "function" (an op with others inside), "repeat" (equal
      neighbours), "loop", "step" (of a loop), "range" (some of a long sequence).
    """

    kind: str
    title: str  # "linear", "GPT2Block", "GPT2Block × 12", "step 3"
    sub: str  # the shape of what comes out, the path of a module, or ""
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

    def to_dict(self) -> dict[str, Any]:
        """The scene as JSON: small numbers, because twenty thousand items have to travel.

        - `view`: "ops" or "autograd".
        - `spans`: of each item, how many items it and its descendants are (1 for a leaf).
        - `look`: of each item, its place in `looks`.
        - `looks`: `[kind, title, sub, [chip, ...], width, height, [mark, ...]]`, see `Look`.
        - `refs`: of each item whose kind refers to something, in order: the difference from the
          last one of the same family (op with function, node, input, call).
        - `edges`: flat pairs: how far the source lies behind the source before, how far the target
          lies behind the source.
        - `open`: the items that are unfolded at first.

        `unpackScene` of `graph_layout.js` undoes this.

        Example:
            >>> look = Look("op", "relu", "(2,)", (), 60, 40, ())
            >>> root = Look("root", "", "", (), 0, 0, ())
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
            "looks": [
                [*look[:3], list(look.chips), *look[4:6], list(look.marks)] for look in self.looks
            ],
            "refs": refs,
            "edges": edges,
            "open": list(self.open),
        }
