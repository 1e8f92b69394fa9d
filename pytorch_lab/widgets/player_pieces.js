// A layout with all that drawing asks of it, found once per folding: boxes with their ops and nodes,
// routes cut into pieces, and shelves that say what lies at which height. Pure: no page needed.

/** Boxes and edges of a layout with all that drawing asks of them, found once. */
function stageSet(scene, film, index, layout, open) {
  const stand = standIns(scene, open);
  const boxes = layout.boxes.map((box) => ({ ...box, look: scene.looks[box.item], about: index.of(box.item), fitted: null }));
  const boxOf = new Map(boxes.map((box, i) => [box.item, i]));
  const first = new Map(); // of each edge that shows: when it appears, when a gradient flows in it
  const n = scene.ends.length;
  for (const [source, target] of scene.edges) {
    const [from, to] = [stand[source], stand[target]];
    if (from === to) continue;
    const { born, back } = index.of(target);
    const known = first.get(from * n + to);
    const [when, flows] = [born[0] ?? 0, index.of(source).back.length && back.length ? back[0] : Infinity];
    if (!known) first.set(from * n + to, [when, flows]);
    else first.set(from * n + to, [Math.min(known[0], when), Math.min(known[1], flows)]);
  }
  const edges = segmentsOf(layout.routes, (source, target) => first.get(source * n + target) ?? [0, Infinity]);
  return { layout, boxes, edges, boxOf, stand, shelves: shelve(boxes), runs: shelve(edges) };
}

/**
 * The routes cut at their bends, each piece once: routes that leave one box share their way, and a
 * loop over a thousand steps has a thousand routes on one lane. A piece appears with the first route
 * that takes it; `ways` are the routes.
 */
function segmentsOf(routes, timesOf) {
  const found = new Map();
  for (const { source, target, points } of routes) {
    const [born, flows] = timesOf(source, target);
    const last = points.length - 1;
    for (let i = 1; i <= last; i += 1) {
      const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]];
      const key = `${x0} ${y0} ${x1} ${y1}`;
      let piece = found.get(key);
      if (!piece) {
        piece = {
          x0, y0, x1, y1, x: Math.min(x0, x1), y: Math.min(y0, y1), width: Math.abs(x1 - x0), height: Math.abs(y1 - y0),
          born, flows, first: false, last: false, ways: [],
        };
        found.set(key, piece);
      }
      piece.born = Math.min(piece.born, born);
      piece.flows = Math.min(piece.flows, flows);
      piece.first ||= i === 1;
      piece.last ||= i === last;
      piece.ways.push(source, target);
    }
  }
  return [...found.values()];
}

const SHELF = 1200; // pixels of height that are looked through together

/** Which things lie at which height, so that a frame looks at those in sight alone. */
function shelve(things) {
  const shelves = [];
  things.forEach(({ y, height }, i) => {
    for (let at = Math.floor(y / SHELF); at <= Math.floor((y + height) / SHELF); at += 1) (shelves[at] ??= []).push(i);
  });
  return shelves;
}

/** The things between two heights, in their order, each once. */
function between(things, shelves, y0, y1) {
  const [low, high] = [Math.max(Math.floor(y0 / SHELF), 0), Math.min(Math.floor(y1 / SHELF), shelves.length - 1)];
  if (high - low > shelves.length / 3) return things;
  const found = new Set();
  for (let at = low; at <= high; at += 1) for (const i of shelves[at] ?? []) found.add(i);
  return [...found].sort((a, b) => a - b).map((i) => things[i]);
}

/** A piece of a route with the bend of `curve` in graph_routes.js, on a canvas. */
function trace(context, { x0, y0, x1, y1 }) {
  context.moveTo(x0, y0);
  if (x0 === x1 || y0 === y1) context.lineTo(x1, y1);
  else context.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
}

/** The edges in sight, each kind in one stroke. */
function paintEdges(context, pane, pieces) {
  const { at, inks, scale, film, litPieces } = pane;
  const backward = at >= film.forward;
  const kinds = { later: [], done: [], flowed: [], lit: [], dim: [] };
  const least = LEAST_EDGE / scale;
  for (const piece of pieces) {
    if (piece.height < least && piece.width < least) continue;
    const kind = litPieces?.has(piece) ? "lit" : litPieces ? "dim" : piece.born > at ? "later"
      : backward && piece.flows <= at ? "flowed" : "done";
    kinds[kind].push(piece);
  }
  const thin = Math.min(1 / scale, 3 / Math.max(scale, 0.2));
  const strokes = [
    ["dim", inks.line, 1], ["later", inks.edge, 1], ["done", inks.edge, 1.2], ["flowed", inks.hue.orange, 1.8], ["lit", inks.focus, 2.4],
  ];
  for (const [kind, ink, wide] of strokes) {
    const some = kinds[kind];
    if (!some.length) continue;
    context.strokeStyle = context.fillStyle = ink;
    context.globalAlpha = kind === "later" ? LATER * 0.7 : 1;
    context.lineWidth = scale < 1 ? wide * thin : wide;
    context.beginPath();
    for (const piece of some) trace(context, piece);
    context.stroke();
    if (scale < READABLE) continue;
    context.beginPath();
    for (const piece of some) head(context, piece, kind === "flowed");
    context.fill();
  }
  context.globalAlpha = 1;
}

/** The head of an arrow: at the target, or at the source where a gradient flows back. */
function head(context, piece, back) {
  if (back ? !piece.first : !piece.last) return;
  const [x, y, tall] = back ? [piece.x0, piece.y0, 6] : [piece.x1, piece.y1, -6];
  context.moveTo(x, y);
  context.lineTo(x - 3.5, y + tall);
  context.lineTo(x + 3.5, y + tall);
  context.closePath();
}
