"""Where boxes, frames and edges go: layers from top to bottom, frame by frame from the inside out.

The method is that of Sugiyama, Tagawa and Toda (1981): every box gets a layer below all that it
reads, every edge over several layers a lane past the boxes between, the layers are put in an order
with few crossings, and then everything gets its place. Each open frame is laid out alone, as a
graph of what is directly in it; its parent sees a box with ports. So the cost grows with what is
open, and opening a frame moves only what stands around it.

All edges that leave one box are one net: they share their way and part as late as they can. A
weight or an input that is read in a hundred places is one lane with a hundred branches.

This file knows the tree, `layers.py` the layers of one frame, `columns.py` its columns, and
`routes.py` the edges. Nothing here knows torch. `widgets/graph_layout.js` takes the same steps, in
the same order, with the same numbers: change both.
"""

import gc
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytorch_lab.graph.drawing.columns import set_columns
from pytorch_lab.graph.drawing.layers import Inside, Net, stack_layers
from pytorch_lab.graph.drawing.routes import Route, join_routes, place_rows, rounded

Size = tuple[float, float]


class Diagram(NamedTuple):
    """What is to be laid out: a tree in preorder, as `Scene` has it, and edges between its leaves.

    Attributes:
        ends: one past the last descendant of each item; item 0 is the root.
        sizes: width and height of each item's box: of a leaf, or of a folded frame.
        edges: pairs of leaves. They may form cycles; those that point back are drawn so.
    """

    ends: Sequence[int]
    sizes: Sequence[Size]
    edges: Iterable[tuple[int, int]]


class Box(NamedTuple):
    """A box, or an open frame, with its left upper corner."""

    item: int
    x: float
    y: float
    width: float
    height: float
    is_open: bool


class Layout(NamedTuple):
    """Places rounded to 0.1; (0, 0) is the left upper corner.

    Attributes:
        width: of the whole.
        height: of the whole.
        boxes: all that show, a frame before what is in it; the root is not among them.
        routes: one for each pair of items that show and have an edge between them; an edge and its
            opposite are one.
    """

    width: float
    height: float
    boxes: tuple[Box, ...]
    routes: tuple[Route, ...]


def stand_ins(ends: Sequence[int], opened: frozenset[int] | set[int]) -> list[int]:
    """For each item the one that shows in its place: itself, or the outermost folded frame.

    Example:
        >>> stand_ins([4, 3, 3, 4], {0})  # item 2 is in frame 1
        [0, 1, 1, 3]
    """
    found = []
    end = by = 0
    for item in range(len(ends)):
        if item >= end:
            by = item
            end = item + 1 if item == 0 or item in opened else ends[item]
        found.append(by)
    return found


def layout(diagram: Diagram, opened: Iterable[int] = ()) -> Layout:
    """Lay out what shows when the frames `opened` are open; a frame in a folded one does not.

    Time and memory are near to linear in the boxes that show; nothing is recursive. The same
    arguments give the same layout.

    Args:
        diagram: the tree, its sizes and its edges.
        opened: frames to unfold; the root is always open.

    Example:
        >>> pair = Diagram(ends=[3, 2, 3], sizes=[(0, 0), (60, 30), (60, 30)], edges=[(1, 2)])
        >>> above, below = layout(pair).boxes
        >>> above.x == below.x, above.y < below.y
        (True, True)
    """
    was = gc.isenabled()
    gc.disable()  # half of the time went into looking through a hundred thousand small lists
    try:
        return _lay_out(Tree(diagram, set(opened)))
    finally:
        if was:
            gc.enable()


def _lay_out(tree: "Tree") -> Layout:
    insides: dict[int, Inside] = {}
    for frame in reversed(tree.frames):
        inside = stack_layers(tree.kids[frame], tree.nets[frame], tree, insides)
        set_columns(inside)
        place_rows(inside, tree.sizes[frame], is_root=frame == 0)
        insides[frame] = inside
        tree.sizes[frame] = (inside.width, inside.height)
    corners = _corners(tree, insides)
    boxes = tuple([_box(item, corners[item], tree) for item in tree.shown[1:]])
    routes = join_routes(tree.pairs, tree.flipped, tree.parents, tree.ends, insides, corners)
    width, height = tree.sizes[0]
    return Layout(rounded(width), rounded(height), boxes, routes)


class Tree:
    """Which items show, and which nets lie in each open frame.

    Attributes:
        shown: the items that show, in preorder, with the root.
        frames: those of them that are open.
        kids: what shows directly in each open frame.
        parents: of each item that shows.
        sizes: of each item that shows; of an open frame once it is laid out.
        pairs: the edges between items that show, each once, pointing down; sorted.
        flipped: those of `pairs` that point up in truth.
        nets: of each open frame, by the item where it starts.
    """

    def __init__(self, diagram: Diagram, opened: set[int]) -> None:
        self.ends = diagram.ends
        self.sizes = dict(enumerate(diagram.sizes))
        by = stand_ins(diagram.ends, opened)
        self.shown = [item for item, shown in enumerate(by) if item == shown]
        is_frame = [end > item + 1 for item, end in enumerate(diagram.ends)]
        self.frames = [
            item for item in self.shown if item == 0 or (item in opened and is_frame[item])
        ]
        self.parents = {0: -1}
        self.kids: dict[int, list[int]] = {frame: [] for frame in self.frames}
        above = [0]
        for item in self.shown[1:]:
            while diagram.ends[above[-1]] <= item:
                above.pop()
            self.parents[item] = above[-1]
            self.kids[above[-1]].append(item)
            if item in self.kids:
                above.append(item)
        down, up = set(), set()
        for source, target in diagram.edges:
            first, second = by[source], by[target]
            if first < second:
                down.add((first, second))
            elif first > second:
                up.add((second, first))
        self.flipped = up - down
        self.pairs = sorted(down | up)
        self.nets: dict[int, list[Net]] = {frame: [] for frame in self.frames}
        self._spread()

    def _spread(self) -> None:
        """Cut every net into one piece for each frame that it passes."""
        here: dict[int, Net] = {}  # the pieces of the net at hand, by frame
        parents, ends = self.parents, self.ends
        source = -1
        for start, target in self.pairs:
            if start != source:
                source, here = start, {}
            item, frame = target, parents[target]
            while not frame <= source < ends[frame]:
                net = here.get(frame)
                if net is not None:
                    break
                here[frame] = self._piece(frame, source, None, item)
                item, frame = frame, parents[frame]
            net = here.get(frame)
            if net is None:
                here[frame] = self._piece(frame, source, self._rise(source, frame, here), item)
            elif not net.targets or net.targets[-1] != item:
                net.targets.append(item)

    def _piece(self, frame: int, source: int, start: int | None, target: int | None) -> Net:
        net = Net(source, start, [] if target is None else [target], target is None)
        self.nets[frame].append(net)
        return net

    def _rise(self, source: int, frame: int, here: dict[int, Net]) -> int:
        """Lead the net out of all frames up to `frame`; which item of `frame` it comes from."""
        item = source
        while self.parents[item] != frame:
            within = self.parents[item]
            net = here.get(within)
            if net is None:
                here[within] = self._piece(within, source, item, None)
            else:
                net.leaves = True
            item = within
        return item


def _corners(tree: Tree, insides: dict[int, Inside]) -> dict[int, tuple[float, float]]:
    corners = {0: (0.0, 0.0)}
    for frame in tree.frames:
        x, y = corners[frame]
        inside = insides[frame]
        for item, left, top in zip(tree.kids[frame], inside.lefts, inside.tops, strict=True):
            corners[item] = (x + left, y + top)
    return corners


def _box(item: int, corner: tuple[float, float], tree: Tree) -> Box:
    (x, y), (width, height) = corner, tree.sizes[item]
    size = rounded(width), rounded(height)
    return Box(item, rounded(x), rounded(y), *size, item in tree.kids)
