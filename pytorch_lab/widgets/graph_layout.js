// Where boxes, frames and edges of a graph go: the same steps as pytorch_lab/graph/drawing/layout.py
// and its layers.py, columns.py and routes.py (here graph_layers.js, ...), to the same coordinates,
// so that folding works in a saved page without a kernel. Pure: no page needed.

/**
 * @typedef {object} Layout rounded to 0.1; (0, 0) is the left upper corner
 * @property {number} width @property {number} height
 * @property {{item: number, x: number, y: number, width: number, height: number, open: boolean}[]}
 *   boxes all that show, frames (open: true) before what is in them; not the root
 * @property {{source: number, target: number, points: number[][]}[]} routes one for each pair of
 *   items that show and have an edge between them; `curve(points)` draws it. Routes that leave one
 *   box share their way as long as they can.
 */

const rounded = (number) => Math.floor(number * 10 + 0.5) / 10;

/** Where everything goes with these frames open. @returns {Layout} */
export function layoutScene(scene, open) {
  const tree = growTree(scene, open);
  const insides = new Map();
  for (const frame of [...tree.frames].reverse()) {
    const inside = stackLayers(tree.kids.get(frame), tree.nets.get(frame), tree, insides);
    setColumns(inside);
    placeRows(inside, tree.sizes.get(frame), frame === 0);
    insides.set(frame, inside);
    tree.sizes.set(frame, [inside.width, inside.height]);
  }
  const corners = new Map([[0, [0, 0]]]);
  for (const frame of tree.frames) {
    const [x, y] = corners.get(frame);
    const { lefts, tops } = insides.get(frame);
    tree.kids.get(frame).forEach((item, i) => corners.set(item, [x + lefts[i], y + tops[i]]));
  }
  const boxes = tree.shown.slice(1).map((item) => {
    const [x, y, width, height] = [...corners.get(item), ...tree.sizes.get(item)].map(rounded);
    return { item, x, y, width, height, open: insides.has(item) };
  });
  const [width, height] = tree.sizes.get(0).map(rounded);
  return { width, height, boxes, routes: joinRoutes(tree, insides, corners) };
}

function growTree(scene, open) {
  const { ends } = scene;
  const by = standIns(scene, open);
  const shown = [];
  by.forEach((shows, item) => { if (shows === item) shown.push(item); });
  const frames = shown.filter((item) => item === 0 || (open.has(item) && ends[item] > item + 1));
  const sizes = new Map(shown.map((item) => [item, [scene.looks[item].width, scene.looks[item].height]]));
  const kids = new Map(frames.map((frame) => [frame, []]));
  const parents = new Map([[0, -1]]);
  const above = [0];
  for (const item of shown.slice(1)) {
    while (ends[above.at(-1)] <= item) above.pop();
    parents.set(item, above.at(-1));
    kids.get(above.at(-1)).push(item);
    if (kids.has(item)) above.push(item);
  }
  const n = ends.length;
  const down = new Set(), up = new Set(); // pairs as numbers: first * n + second
  for (const [source, target] of scene.edges) {
    const [first, second] = [by[source], by[target]];
    if (first < second) down.add(first * n + second);
    else if (first > second) up.add(second * n + first);
  }
  const flipped = new Set([...up].filter((pair) => !down.has(pair)));
  const pairs = [...new Set([...down, ...up])].sort((a, b) => a - b)
    .map((pair) => [Math.floor(pair / n), pair % n, flipped.has(pair)]);
  const nets = new Map(frames.map((frame) => [frame, []]));
  const tree = { ends, shown, frames, sizes, kids, parents, pairs, nets };
  spread(tree);
  return tree;
}

/** Cut every net into one piece for each frame that it passes. */
function spread(tree) {
  const { parents, ends } = tree;
  let here = new Map();
  let source = -1;
  for (const [start, target] of tree.pairs) {
    if (start !== source) {
      source = start;
      here = new Map();
    }
    let item = target, frame = parents.get(target);
    while (!(frame <= source && source < ends[frame])) {
      if (here.has(frame)) break;
      here.set(frame, piece(tree, frame, source, null, item));
      item = frame;
      frame = parents.get(frame);
    }
    const net = here.get(frame);
    if (!net) here.set(frame, piece(tree, frame, source, rise(tree, source, frame, here), item));
    else if (net.targets.at(-1) !== item) net.targets.push(item);
  }
}

function piece(tree, frame, key, start, target) {
  const net = {
    key, start, targets: target === null ? [] : [target], leaves: target === null,
    path: [], port: -1, ends: [], far: [], out: 0, turns: [], nTurns: [],
  };
  tree.nets.get(frame).push(net);
  return net;
}

/** Lead the net out of all frames up to `frame`; which item of `frame` it comes from. */
function rise(tree, source, frame, here) {
  let item = source;
  while (tree.parents.get(item) !== frame) {
    const within = tree.parents.get(item);
    const net = here.get(within);
    if (net) net.leaves = true;
    else here.set(within, piece(tree, within, source, item, null));
    item = within;
  }
  return item;
}
