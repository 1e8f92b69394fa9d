// As pytorch_lab/graph/drawing/routes.py: how far apart the rows stand, and the way of every edge.

const PAD = 12, HEAD = 26, GAP = 22, MORE_GAP = 18, SPREAD = 12, OUTER_LANE = 8, STRAIGHT = 0.05;

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
