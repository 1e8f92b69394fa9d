// The boxes and edges of a graph as Python packed them, unpacked: see `Scene.to_dict` in
// pytorch_lab/graph/drawing/scene.py. Pure: no page needed.

/**
 * @typedef {object} Look what stands in a box, see `Look` in pytorch_lab/graph/drawing/scene.py
 * @property {string} kind @property {string} title @property {string} sub
 * @property {string} shape
 * @property {string[]} chips @property {number} width @property {number} height
 * @property {string[]} marks
 */
/**
 * @typedef {object} Scene the tree in preorder: item i has the descendants i + 1 to ends[i] - 1
 * @property {string} view
 * @property {number[]} ends @property {number[]} parents -1 for the root, item 0
 * @property {Look[]} looks one for each item
 * @property {number[]} refs place in ops, nodes, values or calls of the record; -1
 * @property {number[][]} edges pairs of leaves
 * @property {Set<number>} open the frames that are unfolded at first
 */

const FAMILIES = { op: "op", function: "op", node: "node", input: "value", call: "call" };

/** What `Scene.to_dict()` wrote. @returns {Scene} */
export function unpackScene(packed) {
  const kinds = packed.looks.map(([kind, title, sub, shape, chips, width, height, marks]) =>
    ({ kind, title, sub, shape, chips, width, height, marks }));
  const looks = packed.look.map((place) => kinds[place]);
  const ends = packed.spans.map((span, item) => item + span);
  const parents = [];
  const above = [];
  for (let item = 0; item < ends.length; item += 1) {
    while (above.length && ends[above.at(-1)] <= item) above.pop();
    parents.push(above.at(-1) ?? -1);
    above.push(item);
  }
  const last = { op: 0, node: 0, value: 0, call: 0 };
  let at = 0;
  const refs = looks.map(({ kind }) => {
    const family = FAMILIES[kind];
    if (!family) return -1;
    last[family] += packed.refs[at];
    at += 1;
    return last[family];
  });
  const edges = [];
  let source = 0;
  for (let i = 0; i < packed.edges.length; i += 2) {
    source += packed.edges[i];
    edges.push([source, source + packed.edges[i + 1]]);
  }
  return { view: packed.view, ends, parents, looks, refs, edges, open: new Set(packed.open) };
}

/** For each item the one that shows in its place: itself, or the outermost folded frame above it. */
export function standIns(scene, open) {
  const found = [];
  for (let item = 0, end = 0, by = 0; item < scene.ends.length; item += 1) {
    if (item >= end) {
      by = item;
      end = open.has(item) || item === 0 ? item + 1 : scene.ends[item];
    }
    found.push(by);
  }
  return found;
}
