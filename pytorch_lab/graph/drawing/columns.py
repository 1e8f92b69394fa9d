"""The columns of one frame: nodes that should stand straight below each other, and where.

First nodes are tied into columns: lanes with lanes, so that a long edge is one straight line, then
the main line, then what is left, never across a tie that stands already (the idea of Brandes and
Köpf, 2001). A column moves as a whole: all are packed to the left, then each is drawn to where its
other edges want it, as far as its neighbours leave room.
"""

from bisect import bisect_left

from pytorch_lab.graph.drawing.layers import Inside

BOX_MARGIN, LANE_MARGIN = 11.0, 6.0  # on each side
PULLS = 8
DRIFT = 120.0  # ports out of line move a column to the side: at most so far, then it starts anew


def set_columns(inside: Inside) -> None:
    """Set the middle of every node."""
    column, shift, n_columns = _tie(inside)
    if n_columns == 1:
        inside.x = shift
        return
    left, right = _neighbours(inside, column, shift, n_columns)
    x = _pack(left, right, n_columns)
    wishes = _wishes(inside, column, shift, n_columns)
    order = sorted(range(n_columns), key=x.__getitem__)
    for pull in range(PULLS):
        _pull(x, order if pull % 2 else order[::-1], left, right, wishes)
    inside.x = [x[column[node]] + shift[node] for node in range(len(column))]


def _tie(inside: Inside) -> tuple[list[int], list[float], int]:
    """The column of each node, how far it stands to the right in it, and how many there are."""
    below, hangs = _ties(inside)
    column, shift, n_columns = [0] * len(hangs), [0.0] * len(hangs), 0
    for row in inside.rows:
        for node in row:
            if hangs[node]:
                continue
            to, by = node, 0.0
            while True:
                column[to], shift[to] = n_columns, by
                if to not in below:
                    break
                to, more = below[to]
                by = by + more if abs(by + more) <= DRIFT else 0.0
            n_columns += 1
    return column, shift, n_columns


def _ties(inside: Inside) -> tuple[dict[int, tuple[int, float]], list[bool]]:
    """Of each node what hangs on it, and how far to the right; and which nodes hang on another."""
    below: dict[int, tuple[int, float]] = {}
    hangs = [False] * len(inside.rank)
    place = [0] * len(inside.rank)
    for row in inside.rows:
        for at, node in enumerate(row):
            place[node] = at
    high, low = _reach(inside)
    for row in inside.rows[:-1]:
        if len(row) == 1 and len(inside.down[row[0]]) == 1:
            other, into, out = inside.down[row[0]][0]
            if len(inside.up[other]) == 1:
                below[row[0]] = (other, out - into)
                hangs[other] = True
                continue
        for node, other, by in _choose(inside, row, place, high, low):
            below[node] = (other, by)
            hangs[other] = True
    return below, hangs


def _reach(inside: Inside) -> tuple[list[int], list[int]]:
    """How far up and how far down the longest way through each node leads."""
    high, low = list(inside.rank), list(inside.rank)
    for row in inside.rows:
        for node in row:
            for other, _, _ in inside.down[node]:
                high[other] = min(high[other], high[node])
    for row in reversed(inside.rows):
        for node in row:
            for other, _, _ in inside.down[node]:
                low[node] = max(low[node], low[other])
    return high, low


def _choose(
    inside: Inside, row: list[int], place: list[int], high: list[int], low: list[int]
) -> list[tuple[int, int, float]]:
    """Which edges below a layer shall be straight: `(node, node below, how far to the right)`."""
    wanted = []
    n_items, rank, last = inside.n_items, inside.rank, inside.last
    for node in row:
        ends = inside.down[node]
        for at, (other, into, out) in enumerate(ends):
            n_lanes = (node >= n_items and rank[node] > 0) + (
                other >= n_items and rank[other] < last
            )
            off = abs(2 * at - len(ends) + 1)
            if len(inside.up[other]) > 1:
                sources = [place[each[0]] for each in inside.up[other]]
                before = len([each for each in sources if each < place[node]])
                off += abs(2 * before - len(sources) + 1)
            main = high[node] - low[other]  # less for a longer way
            key = (n_lanes < 2, main, n_lanes, off, place[node], place[other])
            wanted.append((key, node, other, out - into))
    wanted.sort()
    chosen: list[tuple[int, int, float]] = []
    tops: list[int] = []
    bottoms: list[int] = []
    for (*_, top, bottom), node, other, by in wanted:
        at = bisect_left(tops, top)
        if at < len(tops) and (tops[at] == top or bottoms[at] <= bottom):
            continue
        if at and bottoms[at - 1] >= bottom:
            continue
        tops.insert(at, top)
        bottoms.insert(at, bottom)
        chosen.append((node, other, by))
    return chosen


Near = list[dict[int, float]]


def _neighbours(
    inside: Inside, column: list[int], shift: list[float], n_columns: int
) -> tuple[Near, Near]:
    """Of each column, those at its left and at its right, and the distance they need."""
    left: Near = [{} for _ in range(n_columns)]
    right: Near = [{} for _ in range(n_columns)]
    widths, n_items = inside.widths, inside.n_items
    for row in inside.rows:
        if len(row) < 2:
            continue
        before = row[0]
        for node in row[1:]:
            room = (widths[before] + widths[node]) / 2
            room += BOX_MARGIN if before < n_items else LANE_MARGIN
            room += BOX_MARGIN if node < n_items else LANE_MARGIN
            need = room + shift[before] - shift[node]
            a, b = column[before], column[node]
            if need > left[b].get(a, -1e9):
                left[b][a] = right[a][b] = need
            before = node
    return left, right


def _pack(left: Near, right: Near, n_columns: int) -> list[float]:
    """Each column as far left as those at its left allow."""
    x = [0.0] * n_columns
    waits = [len(near) for near in left]
    ready = [each for each in range(n_columns) if not waits[each]]
    for each in ready:  # grows while it is walked
        for other, need in right[each].items():
            x[other] = max(x[other], x[each] + need)
            waits[other] -= 1
            if not waits[other]:
                ready.append(other)
    return x


Wishes = list[list[tuple[int, float]]]


def _wishes(inside: Inside, column: list[int], shift: list[float], n_columns: int) -> Wishes:
    """Of each column, `(other column, distance from it at which their edge would be straight)`."""
    wishes: Wishes = [[] for _ in range(n_columns)]
    for node, ends in enumerate(inside.down):
        for other, into, out in ends:
            a, b = column[node], column[other]
            if a != b:
                by = shift[node] + out - shift[other] - into  # x of b less x of a
                wishes[b].append((a, by))
                wishes[a].append((b, -by))
    return wishes


def _pull(x: list[float], order: list[int], left: Near, right: Near, wishes: Wishes) -> None:
    """Move each column to the middle of what its edges want."""
    for each in order:
        wanted = wishes[each]
        if not wanted:
            continue
        if len(wanted) == 1:
            to = x[wanted[0][0]] + wanted[0][1]
        else:
            places = sorted([x[other] + by for other, by in wanted])
            half = len(places) // 2
            to = places[half] if len(places) % 2 else (places[half - 1] + places[half]) / 2
        for other, need in right[each].items():
            to = min(to, x[other] - need)
        for other, need in left[each].items():
            to = max(to, x[other] + need)
        x[each] = to
