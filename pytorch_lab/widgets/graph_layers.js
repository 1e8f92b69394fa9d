// As pytorch_lab/graph/drawing/layers.py: who stands in which layer of a frame, and in which order.

const SWEEPS = 8, LANES_PER_ITEM = 2, LANES_ANYWAY = 3000, SWAPPABLE = 400;

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
