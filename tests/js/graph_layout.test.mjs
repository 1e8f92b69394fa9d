import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./load.mjs";

// That both sides give the same coordinates is tested in tests/test_graph_scene.py, on real graphs.
const { curve, layoutScene, standIns, unpackScene } = await load(
  "base", "graph_scene", "graph_layout", "graph_layers", "graph_columns", "graph_routes",
);

const op = (title) => ["op", title, "", "(2,)", [], 60, 40, []];
const call = ["call", "Block", "h.0", "(2,)", [], 80, 54, []];
// root { input, Block { sin, cos }, add }: input → sin → cos → add, and input → add
const PACKED = {
  view: "ops",
  spans: [6, 1, 3, 1, 1, 1],
  look: [0, 1, 2, 3, 4, 5],
  looks: [["root", "", "", "", [], 0, 0, []], ["input", "x", "", "(2,)", [], 60, 40, []], call,
    op("sin"), op("cos"), op("add")],
  refs: [4, 0, 7, 1, 1],
  edges: [1, 2, 0, 4, 2, 1, 1, 1],
  open: [0],
};
const scene = unpackScene(PACKED);

test("a scene is unpacked from small numbers", () => {
  assert.deepEqual(scene.ends, [6, 2, 5, 4, 5, 6]);
  assert.deepEqual(scene.parents, [-1, 0, 0, 2, 2, 0]);
  assert.deepEqual(scene.refs, [-1, 4, 0, 7, 8, 9]);
  assert.deepEqual(scene.edges, [[1, 3], [1, 5], [3, 4], [4, 5]]);
  assert.deepEqual(scene.looks.map(({ title }) => title), ["", "x", "Block", "sin", "cos", "add"]);
  assert.deepEqual(scene.looks[2].sub, "h.0");
  assert.deepEqual(scene.open, new Set([0]));
});

test("the outermost folded frame stands for what is in it", () => {
  assert.deepEqual(standIns(scene, new Set()), [0, 1, 2, 2, 2, 5]);
  assert.deepEqual(standIns(scene, new Set([2])), [0, 1, 2, 3, 4, 5]);
});

test("folded, a frame is a box; open, it is around what is in it", () => {
  const folded = layoutScene(scene, new Set());
  assert.deepEqual(folded.boxes.map(({ item }) => item), [1, 2, 5]);
  assert.deepEqual([folded.boxes[1].width, folded.boxes[1].height], [80, 54]);
  assert.deepEqual(folded.routes.map(({ source, target }) => [source, target]),
    [[1, 2], [1, 5], [2, 5]]);

  const open = layoutScene(scene, new Set([2]));
  assert.deepEqual(open.boxes.map(({ item }) => item), [1, 2, 3, 4, 5]);
  const [, frame, sin] = open.boxes;
  assert.ok(frame.open && !sin.open);
  assert.ok(frame.x < sin.x && sin.x + sin.width < frame.x + frame.width);
  assert.ok(frame.y < sin.y && sin.y + sin.height < frame.y + frame.height);
});

test("the long way is straight and the short one goes past it", () => {
  const { boxes, routes } = layoutScene(scene, new Set([2]));
  const middles = boxes.filter(({ open }) => !open).map(({ x, width }) => x + width / 2);
  assert.equal(new Set(middles).size, 1);
  const skip = routes.find(({ source, target }) => source === 1 && target === 5);
  const frame = boxes.find(({ item }) => item === 2);
  assert.ok(Math.max(...skip.points.map(([x]) => x)) > frame.x + frame.width);
});

test("an edge against the order is drawn upwards", () => {
  const back = { ...scene, edges: [[5, 1]] };
  const [route] = layoutScene(back, new Set()).routes;
  assert.deepEqual([route.source, route.target], [5, 1]);
  assert.ok(route.points[0][1] > route.points.at(-1)[1]);
});

test("nothing to draw is a small sheet", () => {
  const empty = unpackScene({ ...PACKED, spans: [1], look: [0], refs: [], edges: [] });
  const { boxes, routes, width, height } = layoutScene(empty, new Set());
  assert.deepEqual([boxes, routes], [[], []]);
  assert.ok(width > 0 && height > 0);
});

test("a hundred thousand boxes do not overflow the stack", () => {
  const n = 100_000;
  const long = unpackScene({
    ...PACKED, spans: [n + 1, ...new Array(n).fill(1)], look: [0, ...new Array(n).fill(3)],
    refs: new Array(n).fill(1), edges: [1, 1, ...new Array(n - 2).fill([1, 1]).flat()],
  });
  assert.equal(layoutScene(long, new Set()).routes.length, n - 1);
});

test("a route is a path: straight in a lane, an S between lanes", () => {
  assert.equal(curve([[0, 0], [0, 10]]), "M0 0L0 10");
  assert.equal(curve([[0, 0], [20, 10], [20, 30]]), "M0 0C0 5 20 5 20 10L20 30");
});
