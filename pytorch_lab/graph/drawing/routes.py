"""The rows of one frame, and the way of every edge: down its lane, over in the gap between layers.

An edge moves to the side only in the gap between two layers, where no box is, and enters the next
layer at the right place already. So no edge goes through a foreign box.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import floor
from typing import NamedTuple

from pytorch_lab.graph.drawing.layers import Inside, Net

PAD, HEAD = 12.0, 26.0  # around what is in a frame; above it, for the frame's name
GAP, MORE_GAP = 22.0, 18.0  # between layers: at least, and at most so much more for wide swings
SPREAD = 12.0  # between two edges that end at one box
LANE = 8.0  # between two edges round the outside
STRAIGHT = 0.05

Point = tuple[float, float]


class Route(NamedTuple):
    """An edge as it is drawn: from the lower side of one box to the upper side of another."""

    source: int
    target: int
    points: tuple[Point, ...]


def place_rows(inside: Inside, closed: tuple[float, float], *, is_root: bool) -> None:
    """Set the height of each layer, all corners, the size of the frame and its ports."""
    half = [width / 2 for width in inside.widths]
    low = min([at - by for at, by in zip(inside.x, half, strict=True)], default=0.0) - PAD
    high = max([at + by for at, by in zip(inside.x, half, strict=True)], default=0.0)
    high = _go_round(inside, high) + PAD
    if high - low < closed[0]:  # the name must fit
        low -= (closed[0] - high + low) / 2
        high = low + closed[0]
    x = inside.x = [at - low for at in inside.x]
    inside.outer = {key: at - low for key, at in inside.outer.items()}
    inside.width = high - low
    _set_bands(inside, PAD if is_root else HEAD)
    middle = inside.width / 2
    for node in range(inside.n_items):
        top, bottom = inside.bands[inside.rank[node]]
        inside.lefts.append(x[node] - half[node])
        inside.tops.append((top + bottom - inside.heights[node]) / 2)
    for net in inside.nets:
        if net.start is None:
            inside.enters[net.key] = x[net.path[0]] - middle
        if net.leaves:
            inside.leaves[net.key] = x[net.port] - middle
    _attach(inside)


def _go_round(inside: Inside, high: float) -> float:
    """Lanes to the right of everything, for nets too long for lanes inside; where they end."""
    busy: list[int] = []  # the last layer of each lane
    for net in inside.nets:
        if not net.far:
            continue
        first = inside.rank[net.path[0]]
        last = max([inside.rank[node] for node in net.far])
        lane = next((at for at, until in enumerate(busy) if until < first), len(busy))
        if lane == len(busy):
            busy.append(last)
        busy[lane] = last
        inside.outer[net.key] = high + LANE * (lane + 1)
    return high + LANE * len(busy)


def _set_bands(inside: Inside, y: float) -> None:
    """Where each layer begins and ends, and how high the frame is."""
    bands = [(0.0, y)]
    rows = inside.rows
    for rank in range(1, len(rows) - 1):
        swing = _swing(inside, rows[rank])
        if rank > 1:
            y += GAP + min(MORE_GAP, swing / 10)
        elif swing > STRAIGHT or inside.outer:  # else there is room enough beside the name
            y += GAP / 2 + min(MORE_GAP, swing / 10)
        height = max([inside.heights[node] for node in rows[rank]])
        bands.append((y, y + height))
        y += height
    if len(rows) > 1 and rows[-1]:
        swing = _swing(inside, rows[-1])
        if swing > STRAIGHT or inside.outer:
            y += GAP / 2 + min(MORE_GAP, swing / 10)
    inside.height = y + PAD
    bands.append((y, inside.height))
    inside.bands = bands


def _swing(inside: Inside, row: list[int]) -> float:
    """How far the edges into a layer move to the side, at most."""
    widest = 0.0
    x = inside.x
    for node in row:
        for other, out, into in inside.up[node]:
            by = abs(x[other] + out - x[node] - into)
            if by > widest:
                widest = by
    return widest


def _attach(inside: Inside) -> None:
    """Where each edge meets the box it leads to: side by side, a straight one in the middle."""
    x, rank = inside.x, inside.rank
    coming: list[list[tuple[float, int]]] = [[] for _ in range(inside.n_items)]
    for at, net in enumerate(inside.nets):
        first = rank[net.path[0]]
        for node in net.ends:
            if node == net.port or inside.is_open[node]:
                continue
            step = rank[node] - first - 1
            if net.far and node in net.far:
                coming[node].append((inside.outer[net.key], at))
            else:
                out = net.out if step == 0 else 0.0
                coming[node].append((x[net.path[step]] + out, at))
    for node, edges in enumerate(coming):
        if len(edges) < 2:
            continue
        edges.sort()
        step = min(SPREAD, (inside.widths[node] - 16) / (len(edges) - 1))
        straight = [at for at, edge in enumerate(edges) if abs(edge[0] - x[node]) < STRAIGHT]
        middle = straight[0] if straight else (len(edges) - 1) / 2
        most = inside.widths[node] / 2 - 6
        for at, (_, net) in enumerate(edges):
            by = max(-most, min(most, (at - middle) * step))
            inside.attached[inside.nets[net].key, node] = by


def _turns(inside: Inside, net: Net) -> None:
    """The points at which a net turns on its way down, and how many of them lie above each node."""
    x, rank, bands = inside.x, inside.rank, inside.bands
    start = net.path[0]
    here = x[start] + net.out
    y = inside.tops[start] + inside.heights[start] if start < inside.n_items else 0.0
    net.turns = [(here, y)]
    net.n_turns = [1]
    for before, node in pairwise(net.path):
        if abs(x[node] - here) > STRAIGHT:
            net.turns.append((here, bands[rank[before]][1]))
            here = x[node]
            net.turns.append((here, bands[rank[node]][0]))
        net.n_turns.append(len(net.turns))


def _piece(inside: Inside, net: Net, node: int) -> list[Point]:
    """The way of a net through one frame to one of its ends."""
    if not net.turns:
        _turns(inside, net)
    bands, rank = inside.bands, inside.rank
    first, last = rank[net.path[0]], rank[node]
    x, bottom = inside.x[node], bands[last][1]
    if node < inside.n_items:
        bottom = inside.tops[node]
        if inside.is_open[node]:
            x = inside.lefts[node] + inside.widths[node] / 2 + inside.into[net.key, node]
        else:
            x += inside.attached.get((net.key, node), 0.0)
    if net.far and node in net.far:
        outer = inside.outer[net.key]
        points = net.turns[:1]
        above = (bands[first][1] + bands[first + 1][0]) / 2
        below = (bands[last - 1][1] + bands[last][0]) / 2
        start = points[0][0]
        return [*points, (start, above), (outer, above), (outer, below), (x, below), (x, bottom)]
    step = last - first - 1
    points = net.turns[: net.n_turns[step]]
    here = points[-1][0]
    if abs(x - here) > STRAIGHT:
        points.append((here, bands[last - 1][1]))
        points.append((x, bands[last][0]))
        points.append((x, bottom))
    else:
        points.append((here, bottom))
    return points


def join_routes(
    pairs: Sequence[tuple[int, int]],
    flipped: set[tuple[int, int]],
    parents: Mapping[int, int],
    ends: Sequence[int],
    insides: Mapping[int, Inside],
    corners: Mapping[int, Point],
) -> tuple[Route, ...]:
    """Put together the pieces of each edge: out of its frames, across, and into others."""
    routes = []
    for source, target in pairs:
        down = [target]
        frame = parents[target]
        while not frame <= source < ends[frame]:
            down.append(frame)
            frame = parents[frame]
        way: list[tuple[int, int]] = []  # frame, and the item in it that the edge leads to
        within = parents[source]
        while within != frame:
            way.append((within, -1))
            within = parents[within]
        while down:
            way.append((frame, down[-1]))
            frame = down.pop()
        points: list[Point] = []
        for within, item in way:
            inside = insides[within]
            net = inside.by_key[source]
            node = inside.place[item] if item >= 0 else net.port
            left, top = corners[within]
            for x, y in _piece(inside, net, node):
                _append(points, rounded(left + x), rounded(top + y))
        if (source, target) in flipped:
            routes.append(Route(target, source, tuple(reversed(points))))
        else:
            routes.append(Route(source, target, tuple(points)))
    return tuple(routes)


def rounded(number: float) -> float:
    """To 0.1, a half upwards, as JavaScript does.

    Example:
        >>> rounded(0.25), rounded(0.35)
        (0.3, 0.4)
    """
    return floor(number * 10 + 0.5) / 10


def _append(points: list[Point], x: float, y: float) -> None:
    """Add a point, and take out the one before if it lies on a straight way down."""
    if points and points[-1] == (x, y):
        return
    if len(points) > 1 and points[-1][0] == x == points[-2][0]:
        points.pop()
    points.append((x, y))
