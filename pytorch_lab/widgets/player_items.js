// What each box of the picture stands for: which ops and nodes, when they ran, what they kept, what
// colour they get. Pure: no page needed.

const ITEM_HUES = ["sky", "pink", "green", "yellow", "violet", "blue"]; // orange is backward

export const COLOURS = {
  module: "Module", dtype: "Dtype", device: "Device", bytes: "Bytes", gradient: "Gradient", time: "Time",
};

/**
 * The boxes of a scene seen from a film.
 * @returns {object} `born[i]` and `back[i]`: the steps at which the leaves of item i ran forward and
 *   backward, sorted; `ops[i]`, `nodes[i]`; `itemOfOp`, `itemOfNode`, `itemOfValue`
 */
export function indexItems(scene, film) {
  const n = scene.ends.length;
  const own = { ops: new Array(n), nodes: new Array(n) };
  const itemOfOp = new Int32Array(film.ops.length).fill(-1);
  const itemOfNode = new Int32Array(film.nodes.length).fill(-1);
  const itemOfValue = new Map();
  for (let item = 0; item < n; item += 1) {
    const { kind } = scene.looks[item];
    const ref = scene.refs[item];
    own.ops[item] = kind === "op" || kind === "function" ? [ref] : [];
    own.nodes[item] = kind === "node" ? [ref] : [];
    if (kind === "op" || kind === "function") {
      itemOfOp[ref] = item;
      own.nodes[item] = film.ops[ref].nodes;
    } else if (kind === "node") itemOfNode[ref] = item;
    else if (kind === "input") {
      itemOfValue.set(ref, item);
      const leaf = film.values[ref].node;
      if (leaf >= 0) own.nodes[item] = [leaf];
    }
  }
  placeTheRest(scene, film, { itemOfOp, itemOfNode, itemOfValue });
  const cache = new Array(n);
  const of = (item) => (cache[item] ??= gather(scene, film, own, item));
  return { of, itemOfOp, itemOfNode, itemOfValue };
}

/** Nodes without a box in the view "ops", and ops without one in "autograd", get their partner's. */
function placeTheRest(scene, film, { itemOfOp, itemOfNode, itemOfValue }) {
  if (scene.view === "autograd") {
    for (const op of film.ops) {
      const own = op.node >= 0 ? op.node : op.nodes[0];
      if (own !== undefined) itemOfOp[op.index] = itemOfNode[own];
    }
    for (let node = film.nodes.length - 1; node >= 0; node -= 1) { // a leaf's is a chip on its neighbour
      for (const next of film.nodes[node].next) if (itemOfNode[next] < 0) itemOfNode[next] = itemOfNode[node];
    }
    return;
  }
  for (const node of film.nodes) if (node.op >= 0) itemOfNode[node.index] = itemOfOp[node.op];
  const users = firstUsers(film);
  for (const [node, { op, value }] of users) {
    if (itemOfNode[node] < 0) itemOfNode[node] = itemOfValue.get(value) ?? itemOfOp[op];
  }
}

function gather(scene, film, own, item) {
  const [ops, nodes] = [[], []];
  for (let i = item; i < scene.ends[item]; i += 1) {
    for (const op of own.ops[i]) ops.push(op);
    for (const node of own.nodes[i]) nodes.push(node);
  }
  const born = scene.view === "ops" ? ops : nodes.map((node) => Math.max(film.nodes[node].op, 0));
  const back = nodes.map((node) => film.nodes[node].ran).filter((step) => step >= 0);
  const sorted = (numbers) => Int32Array.from(numbers).sort();
  return { ops: sorted(ops), nodes, born: sorted(born), back: sorted(back) };
}

/** How many of a sorted list are at most `at`. */
export function countUpTo(sorted, at) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether backward needs anything that was saved here. */
export function savesAny(film, { ops, nodes }) {
  return ops.length ? ops.some((op) => film.ops[op].saved > 0) : nodes.some((node) => film.nodes[node].saved > 0);
}

/** The bytes that an item's nodes keep after a step. */
export function heldBy(film, { ops, nodes }, at) {
  let held = 0;
  for (const op of ops) if (op <= at) held += film.ops[op].saved;
  if (!ops.length) for (const node of nodes) if (film.nodes[node].op <= at) held += film.nodes[node].saved;
  if (held) {
    for (const node of nodes) {
      const { ran, freed, saved } = film.nodes[node];
      if (ran >= 0 && ran <= at && freed) held -= saved;
    }
  }
  return Math.max(held, 0);
}

// --- colour ---------------------------------------------------------------------------------------

/**
 * The colours of one question, "dtype" or "time": a hue for each answer, or a strength from 0 to 1.
 * @returns {{of: (item: number) => {hue: string, strength: number} | null,
 *   legend: {hue: string, strength: number, label: string}[]}}
 */
export function paint(how, scene, film, index) {
  if (how === "module" || how === "dtype" || how === "device") {
    return byKind(how, scene, film, index);
  }
  return bySize(how, scene, film, index);
}

function kindOf(how, film, op) {
  if (how === "module") return film.ops[op].type;
  const value = film.values[film.ops[op].outputs[0]];
  return value?.[how] ?? "";
}

function byKind(how, scene, film, index) {
  const counts = new Map();
  for (const op of film.ops) {
    const kind = kindOf(how, film, op.index);
    if (kind) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const ranked = [...counts].sort((a, b) => b[1] - a[1]).map(([kind]) => kind);
  const hues = new Map(ranked.map((kind, i) => [kind, ITEM_HUES[i] ?? "grey"]));
  const of = (item) => {
    const { ops, nodes } = index.of(item);
    const all = ops.length ? ops : nodes.map((node) => film.nodes[node].op).filter((op) => op >= 0);
    if (scene.looks[item].kind === "call" && how === "module" && all.length > 1) {
      const hue = hues.get(scene.looks[item].title);
      if (hue) return { hue, strength: 1 };
    }
    const kinds = new Set();
    for (const op of all) {
      kinds.add(kindOf(how, film, op));
      if (kinds.size > 1) return null;
    }
    const hue = hues.get([...kinds][0]);
    return hue ? { hue, strength: 1 } : null;
  };
  const legend = ranked.slice(0, ITEM_HUES.length).map((label, i) => ({ hue: ITEM_HUES[i], strength: 1, label }));
  if (ranked.length > legend.length) legend.push({ hue: "grey", strength: 1, label: "others" });
  return { of, legend };
}

/** Of an op's outputs, its nodes' gradient, or its time: what a box of several adds up to. */
const MEASURES = {
  bytes: (film, op) => sumOf(op.outputs, (value) => film.values[value].bytes),
  time: (film, op) => op.ns ?? 0,
  gradient: (film, op) => Math.max(0, ...op.nodes.map((node) => film.nodes[node].grad ?? 0)),
};
const sumOf = (places, size) => places.reduce((total, place) => total + size(place), 0);

function bySize(how, scene, film, index) {
  const ofOps = (ops) => {
    let [sum, top] = [0, 0];
    for (const op of ops) {
      const size = MEASURES[how](film, film.ops[op]);
      sum += size;
      top = Math.max(top, size);
    }
    return how === "gradient" ? top : sum;
  };
  const ofNodes = (nodes) => nodes.reduce((top, node) => Math.max(top, film.nodes[node].grad ?? 0), 0);
  const amountOf = (item) => {
    const { ops, nodes } = index.of(item);
    if (how === "gradient") return Math.max(ofOps(ops), ofNodes(nodes));
    return ofOps(ops.length ? ops : nodes.map((node) => film.nodes[node].op).filter((op) => op >= 0));
  };
  const sizes = film.ops.map((op) => MEASURES[how](film, op)).filter((size) => size > 0);
  if (how === "gradient") for (const { grad } of film.nodes) if (grad > 0) sizes.push(grad);
  const low = sizes.reduce((least, size) => Math.min(least, size), Infinity);
  const high = sizes.reduce((most, size) => Math.max(most, size), 0);
  const span = Math.log(high / low) || 1;
  const of = (item) => {
    const size = amountOf(item);
    if (!size) return null;
    return { hue: "blue", strength: Math.min(0.15 + 0.85 * Math.log(size / low) / span, 1) };
  };
  const spell = { bytes: spellBytes, time: spellTime, gradient: spellNumber }[how];
  const legend = sizes.length
    ? [{ hue: "blue", strength: 0.15, label: spell(low) }, { hue: "blue", strength: 1, label: spell(high) }]
    : [];
  return { of, legend };
}
