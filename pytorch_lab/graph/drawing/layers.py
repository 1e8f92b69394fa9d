"""The layers of one frame: who stands in which, and in which order.

Nodes are numbered: first the items in the frame, then ports (where nets come in at the top and go
out at the bottom) and lanes (where a net passes a layer).
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

SWEEPS = 8
LANES_PER_ITEM, LANES_ANYWAY = 2, 3000  # more than that many, and the longest go round the outside
SWAPPABLE = 400  # nodes up to which it may take more tries


class Net:
    """The part of a net that lies in one frame.

    Attributes:
        key: the item that shows from which the net starts.
        start: the item of this frame that it comes from, or None if from outside.
        targets: the items of this frame that it leads to, ascending.
        leaves: whether it leads out of this frame.
        path: its nodes from layer to layer; what is not in it hangs on the node above.
        port: the node where it leaves.
        ends: the node of each target, and then the port.
        far: those of `ends` that are reached round the outside.
        out: where it leaves its first node, from the middle.
        turns: the points where its path turns; how many of them come before each node of it, in
            `n_turns`.
    """

    __slots__ = (
        *("ends", "far", "key", "leaves", "n_turns", "out"),
        *("path", "port", "start", "targets", "turns"),
    )

    def __init__(self, key: int, start: int | None, targets: list[int], leaves: bool) -> None:
        self.key, self.start, self.targets, self.leaves = key, start, targets, leaves
        self.path: list[int] = []
        self.port = -1
        self.ends: list[int] = []
        self.far: list[int] = []
        self.out = 0.0
        self.turns: list[tuple[float, float]] = []
        self.n_turns: list[int] = []


class Inside:
    """One open frame while it is laid out, and what its parent needs to know of it.

    `up[v]` and `down[u]` hold `(other node, where the edge is attached to it, where to this)`;
    attachments are distances from the middle of a box, other than 0 only at an open frame's ports.
    """

    def __init__(self, items: Sequence[int], nets: list[Net], tree: Any) -> None:
        self.nets = nets
        self.by_key = {net.key: net for net in nets}
        self.place = {item: node for node, item in enumerate(items)}
        self.n_items = len(items)
        self.is_open = [item in tree.kids for item in items]
        self.widths: list[float] = [tree.sizes[item][0] for item in items]
        self.heights: list[float] = [tree.sizes[item][1] for item in items]
        self.rank = [1] * len(items)
        self.up: list[list[tuple[int, float, float]]] = [[] for _ in items]
        self.down: list[list[tuple[int, float, float]]] = [[] for _ in items]
        self.rows: list[list[int]] = []
        self.last = 0  # the layer of the ports at the bottom
        self.x: list[float] = []  # the middle of each node
        self.lefts: list[float] = []  # of the items, once all is placed
        self.tops: list[float] = []
        self.bands: list[tuple[float, float]] = []  # where each layer begins and ends
        self.width = self.height = 0.0
        self.enters: dict[int, float] = {}  # where a net comes in, by its key: from the middle
        self.leaves: dict[int, float] = {}  # and where it goes out
        self.into: dict[tuple[int, int], float] = {}  # where it enters an open frame in this one
        self.attached: dict[tuple[int, int], float] = {}  # where it meets a box, see routes.py
        self.outer: dict[int, float] = {}  # the lane of a net that goes round the outside

    def add(self, rank: int) -> int:
        """A port or a lane."""
        node = len(self.rank)
        self.rank.append(rank)
        self.widths.append(0.0)
        self.heights.append(0.0)
        self.up.append([])
        self.down.append([])
        return node

    def link(self, above: int, below: int, out: float = 0.0, into: float = 0.0) -> None:
        """An edge from one layer to the next."""
        self.down[above].append((below, into, out))
        self.up[below].append((above, out, into))


def stack_layers(
    items: Sequence[int], nets: list[Net], tree: Any, insides: Mapping[int, Inside]
) -> Inside:
    """Give each item a layer, each net its lanes, and each layer an order."""
    inside = Inside(items, nets, tree)
    place = inside.place
    for net in nets:
        net.ends = [place[item] for item in net.targets]
    starts = [-1 if net.start is None else place[net.start] for net in nets]
    _rank(inside, starts)
    _lead(inside, starts, items, insides)
    _order(inside)
    return inside


def _rank(inside: Inside, starts: list[int]) -> None:
    """The longest way from the top; what only feeds others moves down to where it is needed."""
    rank = inside.rank
    n_readers = [0] * inside.n_items
    for net, start in zip(inside.nets, starts, strict=True):
        if start >= 0:
            n_readers[start] += len(net.ends) + net.leaves
    feeds = [True] * inside.n_items  # whether all that leads here leads nowhere else
    for net, start in zip(inside.nets, starts, strict=True):  # ascending, so `start` is done
        below = rank[start] + 1 if start >= 0 else 1
        lends = start >= 0 and feeds[start] and n_readers[start] == 1
        for node in net.ends:
            if rank[node] < below:
                rank[node] = below
            feeds[node] = feeds[node] and lends
        if net.leaves and start >= 0:
            feeds[start] = False
    lowest: dict[int, int] = {}
    for net, start in zip(reversed(inside.nets), reversed(starts), strict=True):
        if start >= 0 and feeds[start] and net.ends:
            low = min([rank[node] for node in net.ends]) - 1
            rank[start] = lowest[start] = min(low, lowest.get(start, low))


def _lead(
    inside: Inside, starts: list[int], items: Sequence[int], insides: Mapping[int, Inside]
) -> None:
    """Ports at the top and the bottom, and a lane in each layer that a net passes."""
    rank = inside.rank
    last = inside.last = max(rank, default=0) + 1
    reach = _longest(inside, starts)
    for net, start in zip(inside.nets, starts, strict=True):
        if start < 0:
            start = inside.add(0)
            out = 0.0
        else:
            within = insides.get(items[start])
            net.out = out = within.leaves[net.key] if within else 0.0
        ends = [(rank[node], node) for node in net.ends]
        if net.leaves:
            net.port = inside.add(last)
            net.ends.append(net.port)
            ends.append((last, net.port))
        if len(ends) > 1:
            ends.sort()
        here, at = start, rank[start]
        net.path.append(start)
        first = at
        for level, node in ends:
            into = 0.0
            if node < inside.n_items and inside.is_open[node]:
                into = inside.into[net.key, node] = insides[items[node]].enters[net.key]
            if level - first > reach:
                net.far.append(node)
                continue
            while at + 1 < level:
                at += 1
                lane = inside.add(at)
                inside.link(here, lane, out)
                net.path.append(lane)
                here, out = lane, 0.0
            inside.link(here, node, out, into)


def _longest(inside: Inside, starts: list[int]) -> int:
    """Over how many layers a net may have lanes, so that all lanes together stay affordable."""
    rank = inside.rank
    spans = []
    for net, start in zip(inside.nets, starts, strict=True):
        ends = [rank[node] for node in net.ends]
        end = inside.last if net.leaves else max(ends)
        spans.append(end - (rank[start] if start >= 0 else 0))
    left = LANES_PER_ITEM * inside.n_items + LANES_ANYWAY
    spans.sort()
    for n_done, span in enumerate(spans):
        # all that are longer cost at least as much as this one
        if span * (len(spans) - n_done) > left:
            return max(1, left // (len(spans) - n_done))
        left -= span
    return inside.last + 1


def _order(inside: Inside) -> None:
    """Put each layer in an order with few crossings.

    Where boxes and lanes could stand on either side of each other, what comes first decides: so if
    crossings are left, lanes get a second try from the left, and then from both sides.
    """
    rows: list[list[int]] = [[] for _ in range(inside.last + 1)]
    for node, level in enumerate(inside.rank):
        rows[level].append(node)
    inside.rows = rows
    if max(len(row) for row in rows) < 2:
        return
    fewest = _sweep(inside, rows)
    if not fewest or len(inside.rank) > SWAPPABLE:
        return
    n_items = inside.n_items
    for start in range(2):
        tried = [[*row] for row in rows]
        for row in tried:
            items = [node for node in row if node < n_items]
            lanes = [node for node in row if node >= n_items]
            left = lanes if start == 0 else lanes[::2]
            row[:] = [*left, *items, *(node for node in lanes if node not in left)]
        best = inside.rows
        crossings = _sweep(inside, tried)
        if crossings < fewest:
            fewest = crossings
        else:
            inside.rows = best
    if fewest:
        _swap(inside)


def _sweep(inside: Inside, rows: list[list[int]]) -> int:
    """Sort each layer by the middle of its neighbours, down and up; keep the best and count it."""
    pos = [0.0] * len(inside.rank)
    for row in rows:
        _number(row, pos)
    fewest = -1
    for sweep in range(SWEEPS):
        rows = [list(row) for row in rows]
        near, other = (inside.up, inside.down) if sweep % 2 == 0 else (inside.down, inside.up)
        for row in rows if sweep % 2 == 0 else reversed(rows):
            _sort(row, near, other, inside.widths, pos)
        crossings = _count(inside, rows, pos)
        if fewest < 0 or crossings < fewest:
            inside.rows, fewest = rows, crossings
        if not crossings:
            break
    return fewest


def _number(row: list[int], pos: list[float]) -> None:
    for place, node in enumerate(row):
        pos[node] = float(place)


def _sort(
    row: list[int],
    links: list[list[tuple[int, float, float]]],
    others: list[list[tuple[int, float, float]]],
    widths: list[float],
    pos: list[float],
) -> None:
    """Sort a layer by its neighbours in the one next to it; who has none stays near its place."""
    if len(row) < 2:
        return
    wish = {}
    for node in row:
        near = links[node]
        if len(near) == 1 and not near[0][1]:
            wish[node] = pos[near[0][0]]
        elif near:
            total = 0.0
            for other, at, _ in near:
                total += pos[other] + (at / widths[other] if at else 0.0)
            wish[node] = total / len(near)
        else:
            wish[node] = pos[node] if others[node] else 1e9  # what has no edge at all stands aside
    row.sort(key=wish.__getitem__)
    _number(row, pos)


def _count(inside: Inside, rows: list[list[int]], pos: list[float]) -> int:
    """How many pairs of edges cross."""
    down, widths = inside.down, inside.widths
    total = 0
    for row, below in pairwise(rows):
        if len(row) < 2 and len(below) < 2:
            continue
        ends = []
        for node in row:
            for other, at, here in down[node]:
                start = pos[node] + (here / widths[node] if here else 0.0)
                ends.append((start, pos[other] + (at / widths[other] if at else 0.0)))
        ends.sort()
        done: list[float] = []
        for _, end in ends:
            place = bisect_right(done, end)
            total += len(done) - place
            done.insert(place, end)
    return total


def _swap(inside: Inside) -> None:
    """Exchange neighbours as long as that takes crossings away, at most a few rounds."""
    pos = [0.0] * len(inside.rank)
    for row in inside.rows:
        _number(row, pos)
    for _ in range(4):
        better = False
        for row in inside.rows:
            for place in range(len(row) - 1):
                left, right = row[place], row[place + 1]
                gain = 0
                for links in (inside.up, inside.down):
                    gain += _gain(links[left], links[right], inside.widths, pos)
                if gain > 0:
                    row[place], row[place + 1] = right, left
                    pos[left], pos[right] = pos[right], pos[left]
                    better = True
        if not better:
            return


def _gain(
    left: list[tuple[int, float, float]],
    right: list[tuple[int, float, float]],
    widths: list[float],
    pos: list[float],
) -> int:
    """Crossings between the edges of two neighbours, less those if they changed places."""
    gain = 0
    for a, at, _ in left:
        first = pos[a] + (at / widths[a] if at else 0.0)
        for b, to, _ in right:
            second = pos[b] + (to / widths[b] if to else 0.0)
            gain += (first > second) - (first < second)
    return gain
