// Where boxes, frames and edges of a graph go: the same steps as pytorch_lab/graph/layout.py, to the
// same coordinates, so that folding works in a saved page without a kernel. Pure: no page needed.

/**
 * @typedef {object} Look what stands in a box, see `Look` in pytorch_lab/graph/scene.py
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

/**
 * @typedef {object} Layout rounded to 0.1; (0, 0) is the left upper corner
 * @property {number} width @property {number} height
 * @property {{item: number, x: number, y: number, width: number, height: number, open: boolean}[]}
 *   boxes all that show, frames (open: true) before what is in them; not the root
 * @property {{source: number, target: number, points: number[][]}[]} routes one for each pair of
 *   items that show and have an edge between them; `curve(points)` draws it. Routes that leave one
 *   box share their way as long as they can.
 */

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

// The same numbers as in routes.py, columns.py and layers.py.
const PAD = 12, HEAD = 26, GAP = 22, MORE_GAP = 18, SPREAD = 12, OUTER_LANE = 8, STRAIGHT = 0.05;
const BOX_MARGIN = 11, LANE_MARGIN = 6, PULLS = 8, DRIFT = 120;
const SWEEPS = 8, LANES_PER_ITEM = 2, LANES_ANYWAY = 3000, SWAPPABLE = 400;

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

// --- layout.py: which items show, and which nets lie in each open frame ---------------------------

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

// --- layers.py: who stands in which layer, and in which order -------------------------------------

function stackLayers(items, nets, tree, insides) {
  const sizes = items.map((item) => tree.sizes.get(item));
  const inside = {
    nets, byKey: new Map(nets.map((net) => [net.key, net])),
    place: new Map(items.map((item, node) => [item, node])),
    nItems: items.length, isOpen: items.map((item) => tree.kids.has(item)),
    widths: sizes.map(([width]) => width), heights: sizes.map(([, height]) => height),
    rank: items.map(() => 1), up: items.map(() => []), down: items.map(() => []),
    rows: [], last: 0, x: [], lefts: [], tops: [], bands: [], width: 0, height: 0,
    enters: new Map(), leaves: new Map(), into: new Map(), attached: new Map(), outer: new Map(),
  };
  for (const net of nets) net.ends = net.targets.map((item) => inside.place.get(item));
  const starts = nets.map((net) => (net.start === null ? -1 : inside.place.get(net.start)));
  setRanks(inside, starts);
  lead(inside, starts, items, insides);
  setOrder(inside);
  return inside;
}

/** A port or a lane. */
function addNode(inside, rank) {
  inside.rank.push(rank);
  inside.widths.push(0);
  inside.heights.push(0);
  inside.up.push([]);
  inside.down.push([]);
  return inside.rank.length - 1;
}

function link(inside, above, below, out, into) {
  inside.down[above].push([below, into, out]);
  inside.up[below].push([above, out, into]);
}

const under = (net, node) => net.key * 2 ** 26 + node; // the key of `into` and `attached`

function setRanks(inside, starts) {
  const { rank, nets, nItems } = inside;
  const nReaders = new Array(nItems).fill(0);
  nets.forEach((net, i) => {
    if (starts[i] >= 0) nReaders[starts[i]] += net.ends.length + (net.leaves ? 1 : 0);
  });
  const feeds = new Array(nItems).fill(true);
  nets.forEach((net, i) => {
    const start = starts[i];
    const below = start >= 0 ? rank[start] + 1 : 1;
    const lends = start >= 0 && feeds[start] && nReaders[start] === 1;
    for (const node of net.ends) {
      if (rank[node] < below) rank[node] = below;
      feeds[node] = feeds[node] && lends;
    }
    if (net.leaves && start >= 0) feeds[start] = false;
  });
  const lowest = new Map();
  for (let i = nets.length - 1; i >= 0; i -= 1) {
    const start = starts[i];
    if (start < 0 || !feeds[start] || !nets[i].ends.length) continue;
    const low = least(nets[i].ends.map((node) => rank[node]), Infinity) - 1;
    rank[start] = Math.min(low, lowest.get(start) ?? low);
    lowest.set(start, rank[start]);
  }
}

// Math.max(...array) fails on arrays of a hundred thousand.
const most = (numbers, none) => numbers.reduce((a, b) => (a > b ? a : b), none);
const least = (numbers, none) => numbers.reduce((a, b) => (a < b ? a : b), none);

function lead(inside, starts, items, insides) {
  const { rank, nItems } = inside;
  inside.last = most(rank, 0) + 1;
  const reach = longest(inside, starts);
  inside.nets.forEach((net, i) => {
    let here = starts[i], out = 0;
    if (here < 0) {
      here = addNode(inside, 0);
    } else {
      const within = insides.get(items[here]);
      if (within) net.out = out = within.leaves.get(net.key);
    }
    const ends = net.ends.map((node) => [rank[node], node]);
    if (net.leaves) {
      net.port = addNode(inside, inside.last);
      net.ends.push(net.port);
      ends.push([inside.last, net.port]);
    }
    ends.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const first = rank[here];
    let at = first;
    net.path.push(here);
    for (const [level, node] of ends) {
      let into = 0;
      if (node < nItems && inside.isOpen[node]) {
        into = insides.get(items[node]).enters.get(net.key);
        inside.into.set(under(net, node), into);
      }
      if (level - first > reach) {
        net.far.push(node);
        continue;
      }
      while (at + 1 < level) {
        at += 1;
        const lane = addNode(inside, at);
        link(inside, here, lane, out, 0);
        net.path.push(lane);
        here = lane;
        out = 0;
      }
      link(inside, here, node, out, into);
    }
  });
}

/** Over how many layers a net may have lanes, so that all lanes together stay affordable. */
function longest(inside, starts) {
  const { rank } = inside;
  const spans = inside.nets.map((net, i) => {
    const end = net.leaves ? inside.last : most(net.ends.map((node) => rank[node]), 0);
    return end - (starts[i] >= 0 ? rank[starts[i]] : 0);
  });
  spans.sort((a, b) => a - b);
  let left = LANES_PER_ITEM * inside.nItems + LANES_ANYWAY;
  for (let i = 0; i < spans.length; i += 1) {
    if (spans[i] * (spans.length - i) > left) {
      return Math.max(1, Math.floor(left / (spans.length - i)));
    }
    left -= spans[i];
  }
  return inside.last + 1;
}

/** Put each layer in an order with few crossings; lanes get a second and a third try. */
function setOrder(inside) {
  const { nItems } = inside;
  const rows = Array.from({ length: inside.last + 1 }, () => []);
  inside.rank.forEach((level, node) => rows[level].push(node));
  inside.rows = rows;
  if (most(rows.map((row) => row.length), 0) < 2) return;
  let fewest = sweepRows(inside, rows);
  if (!fewest || inside.rank.length > SWAPPABLE) return;
  for (let start = 0; start < 2; start += 1) {
    const tried = rows.map((row) => {
      const items = row.filter((node) => node < nItems);
      const lanes = row.filter((node) => node >= nItems);
      const left = lanes.filter((_, i) => start === 0 || i % 2 === 0);
      return [...left, ...items, ...lanes.filter((node) => !left.includes(node))];
    });
    const best = inside.rows;
    const crossings = sweepRows(inside, tried);
    if (crossings < fewest) fewest = crossings;
    else inside.rows = best;
  }
  if (fewest) swap(inside);
}

/** Sort each layer by the middle of its neighbours, down and up; keep the best and count it. */
function sweepRows(inside, rows) {
  const pos = new Array(inside.rank.length).fill(0);
  for (const row of rows) number(row, pos);
  let fewest = -1;
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    rows = rows.map((row) => [...row]);
    if (sweep % 2 === 0) for (const row of rows) sortRow(row, inside.up, inside.down, inside, pos);
    else for (const row of [...rows].reverse()) sortRow(row, inside.down, inside.up, inside, pos);
    const crossings = countCrossings(inside, rows, pos);
    if (fewest < 0 || crossings < fewest) [inside.rows, fewest] = [rows, crossings];
    if (!crossings) break;
  }
  return fewest;
}

function number(row, pos) {
  row.forEach((node, place) => { pos[node] = place; });
}

/** Sort a layer by its neighbours in the one next to it; who has none stays near its place. */
function sortRow(row, links, others, { widths }, pos) {
  if (row.length < 2) return;
  const wish = new Map();
  for (const node of row) {
    const near = links[node];
    let total = 0;
    for (const [other, at] of near) total += pos[other] + (at ? at / widths[other] : 0);
    wish.set(node, near.length ? total / near.length : others[node].length ? pos[node] : 1e9);
  }
  row.sort((a, b) => wish.get(a) - wish.get(b));
  number(row, pos);
}

function countCrossings({ down, widths }, rows, pos) {
  let total = 0;
  for (let i = 0; i + 1 < rows.length; i += 1) {
    if (rows[i].length < 2 && rows[i + 1].length < 2) continue;
    const ends = [];
    for (const node of rows[i]) {
      for (const [other, at, here] of down[node]) {
        ends.push([pos[node] + (here ? here / widths[node] : 0),
          pos[other] + (at ? at / widths[other] : 0)]);
      }
    }
    ends.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const done = [];
    for (const [, end] of ends) {
      const place = after(done, end);
      total += done.length - place;
      done.splice(place, 0, end);
    }
  }
  return total;
}

/** Python's bisect_right. */
function after(sorted, value) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (value < sorted[middle]) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Exchange neighbours as long as that takes crossings away, at most a few rounds. */
function swap(inside) {
  const pos = new Array(inside.rank.length).fill(0);
  const gain = (left, right) => {
    let sum = 0;
    for (const [a, at] of left) {
      const first = pos[a] + (at ? at / inside.widths[a] : 0);
      for (const [b, to] of right) {
        const second = pos[b] + (to ? to / inside.widths[b] : 0);
        sum += Number(first > second) - Number(first < second);
      }
    }
    return sum;
  };
  for (const row of inside.rows) number(row, pos);
  for (let round = 0; round < 4; round += 1) {
    let better = false;
    for (const row of inside.rows) {
      for (let place = 0; place + 1 < row.length; place += 1) {
        const [left, right] = [row[place], row[place + 1]];
        if (gain(inside.up[left], inside.up[right]) + gain(inside.down[left], inside.down[right]) > 0) {
          [row[place], row[place + 1]] = [right, left];
          [pos[left], pos[right]] = [pos[right], pos[left]];
          better = true;
        }
      }
    }
    if (!better) return;
  }
}

// --- columns.py: who stands straight below whom, and where ----------------------------------------

function setColumns(inside) {
  const { column, shift, nColumns } = tie(inside);
  if (nColumns === 1) {
    inside.x = shift;
    return;
  }
  const [left, right] = neighbours(inside, column, shift, nColumns);
  const x = pack(left, right, nColumns);
  const wishes = gatherWishes(inside, column, shift, nColumns);
  const order = x.map((_, each) => each).sort((a, b) => x[a] - x[b]);
  const back = [...order].reverse();
  for (let i = 0; i < PULLS; i += 1) pull(x, i % 2 ? order : back, left, right, wishes);
  inside.x = column.map((at, node) => x[at] + shift[node]);
}

/** The column of each node, how far it stands to the right in it, and how many there are. */
function tie(inside) {
  const { below, shifts, hangs } = ties(inside);
  const column = new Array(hangs.length).fill(0);
  const shift = new Array(hangs.length).fill(0);
  let nColumns = 0;
  for (const row of inside.rows) {
    for (const node of row) {
      if (hangs[node]) continue;
      let to = node, by = 0;
      for (;;) {
        column[to] = nColumns;
        shift[to] = by;
        if (below[to] < 0) break;
        by += shifts[to];
        if (Math.abs(by) > DRIFT) by = 0;
        to = below[to];
      }
      nColumns += 1;
    }
  }
  return { column, shift, nColumns };
}

/** Of each node what hangs on it (or -1), and how far to the right; which nodes hang on another. */
function ties(inside) {
  const n = inside.rank.length;
  const below = new Array(n).fill(-1);
  const shifts = new Array(n).fill(0);
  const hangs = new Array(n).fill(false);
  const place = new Array(n).fill(0);
  for (const row of inside.rows) number(row, place);
  const [high, low] = reaches(inside);
  const hang = (node, other, by) => {
    below[node] = other;
    shifts[node] = by;
    hangs[other] = true;
  };
  for (let i = 0; i + 1 < inside.rows.length; i += 1) {
    const row = inside.rows[i];
    if (row.length === 1 && inside.down[row[0]].length === 1) {
      const [other, into, out] = inside.down[row[0]][0];
      if (inside.up[other].length === 1) {
        hang(row[0], other, out - into);
        continue;
      }
    }
    for (const tied of choose(inside, row, place, high, low)) hang(...tied);
  }
  return { below, shifts, hangs };
}

/** How far up and how far down the longest way through each node leads. */
function reaches({ rank, rows, down }) {
  const high = [...rank], low = [...rank];
  for (const row of rows) {
    for (const node of row) {
      for (const [other] of down[node]) if (high[node] < high[other]) high[other] = high[node];
    }
  }
  for (let i = rows.length - 1; i >= 0; i -= 1) {
    for (const node of rows[i]) {
      for (const [other] of down[node]) if (low[other] > low[node]) low[node] = low[other];
    }
  }
  return [high, low];
}

/** Which edges below a layer shall be straight: [node, node below, how far to the right]. */
function choose(inside, row, place, high, low) {
  const { nItems, rank, last, up, down } = inside;
  const wanted = [];
  for (const node of row) {
    const ends = down[node];
    ends.forEach(([other, into, out], at) => {
      const nLanes = Number(node >= nItems && rank[node] > 0)
        + Number(other >= nItems && rank[other] < last);
      let off = Math.abs(2 * at - ends.length + 1);
      if (up[other].length > 1) {
        const before = up[other].filter(([each]) => place[each] < place[node]).length;
        off += Math.abs(2 * before - up[other].length + 1);
      }
      const main = high[node] - low[other];
      wanted.push([Number(nLanes < 2), main, nLanes, off, place[node], place[other],
        node, other, out - into]);
    });
  }
  wanted.sort((a, b) => {
    for (let i = 0; i < a.length; i += 1) if (a[i] !== b[i]) return a[i] - b[i];
    return 0;
  });
  const chosen = [], tops = [], bottoms = [];
  for (const [, , , , top, bottom, node, other, by] of wanted) {
    let at = 0;
    for (let high = tops.length; at < high;) {
      const middle = (at + high) >> 1;
      if (tops[middle] < top) at = middle + 1;
      else high = middle;
    }
    if (at < tops.length && (tops[at] === top || bottoms[at] <= bottom)) continue;
    if (at && bottoms[at - 1] >= bottom) continue;
    tops.splice(at, 0, top);
    bottoms.splice(at, 0, bottom);
    chosen.push([node, other, by]);
  }
  return chosen;
}

/** Of each column, those at its left and at its right, and the distance they need. */
function neighbours({ rows, widths, nItems }, column, shift, nColumns) {
  const left = Array.from({ length: nColumns }, () => new Map());
  const right = Array.from({ length: nColumns }, () => new Map());
  const margin = (node) => (node < nItems ? BOX_MARGIN : LANE_MARGIN);
  for (const row of rows) {
    for (let i = 1; i < row.length; i += 1) {
      const [before, node] = [row[i - 1], row[i]];
      const room = (widths[before] + widths[node]) / 2 + margin(before) + margin(node);
      const need = room + shift[before] - shift[node];
      const [a, b] = [column[before], column[node]];
      if (need > (left[b].get(a) ?? -1e9)) {
        left[b].set(a, need);
        right[a].set(b, need);
      }
    }
  }
  return [left, right];
}

/** Each column as far left as those at its left allow. */
function pack(left, right, nColumns) {
  const x = new Array(nColumns).fill(0);
  const waits = left.map((near) => near.size);
  const ready = [];
  waits.forEach((n, each) => { if (!n) ready.push(each); });
  for (let i = 0; i < ready.length; i += 1) {
    for (const [other, need] of right[ready[i]]) {
      x[other] = Math.max(x[other], x[ready[i]] + need);
      waits[other] -= 1;
      if (!waits[other]) ready.push(other);
    }
  }
  return x;
}

/** Of each column, [other column, distance from it at which their edge would be straight]. */
function gatherWishes({ down }, column, shift, nColumns) {
  const wishes = Array.from({ length: nColumns }, () => []);
  down.forEach((ends, node) => {
    for (const [other, into, out] of ends) {
      const [a, b] = [column[node], column[other]];
      if (a === b) continue;
      const by = shift[node] + out - shift[other] - into;
      wishes[b].push([a, by]);
      wishes[a].push([b, -by]);
    }
  });
  return wishes;
}

/** Move each column to the middle of what its edges want. */
function pull(x, order, left, right, wishes) {
  for (const each of order) {
    if (!wishes[each].length) continue;
    const places = wishes[each].map(([other, by]) => x[other] + by);
    const half = places.length >> 1;
    if (half) places.sort((a, b) => a - b);
    let to = places.length % 2 ? places[half] : (places[half - 1] + places[half]) / 2;
    for (const [other, need] of right[each]) to = Math.min(to, x[other] - need);
    for (const [other, need] of left[each]) to = Math.max(to, x[other] + need);
    x[each] = to;
  }
}

// --- routes.py: the rows, and the way of every edge -----------------------------------------------

function placeRows(inside, closed, isRoot) {
  const half = inside.widths.map((width) => width / 2);
  let low = (inside.x.length ? least(inside.x.map((at, i) => at - half[i]), Infinity) : 0) - PAD;
  let high = inside.x.length ? most(inside.x.map((at, i) => at + half[i]), -Infinity) : 0;
  high = goRound(inside, high) + PAD;
  if (high - low < closed[0]) {
    low -= (closed[0] - high + low) / 2;
    high = low + closed[0];
  }
  const x = inside.x = inside.x.map((at) => at - low);
  for (const [key, at] of inside.outer) inside.outer.set(key, at - low);
  inside.width = high - low;
  setBands(inside, isRoot ? PAD : HEAD);
  const middle = inside.width / 2;
  for (let node = 0; node < inside.nItems; node += 1) {
    const [top, bottom] = inside.bands[inside.rank[node]];
    inside.lefts.push(x[node] - half[node]);
    inside.tops.push((top + bottom - inside.heights[node]) / 2);
  }
  for (const net of inside.nets) {
    if (net.start === null) inside.enters.set(net.key, x[net.path[0]] - middle);
    if (net.leaves) inside.leaves.set(net.key, x[net.port] - middle);
  }
  attach(inside);
}

/** Lanes to the right of everything, for nets too long for lanes inside; where they end. */
function goRound(inside, high) {
  const busy = [];
  for (const net of inside.nets) {
    if (!net.far.length) continue;
    const first = inside.rank[net.path[0]];
    let lane = busy.findIndex((until) => until < first);
    if (lane < 0) lane = busy.length;
    busy[lane] = most(net.far.map((node) => inside.rank[node]), 0);
    inside.outer.set(net.key, high + OUTER_LANE * (lane + 1));
  }
  return high + OUTER_LANE * busy.length;
}

function setBands(inside, y) {
  const { rows, heights } = inside;
  const bands = [[0, y]];
  for (let rank = 1; rank < rows.length - 1; rank += 1) {
    const swing = swingOf(inside, rows[rank]);
    if (rank > 1) y += GAP + Math.min(MORE_GAP, swing / 10);
    else if (swing > STRAIGHT || inside.outer.size) y += GAP / 2 + Math.min(MORE_GAP, swing / 10);
    const height = most(rows[rank].map((node) => heights[node]), 0);
    bands.push([y, y + height]);
    y += height;
  }
  if (rows.length > 1 && rows.at(-1).length) {
    const swing = swingOf(inside, rows.at(-1));
    if (swing > STRAIGHT || inside.outer.size) y += GAP / 2 + Math.min(MORE_GAP, swing / 10);
  }
  inside.height = y + PAD;
  bands.push([y, inside.height]);
  inside.bands = bands;
}

/** How far the edges into a layer move to the side, at most. */
function swingOf({ x, up }, row) {
  let widest = 0;
  for (const node of row) {
    for (const [other, out, into] of up[node]) {
      widest = Math.max(widest, Math.abs(x[other] + out - x[node] - into));
    }
  }
  return widest;
}

/** Where each edge meets the box it leads to: side by side, a straight one in the middle. */
function attach(inside) {
  const { x, rank, nets, widths } = inside;
  const coming = Array.from({ length: inside.nItems }, () => []);
  nets.forEach((net, at) => {
    const first = rank[net.path[0]];
    for (const node of net.ends) {
      if (node === net.port || inside.isOpen[node]) continue;
      const step = rank[node] - first - 1;
      if (net.far.includes(node)) coming[node].push([inside.outer.get(net.key), at]);
      else coming[node].push([x[net.path[step]] + (step ? 0 : net.out), at]);
    }
  });
  coming.forEach((edges, node) => {
    if (edges.length < 2) return;
    edges.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const step = Math.min(SPREAD, (widths[node] - 16) / (edges.length - 1));
    const straight = edges.findIndex(([from]) => Math.abs(from - x[node]) < STRAIGHT);
    const middle = straight < 0 ? (edges.length - 1) / 2 : straight;
    const furthest = widths[node] / 2 - 6;
    edges.forEach(([, net], at) => {
      const by = Math.max(-furthest, Math.min(furthest, (at - middle) * step));
      inside.attached.set(under(nets[net], node), by);
    });
  });
}

/** The points at which a net turns on its way down, and how many of them lie above each node. */
function setTurns({ x, rank, bands, tops, heights, nItems }, net) {
  const start = net.path[0];
  let here = x[start] + net.out;
  net.turns.push([here, start < nItems ? tops[start] + heights[start] : 0]);
  net.nTurns.push(1);
  for (let i = 1; i < net.path.length; i += 1) {
    const [before, node] = [net.path[i - 1], net.path[i]];
    if (Math.abs(x[node] - here) > STRAIGHT) {
      net.turns.push([here, bands[rank[before]][1]]);
      here = x[node];
      net.turns.push([here, bands[rank[node]][0]]);
    }
    net.nTurns.push(net.turns.length);
  }
}

/** The way of a net through one frame to one of its ends. */
function wayOf(inside, net, node) {
  if (!net.turns.length) setTurns(inside, net);
  const { bands, rank } = inside;
  const [first, last] = [rank[net.path[0]], rank[node]];
  let x = inside.x[node], bottom = bands[last][1];
  if (node < inside.nItems) {
    bottom = inside.tops[node];
    if (inside.isOpen[node]) {
      x = inside.lefts[node] + inside.widths[node] / 2 + inside.into.get(under(net, node));
    } else {
      x += inside.attached.get(under(net, node)) ?? 0;
    }
  }
  if (net.far.includes(node)) {
    const outer = inside.outer.get(net.key);
    const above = (bands[first][1] + bands[first + 1][0]) / 2;
    const below = (bands[last - 1][1] + bands[last][0]) / 2;
    const [from] = net.turns;
    return [from, [from[0], above], [outer, above], [outer, below], [x, below], [x, bottom]];
  }
  const points = net.turns.slice(0, net.nTurns[last - first - 1]);
  const [here] = points.at(-1);
  if (Math.abs(x - here) > STRAIGHT) {
    points.push([here, bands[last - 1][1]], [x, bands[last][0]], [x, bottom]);
  } else {
    points.push([here, bottom]);
  }
  return points;
}

/** Put together the pieces of each edge: out of its frames, across, and into others. */
function joinRoutes({ pairs, parents, ends }, insides, corners) {
  return pairs.map(([source, target, flipped]) => {
    const down = [target];
    let frame = parents.get(target);
    while (!(frame <= source && source < ends[frame])) {
      down.push(frame);
      frame = parents.get(frame);
    }
    const way = [];
    for (let within = parents.get(source); within !== frame; within = parents.get(within)) {
      way.push([within, -1]);
    }
    while (down.length) {
      way.push([frame, down.at(-1)]);
      frame = down.pop();
    }
    const points = [];
    for (const [within, item] of way) {
      const inside = insides.get(within);
      const net = inside.byKey.get(source);
      const node = item >= 0 ? inside.place.get(item) : net.port;
      const [left, top] = corners.get(within);
      for (const [x, y] of wayOf(inside, net, node)) append(points, rounded(left + x), rounded(top + y));
    }
    return flipped ? { source: target, target: source, points: points.reverse() }
      : { source, target, points };
  });
}

/** Add a point, and take out the one before if it lies on a straight way down. */
function append(points, x, y) {
  const last = points.at(-1);
  if (last && last[0] === x && last[1] === y) return;
  if (points.length > 1 && last[0] === x && points.at(-2)[0] === x) points.pop();
  points.push([x, y]);
}

/** The path of a route: straight down its lane, an S-curve from one lane to the next. */
export function curve(points) {
  let d = `M${points[0][0]} ${points[0][1]}`;
  for (let i = 1; i < points.length; i += 1) {
    const [x0, y0] = points[i - 1];
    const [x1, y1] = points[i];
    if (x0 === x1 || y0 === y1) d += `L${x1} ${y1}`;
    else d += `C${x0} ${(y0 + y1) / 2} ${x1} ${(y0 + y1) / 2} ${x1} ${y1}`;
  }
  return d;
}
