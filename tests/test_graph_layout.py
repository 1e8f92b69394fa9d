"""Where boxes, frames and edges go, on made-up graphs; real ones are in test_graph_scene.py."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytorch_lab.graph.drawing.layout import Diagram, layout, stand_ins
from tests.drawn import boxes_of, crossings, lines_of, through_boxes

SIZE = (60.0, 30.0)


def flat(n_boxes, edges, size=SIZE):
    """Boxes 1 to n in no frame."""
    return Diagram([n_boxes + 1, *range(2, n_boxes + 2)], [size] * (n_boxes + 1), edges)


def nested(outline, edges):
    """From one level per item, the root's being 0."""
    ends = [len(outline)] * len(outline)
    above = []
    for item, level in enumerate(outline):
        while len(above) > level:
            ends[above.pop()] = item
        above.append(item)
    return Diagram(ends, [SIZE] * len(outline), edges)


@st.composite
def diagrams(draw):
    """Any tree with any edges between leaves, also against the order, and any frames open."""
    outline = [0]
    for _ in range(draw(st.integers(1, 25))):
        outline.append(draw(st.integers(1, min(outline[-1] + 1, 5))))
    diagram = nested(outline, [])
    leaves = [item for item, end in enumerate(diagram.ends) if end == item + 1 and item]
    pairs = st.tuples(st.sampled_from(leaves), st.sampled_from(leaves))
    edges = draw(st.lists(pairs.filter(lambda pair: pair[0] != pair[1]), max_size=40))
    sizes = [
        (draw(st.sampled_from([30.0, 60.0, 140.0])), draw(st.sampled_from([20.0, 45.0])))
        for _ in outline
    ]
    frames = [item for item, end in enumerate(diagram.ends) if end > item + 1]
    opened = draw(st.sets(st.sampled_from(frames)))
    return Diagram(diagram.ends, sizes, edges), opened


@settings(max_examples=100)
@given(diagrams())
def test_any_drawing_is_one_that_can_be_read(case):
    """Siblings do not overlap, frames hold what is in them, no edge passes a foreign box."""
    diagram, opened = case
    placed = layout(diagram, opened)
    around = {0: (0.0, 0.0, placed.width, placed.height)}
    beside = {}
    for item, x, y, width, height, is_open in placed.boxes:
        frame = max(each for each in around if each <= item < diagram.ends[each])
        left, top, wide, high = around[frame]
        assert left <= x
        assert x + width <= left + wide + 0.11
        assert top <= y
        assert y + height <= top + high + 0.11
        for ax, ay, aw, ah in beside.setdefault(frame, []):
            apart = x >= ax + aw or ax >= x + width or y >= ay + ah or ay >= y + height
            assert apart, (item, frame)
        beside[frame].append((x, y, width, height))
        if is_open:
            around[item] = (x, y, width, height)
    assert not through_boxes(lines_of(placed), boxes_of(placed), diagram.ends)


@settings(max_examples=60)
@given(diagrams())
def test_every_edge_leads_from_box_to_box(case):
    """One route for each pair that shows, from the lower side to the upper side, or the reverse."""
    diagram, opened = case
    placed = layout(diagram, opened)
    by = stand_ins(diagram.ends, opened)
    expected = {(by[a], by[b]) for a, b in diagram.edges if by[a] != by[b]}
    drawn = [(route.source, route.target) for route in placed.routes]
    assert len(set(drawn)) == len(drawn)
    # an edge and its opposite are one line
    assert {frozenset(pair) for pair in drawn} == {frozenset(pair) for pair in expected}
    boxes = {box.item: box for box in placed.boxes}
    for source, target, points in placed.routes:
        upper, lower = (source, target) if source < target else (target, source)
        (x0, y0), (x1, y1) = (points[0], points[-1]) if source < target else (points[-1], points[0])
        assert abs(y0 - boxes[upper].y - boxes[upper].height) < 0.11
        assert abs(y1 - boxes[lower].y) < 0.11
        assert boxes[upper].x <= x0 <= boxes[upper].x + boxes[upper].width
        assert boxes[lower].x <= x1 <= boxes[lower].x + boxes[lower].width
        down = points if source < target else points[::-1]
        assert all(a[1] <= b[1] for a, b in pairwise(down)), "an edge never turns back up"


@settings(max_examples=20)
@given(diagrams())
def test_the_same_diagram_gives_the_same_layout(case):
    diagram, opened = case
    again = Diagram(list(diagram.ends), list(diagram.sizes), list(reversed(diagram.edges)))
    assert layout(diagram, opened) == layout(again, sorted(opened, reverse=True))


def test_a_chain_is_one_straight_line():
    placed = layout(flat(50, [(n, n + 1) for n in range(1, 50)]))
    assert len({box.x for box in placed.boxes}) == 1
    assert all(len(route.points) == 2 for route in placed.routes)


def test_a_skip_goes_past_in_a_lane_and_leaves_the_chain_straight():
    """As a residual block does: the long way stays straight, the short one bends."""
    placed = layout(flat(5, [(1, 2), (2, 3), (3, 4), (4, 5), (1, 4)]))
    assert len({box.x for box in placed.boxes}) == 1
    skip = next(route for route in placed.routes if (route.source, route.target) == (1, 4))
    lane = max(x for x, _ in skip.points)
    assert placed.boxes[1].x + SIZE[0] < lane < placed.boxes[1].x + SIZE[0] + 18
    assert sum(x == lane for x, _ in skip.points) == 2, "one straight lane"


def test_the_long_way_is_the_straight_one_and_a_dead_end_stands_aside():
    """1 → 2 → 3 ends there, as `if x.sum() > 0` does; 1 → 4 → 5 → 6 goes on."""
    placed = layout(flat(6, [(1, 2), (2, 3), (1, 4), (4, 5), (5, 6)]))
    x = {box.item: box.x for box in placed.boxes}
    assert x[1] == x[4] == x[5] == x[6]
    assert x[2] == x[3] != x[1]


def test_an_edge_against_the_order_is_drawn_upwards_from_its_source():
    (route,) = layout(flat(2, [(2, 1)])).routes
    assert (route.source, route.target) == (2, 1)
    assert route.points[0][1] > route.points[-1][1]


def test_what_only_feeds_stands_close_to_where_it_is_read():
    """A mask for the tenth op stands beside the ninth, and what it is made of beside the eighth."""
    chain = [(n, n + 1) for n in range(3, 12)]
    placed = layout(flat(12, [(1, 2), (2, 12), *chain]))
    by_item = {box.item: box for box in placed.boxes}
    assert by_item[2].y == by_item[11].y
    assert by_item[1].y == by_item[10].y


def test_two_crossing_wires_are_uncrossed():
    placed = layout(flat(4, [(1, 4), (2, 3)]))
    assert crossings(lines_of(placed)) == 0


def test_edges_of_one_box_share_their_lane():
    """Three hundred readers of one box far above: one lane, not three hundred."""
    chain = [(n, n + 1) for n in range(2, 301)]
    placed = layout(flat(301, [*chain, *((1, n) for n in range(2, 302))]))
    lanes = {
        a[0] for route in placed.routes for a, b in pairwise(route.points)
        if a[0] == b[0] and b[1] - a[1] > 40
    }  # fmt: skip
    assert len(lanes) <= 2
    assert placed.width < 200


def test_too_many_long_edges_go_round_the_outside():
    """Lanes past every box cost length times number: beyond a budget they run at the side."""
    n = 240
    edges = [(a, a + 1) for a in range(1, n)] + [(a, n - a) for a in range(1, n // 2 - 1)]
    placed = layout(flat(n, edges))
    assert not through_boxes(lines_of(placed)[::5], boxes_of(placed), range(1, n + 2))
    right = max(box.x + box.width for box in placed.boxes)
    assert any(x > right for route in placed.routes for x, _ in route.points)


def test_opening_a_frame_leaves_what_is_in_others_as_it_was():
    """Frames 1 and 5 hold a chain each; opening the second moves the first only as a whole."""
    outline = [0, 1, 2, 2, 2, 1, 2, 2, 2]
    diagram = nested(outline, [(2, 3), (3, 4), (2, 4), (4, 6), (6, 7), (7, 8), (6, 8)])

    def inside(opened):
        boxes = {box.item: box for box in layout(diagram, opened).boxes}
        return [at for n in (2, 3, 4) for at in (boxes[n].x - boxes[1].x, boxes[n].y - boxes[1].y)]

    assert inside({1, 5}) == pytest.approx(inside({1}))


def test_a_frame_in_a_folded_one_does_not_show():
    diagram = nested([0, 1, 2, 3, 3], [(3, 4)])
    assert [box.item for box in layout(diagram, {2}).boxes] == [1]
    assert [box.item for box in layout(diagram, {1, 2}).boxes] == [1, 2, 3, 4]


def test_deep_frames_and_long_chains_need_no_recursion():
    depth = 1500
    deep = nested([*range(depth), depth, depth], [(depth, depth + 1)])
    assert len(layout(deep, range(depth)).boxes) == depth + 1
    long = layout(flat(30_000, [(n, n + 1) for n in range(1, 30_000)]))
    assert len(long.routes) == 29_999


def test_nothing_to_draw_is_a_small_sheet():
    placed = layout(Diagram([1], [(0.0, 0.0)], []))
    assert placed.boxes == placed.routes == ()
    assert placed.width > 0
    assert placed.height > 0
