// A recorded run as the player reads it: what `player_state.py` packed, unpacked, and the questions
// that are asked of it. Nothing here draws; tests/js/player.test.mjs runs it without a page.

const VALUE_KINDS = ["input", "parameter", "buffer", "constant", "result"];
const NODE_KINDS = ["builtin", "accumulate", "function", "compiled", "checkpoint"];
const OP_KINDS = ["op", "detach", "exit", "function", "checkpoint", "transform", "compiled", "backward", "optimizer"];
const GRAD_MODES = ["grad", "no_grad", "inference"];
const OCTAVE = 2;
const ZERO_SHADE = 40 * OCTAVE;

/** Running sums: the opposite of `deltas` in Python. */
export function sums(distances) {
  let at = 0;
  return distances.map((distance) => (at += distance));
}

/** Lists out of one flat column [length, items..., length, items...]. */
function lists(flat, back) {
  const found = [];
  for (let at = 0; at < flat.length;) {
    const length = flat[at];
    found.push(back(flat.slice(at + 1, at + 1 + length), found.length));
    at += length + 1;
  }
  return found;
}

/** The number that a step of the logarithmic scale stands for; null for what is none. */
export function amount(shade) {
  if (shade < 0) return null;
  return shade === 0 ? 0 : 2 ** ((shade - ZERO_SHADE) / OCTAVE);
}

/**
 * @typedef {object} Film ops, values, nodes and calls as lists of records that refer to each other
 *   by place; `steps`, the timeline; `held`, the bytes held after each step
 */

/** @returns {Film} */
export function unpackFilm(packed) {
  const { words } = packed;
  const word = (place) => (place < 0 ? "" : words[place]);
  const sites = sitesOf(packed.sites, word);
  const calls = callsOf(packed.calls, word);
  const ops = opsOf(packed.ops, word, sites, calls);
  const values = valuesOf(packed.values, word, packed.forms);
  const nodes = nodesOf(packed.nodes, word);
  for (const op of ops) for (const value of op.outputs) values[value].op = op.index;
  for (const node of nodes) if (node.op >= 0) ops[node.op]?.nodes.push(node.index);
  for (const op of ops) op.node = op.outputs.map((value) => values[value].node).find((node) => node >= 0) ?? -1;
  const order = sums(packed.order);
  const steps = [
    ...ops.map(({ index }) => ({ back: false, index })),
    ...order.map((index) => ({ back: true, index })),
  ];
  order.forEach((index, at) => { if (nodes[index].ran < 0) nodes[index].ran = ops.length + at; });
  return {
    ops, values, nodes, calls, sites, steps, held: sums(packed.held), forward: ops.length,
    outputs: packed.outputs, roots: packed.roots, name: packed.function,
  };
}

function sitesOf(columns, word) {
  const lines = sums(columns.line);
  return lines.map((line, i) => ({
    index: i, file: word(columns.file[i]), line, from: columns.from[i], to: columns.to[i],
    end: line + columns.lines[i],
  }));
}

function callsOf(columns, word) {
  const [parents, firsts] = [sums(columns.parent), sums(columns.first)];
  return columns.path.map((path, i) => ({
    index: i, path: word(path), type: word(columns.type[i]), count: columns.count[i],
    parent: parents[i], first: firsts[i], end: firsts[i] + columns.ops[i],
  }));
}

function opsOf(columns, word, sites, calls) {
  const [places, inside] = [sums(columns.site), sums(columns.inside)];
  const called = innermost(calls, columns.name.length);
  const [read, made] = [[], []];
  let last = 0; // the newest value before the op
  for (let i = 0, j = 0; i < columns.inputs.length || j < columns.outputs.length;) {
    const [n, m] = [columns.inputs[i], columns.outputs[j]];
    read.push(columns.inputs.slice(i + 1, i + 1 + n).map((back) => (back < 0 ? -1 - back : last - back)));
    made.push(columns.outputs.slice(j + 1, j + 1 + m).map((on) => last + on));
    last = Math.max(last, ...made.at(-1));
    [i, j] = [i + n + 1, j + m + 1];
  }
  return columns.name.map((name, i) => ({
    index: i, name: word(name), kind: OP_KINDS[columns.kind[i]], site: sites[places[i]] ?? null,
    call: called[i], module: calls[called[i]]?.path ?? "", type: calls[called[i]]?.type ?? "",
    inside: inside[i], saved: columns.saved[i], inPlace: columns.mode[i] % 2 === 1,
    mode: GRAD_MODES[columns.mode[i] >> 1], autocast: word(columns.autocast[i]),
    ns: amount(columns.time[i]), inputs: read[i], outputs: made[i], nodes: [], node: -1,
  }));
}

/** For each op the innermost call of a module around it; -1 without. */
function innermost(calls, n) {
  const found = new Int32Array(n).fill(-1);
  // a call that began later lies further inside, or behind
  for (const { index, first, end } of calls) found.fill(index, first, end);
  return found;
}

function valuesOf(columns, word, forms) {
  const nodes = sums(columns.node);
  return columns.kind.map((kind, i) => {
    const [shape, dtype, device, bytes] = forms[columns.form[i]];
    return {
      index: i, kind: VALUE_KINDS[kind], name: word(columns.name[i]), shape, dtype, device, bytes,
      grad: columns.marks[i] % 2 === 1, leaf: columns.marks[i] >= 2, node: nodes[i], op: -1,
    };
  });
}

function nodesOf(columns, word) {
  const owners = sums(columns.op);
  const next = lists(columns.next, (ways, index) => ways.map((way) => (way < 0 ? -1 - way : index - way)));
  return columns.name.map((name, i) => ({
    index: i, name: word(name), kind: NODE_KINDS[columns.kind[i]], op: owners[i],
    saved: columns.saved[i], freed: [false, true, null][columns.freed[i]],
    parameter: i < columns.leaves ? word(columns.parameter[i]) : null,
    grad: columns.grad[i] <= -3 ? null : amount(columns.grad[i]), shade: columns.grad[i],
    next: next[i], ran: -1,
  }));
}

// --- words ----------------------------------------------------------------------------------------

/** "(32, 128)", as Python writes a shape. */
export function spellShape(shape) {
  if (!shape.length) return "scalar";
  return shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
}

/** 1536 bytes are "1.5 KiB", as `spell_bytes` in Python. */
export function spellBytes(bytes) {
  let [size, unit] = [bytes, 0];
  while (size >= 1024 && unit < 4) [size, unit] = [size / 1024, unit + 1];
  return unit ? `${size.toFixed(1)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}` : `${bytes} B`;
}

/** At most four figures: "0.5", "1.234", "−3.2e-7". */
export function spellNumber(number) {
  if (typeof number === "string") return number; // "nan", "inf"
  if (number === 0) return "0";
  const size = Math.abs(number);
  const text = size >= 1e5 || size < 1e-3 ? number.toExponential(1) : String(Number(number.toPrecision(3)));
  return text.replaceAll("-", "−").replace(/e[+]?/, "e");
}

/** A time in its natural unit. */
export function spellTime(ns) {
  const [size, unit] = ns < 1e3 ? [ns, "ns"] : ns < 1e6 ? [ns / 1e3, "µs"] : ns < 1e9 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  return `${size >= 10 ? Math.round(size) : size.toFixed(1)} ${unit}`;
}

/** "AddmmBackward0" is "addmm"; only for reading, never for looking up. */
export function plainNode(name) {
  return name.replace(/Backward\d*$/, "");
}

// --- questions ------------------------------------------------------------------------------------

/** The op of a step: the one that runs, or the one whose node runs; -1 without. */
export function opOfStep(film, at) {
  const step = film.steps[at];
  if (!step) return -1;
  if (!step.back) return step.index;
  const { op } = film.nodes[step.index];
  return op >= 0 ? op : firstUsers(film).get(step.index)?.op ?? -1;
}

/** For each leaf's node the first op that reads the leaf. */
export function firstUsers(film) {
  if (film.users) return film.users;
  film.users = new Map();
  for (const op of film.ops) {
    for (const value of op.inputs) {
      const { node, leaf } = film.values[value];
      if (leaf && node >= 0 && !film.users.has(node)) film.users.set(node, { op: op.index, value });
    }
  }
  return film.users;
}

/**
 * The nodes from a root to a leaf, shortest first met: the path by which a gradient reaches it.
 * @returns {number[]} empty if no gradient can
 */
export function pathTo(film, leaf) {
  const from = new Map(film.roots.map((root) => [root, -1]));
  const waiting = [...from.keys()];
  for (let i = 0; i < waiting.length; i += 1) {
    if (waiting[i] === leaf) break;
    for (const next of film.nodes[waiting[i]].next) {
      if (!from.has(next)) {
        from.set(next, waiting[i]);
        waiting.push(next);
      }
    }
  }
  if (!from.has(leaf)) return [];
  const path = [];
  for (let at = leaf; at !== -1; at = from.get(at)) path.push(at);
  return path.reverse();
}

/** The AccumulateGrad node of each named leaf. */
export function leaves(film) {
  const found = new Map();
  for (const node of film.nodes) if (node.parameter) found.set(node.parameter, node.index);
  return found;
}

/** The ops whose expression stands on a line of a file. */
export function opsOfLine(film, file, line) {
  return film.ops.filter(({ site }) => site?.file === file && site.line <= line && line <= site.end)
    .map(({ index }) => index);
}

/** The ops that match all words of a query: by name, module, class, node, parameter, input. */
export function findOps(film, query) {
  const terms = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!terms.length) return [];
  film.lower ??= film.ops.map((op) => [
    op.name, op.module, op.type, ...op.nodes.map((node) => film.nodes[node].name),
    ...op.inputs.map((value) => film.values[value].name), op.kind === "op" ? "" : op.kind,
  ].join(" ").toLowerCase());
  return film.ops.filter(({ index }) => terms.every((term) => film.lower[index].includes(term)))
    .map(({ index }) => index);
}

/** The same among autograd nodes, by their plain names: else "w" finds all that end in Backward0. */
export function findNodes(film, query) {
  const terms = query.toLowerCase().split(/\s+/).filter(Boolean).map((term) => term.replace(/(?<=.)backward\d*$/, ""));
  if (!terms.length) return [];
  film.lowerNodes ??= film.nodes.map((node) =>
    [plainNode(node.name), node.parameter ?? "", film.ops[node.op]?.module ?? "", film.ops[node.op]?.type ?? ""].join(" ").toLowerCase());
  return film.nodes.filter(({ index }) => terms.every((term) => film.lowerNodes[index].includes(term)))
    .map(({ index }) => index);
}

/** The lines at which something ran: "file\nline" to the ops there, in order. */
export function linesThatRan(film) {
  const found = new Map();
  for (const op of film.ops) {
    if (!op.site) continue;
    const key = `${op.site.file}\n${op.site.line}`;
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(op.index);
  }
  return found;
}
