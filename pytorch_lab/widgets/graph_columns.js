// As pytorch_lab/graph/drawing/columns.py: who stands straight below whom, and where.

const BOX_MARGIN = 11, LANE_MARGIN = 6, PULLS = 8, DRIFT = 120;

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
