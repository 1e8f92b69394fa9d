import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./load.mjs";

const player = await load(
  "base", "graph_scene", "graph_layout", "graph_layers", "graph_columns", "graph_routes",
  "player_film", "player_items", "player_pieces", "player_sight", "player_hands", "player_canvas",
  "player_paint", "player_svg", "player_map", "player_source", "player_details", "player_timeline",
  "player_play", "player_choice", "player_colours", "player_tools", "player",
);
const {
  amount, countUpTo, findNodes, findOps, heldBy, indexItems, leaves, linesThatRan, mergeTimes,
  opOfStep, opsOfLine, outline, paint, pathTo, savesAny, sayStep, spellBytes, spellNumber,
  spellShape, spellTime, sums, unpackFilm, unpackScene,
} = player;

// y = relu(x @ w); loss = sum(y): three ops, w a leaf, nodes: 0 leaf, 1 mm, 2 relu, 3 sum
const PACKED = {
  function: "f", roots: [3], outputs: [4], words: ["mm", "relu", "sum", "x", "w", "MmBackward0",
    "ReluBackward0", "SumBackward0", "AccumulateGrad", "f.py", "", "fc", "Linear"],
  forms: [[[2, 3], "float32", "cpu", 24], [[], "float32", "cpu", 4]],
  ops: {
    name: [0, 1, 2], kind: [0, 0, 0], site: [0, 1, 1], inside: [-1, 0, 0], saved: [24, 24, 0],
    mode: [0, 1, 0], autocast: [-1, -1, -1], time: [100, 101, 100],
    inputs: [2, -1, -2, 1, 0, 1, 0], outputs: [1, 2, 1, 1, 1, 1],
  },
  values: {
    kind: [0, 1, 4, 4, 4], name: [3, 4, -1, -1, -1], form: [0, 0, 0, 0, 1],
    node: [-1, 1, 1, 1, 1], marks: [2, 3, 1, 1, 1],
  },
  nodes: {
    leaves: 1, name: [8, 5, 6, 7], kind: [1, 0, 0, 0], op: [-1, 1, 1, 1], saved: [0, 24, 24, 0],
    freed: [2, 1, 1, 2], parameter: [4], grad: [-3, 80, 82, 80],
    next: [0, 1, -1, 1, 1, 1, 1],
  },
  calls: { path: [11], type: [12], count: [0], parent: [-1], first: [0], ops: [2] },
  order: [3, -1, -1, -1], held: [24, 24, 0, -0, -24, -24, 0],
  sites: { file: [9, 9, 9], line: [3, 1, 1], from: [4, 4, 4], to: [9, 12, 9], lines: [0, 0, 0] },
};
const SCENE = {
  view: "ops", spans: [6, 1, 3, 1, 1, 1], look: [0, 1, 2, 3, 4, 5], refs: [0, 0, 0, 1, 1],
  looks: [
    ["root", "", "", "", [], 0, 0, []], ["input", "x", "", "(2, 3)", [], 60, 40, []],
    ["call", "Linear", "fc", "(2, 3)", [], 80, 60, []], ["op", "mm", "", "(2, 3)", ["w"], 60, 59, []],
    ["op", "relu", "", "(2, 3)", [], 60, 40, []], ["op", "sum", "", "scalar", [], 60, 40, []],
  ],
  edges: [1, 2, 2, 1, 1, 1], open: [0, 2],
};
const film = () => unpackFilm(PACKED);

test("sums undo deltas", () => assert.deepEqual(sums([5, 1, 1, -8]), [5, 6, 7, -1]));

test("a film refers by place", () => {
  const { ops, values, nodes, steps, held } = film();
  assert.deepEqual(ops.map(({ name, inputs, outputs }) => [name, inputs, outputs]),
    [["mm", [0, 1], [2]], ["relu", [2], [3]], ["sum", [3], [4]]]);
  assert.deepEqual(ops.map(({ module, type }) => [module, type]),
    [["fc", "Linear"], ["fc", "Linear"], ["", ""]]);
  assert.deepEqual(ops.map(({ node }) => node), [1, 2, 3]);
  assert.deepEqual(nodes.map(({ next }) => next), [[], [0], [1], [2]]);
  assert.deepEqual(values.map(({ op }) => op), [-1, -1, 0, 1, 2]);
  assert.deepEqual(steps.map(({ back, index }) => (back ? `b${index}` : `f${index}`)),
    ["f0", "f1", "f2", "b3", "b2", "b1", "b0"]);
  assert.deepEqual(held, [24, 48, 48, 48, 24, 0, 0]);
  assert.equal(ops[1].inPlace, true);
});

test("a gradient reaches a leaf by a path, or does not", () => {
  const one = film();
  assert.deepEqual(pathTo(one, 0), [3, 2, 1, 0]);
  one.nodes[2].next = [];
  assert.deepEqual(pathTo(one, 0), []);
  assert.deepEqual([...leaves(one)], [["w", 0]]);
});

test("a step has an op, also that of a leaf's gradient", () => {
  assert.deepEqual([0, 3, 5, 6, 9].map((at) => opOfStep(film(), at)), [0, 2, 0, 0, -1]);
});

test("a step is said in one line", () => {
  const one = film();
  assert.equal(sayStep(one, -1), "before the first step");
  assert.equal(sayStep(one, 0), "forward 1 of 3: mm → (2, 3)");
  assert.equal(sayStep(one, 4), "backward 2 of 4: Relu");
  assert.equal(sayStep(one, 6), "backward 4 of 4: w.grad");
});

test("a line knows its ops", () => {
  const one = film();
  assert.deepEqual(opsOfLine(one, "f.py", 3), [0]);
  assert.deepEqual(opsOfLine(one, "f.py", 9), []);
  assert.deepEqual([...linesThatRan(one)], [["f.py\n3", [0]], ["f.py\n4", [1]], ["f.py\n5", [2]]]);
});

test("search wants all words: in name, module, class, node, parameter", () => {
  const one = film();
  assert.deepEqual(findOps(one, "LINEAR"), [0, 1]);
  assert.deepEqual(findOps(one, "linear relu"), [1]);
  assert.deepEqual(findOps(one, "  "), []);
  assert.deepEqual(findNodes(one, "accumulate w"), [0]);
  assert.deepEqual(findNodes(one, "linear"), [1, 2]);
});

test("a box knows when its leaves run, forward and backward", () => {
  const one = film();
  const index = indexItems(unpackScene(SCENE), one);
  assert.deepEqual([...index.of(2).born], [0, 1]);
  assert.deepEqual([...index.of(2).back], [4, 5]);
  assert.deepEqual([...index.itemOfOp], [3, 4, 5]);
  assert.deepEqual([...index.itemOfNode], [3, 3, 4, 5]); // the leaf stands on the op that reads it
});

test("a box keeps bytes until its nodes have run", () => {
  const one = film();
  const about = indexItems(unpackScene(SCENE), one).of(2);
  assert.deepEqual([-1, 0, 1, 3, 4, 5].map((at) => heldBy(one, about, at)), [0, 24, 48, 48, 24, 0]);
  const nodes = { ops: [], nodes: [1] }; // as in the view of the autograd graph
  assert.deepEqual([-1, 0, 4, 5].map((at) => heldBy(one, nodes, at)), [0, 24, 24, 0]);
  assert.deepEqual([[1], [3]].map((some) => savesAny(one, { ops: [], nodes: some })), [true, false]);
});

test("colours: hues for kinds, strength for sizes", () => {
  const one = film();
  const scene = unpackScene(SCENE);
  const index = indexItems(scene, one);
  const module = paint("module", scene, one, index);
  assert.deepEqual(module.legend.map(({ label }) => label), ["Linear"]);
  assert.equal(module.of(3).hue, module.legend[0].hue);
  assert.equal(module.of(5), null);
  const bytes = paint("bytes", scene, one, index);
  assert.ok(bytes.of(3).strength > bytes.of(5).strength);
  assert.deepEqual(bytes.legend.map(({ label }) => label), ["4 B", "24 B"]);
});

test("how many of a sorted list are at most", () => {
  const sorted = Int32Array.from([1, 3, 3, 7]);
  assert.deepEqual([0, 1, 3, 6, 7, 9].map((at) => countUpTo(sorted, at)), [0, 1, 3, 3, 4, 4]);
});

test("two runs on one timeline: the common steps at once, the others one after the other", () => {
  const run = (forward, back) => ({
    forward, steps: new Array(forward + back), nodes: Array.from({ length: back }, (_, i) => ({ ran: forward + i })),
  });
  const [a, b] = mergeTimes([run(4, 1), run(3, 1)], [[0, 0], [3, 2]], [[0, 0]]);
  assert.deepEqual(a, [0, 1, 2, 3, 3, 4, 5]);
  assert.deepEqual(b, [0, 1, 1, 1, 2, 3, 4]);
  assert.deepEqual(mergeTimes([run(2, 0)], [], []), [[0, 1, 2]]);
  const crossed = mergeTimes([run(0, 2), run(0, 2)], [], [[0, 1], [1, 0]]);
  assert.deepEqual(crossed, [[0, 0, 1, 2], [0, 1, 2, 2]]); // what is not in the order of both
});

test("the chart keeps the peaks when it has fewer points than steps", () => {
  const held = Array.from({ length: 1000 }, (_, i) => (i === 617 ? 50 : 1));
  const points = outline(held, 1000, 100);
  assert.ok(points.length <= 102);
  assert.equal(Math.max(...points.map(([, y]) => y)), 1);
  assert.equal(points.at(-1)[0], 1);
});

test("words for shapes, bytes, numbers, times, files", () => {
  assert.deepEqual([[], [3], [32, 10]].map(spellShape), ["scalar", "(3,)", "(32, 10)"]);
  assert.deepEqual([0, 1023, 1536, 5 * 2 ** 20].map(spellBytes), ["0 B", "1023 B", "1.5 KiB", "5.0 MiB"]);
  assert.deepEqual([0, 1.23456, -0.5, 1e-7, 123456, "nan"].map(spellNumber),
    ["0", "1.23", "−0.5", "1.0e−7", "1.2e5", "nan"]);
  assert.deepEqual([12, 1500, 25e6, 3e9].map(spellTime), ["12 ns", "1.5 µs", "25 ms", "3.0 s"]);
  assert.deepEqual([-3, 0, 80, 82].map(amount), [null, 0, 1, 2]);
});
