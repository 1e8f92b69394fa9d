"""Which parts of two runs are the same? An exact longest common subsequence of two rows of numbers.

The rows are long (an instruction-by-instruction trail of a recurrent net) and full of repetitions,
which is the worst case of diff's usual methods. Here a whole row of the table is one large integer
(Crochemore, Iliopoulos, Pinzon and Reid 2001; Hyyrö 2004), so that 20,000 x 20,000 cells take a
fraction of a second; above a limit the table is halved (Hirschberg 1975) instead of kept.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

MOST_CELLS = 1 << 28  # bits of one table that is kept: 32 MiB


class Hunk(NamedTuple):
    """Places at which the rows differ: `a[a_start:a_end]` stands for `b[b_start:b_end]`."""

    a_start: int
    a_end: int
    b_start: int
    b_end: int


def align(a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int]]:
    """The pairs of places of a longest common subsequence, in order.

    Equal heads are matched first, so the rows stand apart exactly where they really part: after
    every pair `(i, j)` either `(i + 1, j + 1)` is a pair too or `a[i + 1] != b[j + 1]`.

    Example:
        >>> align([1, 2, 3, 4], [1, 3, 4, 4])
        [(0, 0), (2, 1), (3, 2)]
    """
    pairs: list[tuple[int, int]] = []
    stack = [(0, len(a), 0, len(b))]
    while stack:
        start_a, end_a, start_b, end_b = stack.pop()
        while start_a < end_a and start_b < end_b and a[start_a] == b[start_b]:
            pairs.append((start_a, start_b))
            start_a, start_b = start_a + 1, start_b + 1
        part_a, part_b = a[start_a:end_a], b[start_b:end_b]
        if not part_a or not part_b:
            continue
        if len(part_a) * len(part_b) <= MOST_CELLS or len(part_b) == 1:
            pairs += [(start_a + i, start_b + j) for i, j in _walk(part_a, part_b)]
            continue
        middle = len(part_b) // 2
        cut = _best_cut(part_a, part_b[:middle], part_b[middle:])
        stack.append((start_a + cut, end_a, start_b + middle, end_b))
        stack.append((start_a, start_a + cut, start_b, start_b + middle))
    return list(_early(pairs, a, b))


def _early(
    pairs: list[tuple[int, int]], a: Sequence[int], b: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """The same number of pairs, each as near to the one before it as it can be."""
    i = j = -1
    for later_i, later_j in pairs:
        i, j = (i + 1, j + 1) if a[i + 1] == b[j + 1] else (later_i, later_j)
        yield i, j


def hunks(pairs: list[tuple[int, int]], length_a: int, length_b: int) -> Iterator[Hunk]:
    """What lies between the pairs.

    Example:
        >>> list(hunks([(0, 0), (2, 1)], 3, 3))
        [Hunk(a_start=1, a_end=2, b_start=1, b_end=1), Hunk(a_start=3, a_end=3, b_start=2, b_end=3)]
    """
    next_a = next_b = 0
    for i, j in [*pairs, (length_a, length_b)]:
        if i > next_a or j > next_b:
            yield Hunk(next_a, i, next_b, j)
        next_a, next_b = i + 1, j + 1


def _masks(row: Sequence[int]) -> dict[int, int]:
    """For each number the places where it stands, as the bits of an integer."""
    places: dict[int, list[int]] = {}
    for place, number in enumerate(row):
        places.setdefault(number, []).append(place)
    size = (len(row) + 7) // 8
    masks = {}
    for number, found in places.items():
        bits = bytearray(size)
        for place in found:
            bits[place >> 3] |= 1 << (place & 7)
        masks[number] = int.from_bytes(bits, "little")
    return masks


def _rows(a: Sequence[int], b: Sequence[int]) -> Iterator[int]:
    """After each element of `b`: bit i is 0 where a[:i + 1] has one more in common than a[:i]."""
    masks = _masks(a)
    full = (1 << len(a)) - 1
    row = full
    for number in b:
        matches = row & masks.get(number, 0)
        row = ((row + matches) | (row - matches)) & full
        yield row


def _walk(a: Sequence[int], b: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Walk the table from the front; it is filled from the back, so that heads match first."""
    full = (1 << len(a)) - 1
    size = (len(a) + 7) // 8
    table = [full.to_bytes(size, "little")]
    table += [row.to_bytes(size, "little") for row in _rows(a[::-1], b[::-1])]
    i, j = 0, 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            yield i, j
            i, j = i + 1, j + 1
            continue
        place = len(a) - 1 - i  # of a[i] in the reversed row
        gains = not table[len(b) - j][place >> 3] >> (place & 7) & 1
        if gains:  # a[i] is worth keeping for a later element of b
            j += 1
        else:
            i += 1


def _best_cut(a: Sequence[int], upper: Sequence[int], lower: Sequence[int]) -> int:
    """How much of `a` belongs to the upper half of `b`."""
    head = _gains(a, upper)
    tail = _gains(a[::-1], lower[::-1])[::-1]
    best = here = sum(tail)
    cut = 0
    for place in range(len(a)):
        here += head[place] - tail[place]
        if here > best:
            best, cut = here, place + 1
    return cut


def _gains(a: Sequence[int], b: Sequence[int]) -> list[int]:
    row = (1 << len(a)) - 1
    for row in _rows(a, b):  # noqa: B007 - only the last is wanted
        pass
    return [1 - int(bit) for bit in reversed(f"{row:0{len(a)}b}")]
