// How boxes, frames and edges are painted, on a canvas or into an SVG: blue is forward, orange is
// backward, pale has not run yet. Nothing here keeps state; what is in sight is all that is drawn.

const FRAME_HEAD = 24; // the upper part of an open frame that can be clicked
const SIGN_WIDTH = 18; // where the fold sign of a box stands
const READABLE = 0.42; // below this scale boxes are blocks without words
const TITLE_FONT = `600 12px ${CANVAS_MONO}`;
const SUB_FONT = `10.5px ${CANVAS_MONO}`;
const CHIP_FONT = `9.5px ${CANVAS_MONO}`;
const LATER = 0.5; // how strongly what has not run yet is painted

/** Everything in sight of a pane. */
function paintScene(context, pane) {
  const { boxes, edges, shelves, runs, moving } = pane.set;
  const sight = {
    x0: pane.x, y0: pane.y, x1: pane.x + pane.width / pane.scale, y1: pane.y + pane.height / pane.scale,
  };
  const inSight = ({ x, y, width, height }) =>
    x < sight.x1 + 8 && x + width > sight.x0 - 8 && y < sight.y1 + 8 && y + height > sight.y0 - 8;
  const shown = (moving ? boxes : between(boxes, shelves, sight.y0, sight.y1)).filter(inSight);
  const pieces = moving || pane.scale < LEAST_WITH_EDGES ? []
    : between(edges, runs, sight.y0, sight.y1).filter(inSight);
  if (pane.scale < READABLE) {
    for (const box of shown) if (box.open && box.height * pane.scale > 4) paintFrame(context, pane, box);
    paintEdges(context, pane, pieces);
    paintSmall(context, pane, shown);
    return;
  }
  for (const box of shown) if (box.open) paintFrame(context, pane, box);
  paintEdges(context, pane, pieces);
  for (const box of shown) if (box.open) paintName(context, pane, box);
  for (const box of shown) if (!box.open) paintBox(context, pane, box);
}

const dimmed = (pane, item) => pane.litBoxes !== null && pane.litBoxes !== undefined && !pane.litBoxes.has(item);

/** Where the run is with a box: how many of its leaves have run forward, and how many back. */
function progress({ about }, at, forward) {
  const born = countUpTo(about.born, at);
  const back = at >= forward ? countUpTo(about.back, at) : 0;
  return { born, back, began: born > 0 || about.born.length === 0 };
}

function paintFrame(context, pane, box) {
  const { inks } = pane;
  const { began } = progress(box, pane.at, pane.film.forward);
  context.globalAlpha = 1;
  roundBox(context, box, 8);
  context.fillStyle = inks.shade;
  context.globalAlpha = 0.6;
  context.fill();
  context.globalAlpha = 1;
  const chosen = pane.selected === box.item;
  context.strokeStyle = chosen ? inks.focus : box.item === pane.hover ? inks.edge : inks.line;
  context.lineWidth = (chosen ? 2 : 1) / Math.max(pane.scale, 0.3);
  context.globalAlpha = began ? 1 : LATER;
  context.stroke();
  context.globalAlpha = 1;
}

/** The name of an open frame, over the edges that pass below it. */
function paintName(context, pane, box) {
  const { inks } = pane;
  paintSign(context, box.x + 8, box.y + 12, true, inks.quiet);
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillStyle = inks.ink;
  box.fitted ??= fitFrame(context, box);
  const [title, sub, taken] = box.fitted;
  context.globalAlpha = 0.8;
  context.fillStyle = inks.shade;
  context.fillRect(box.x + 18, box.y + 5, taken + (sub ? box.fitted[3] + 14 : 6), 16);
  context.globalAlpha = 1;
  context.fillStyle = inks.ink;
  context.font = TITLE_FONT;
  context.fillText(title, box.x + 20, box.y + 12.5);
  if (sub) {
    context.fillStyle = inks.quiet;
    context.font = SUB_FONT;
    context.fillText(sub, box.x + 28 + taken, box.y + 12.5);
  }
}

function fitFrame(context, box) {
  context.font = TITLE_FONT;
  const title = fitText(context, box.look.title, box.width - 28);
  const taken = context.measureText(title).width;
  context.font = SUB_FONT;
  const cut = box.look.sub ? fitText(context, box.look.sub, box.width - taken - 40) : "";
  const sub = cut === box.look.sub || cut.length > 4 ? cut : ""; // "n…" says nothing
  return [title, sub, taken, sub ? context.measureText(sub).width : 0];
}

/** The little triangle of what folds: down when open. */
function paintSign(context, x, y, open, ink) {
  context.fillStyle = ink;
  context.beginPath();
  if (open) {
    context.moveTo(x - 1, y - 2.5);
    context.lineTo(x + 7, y - 2.5);
    context.lineTo(x + 3, y + 3);
  } else {
    context.moveTo(x, y - 3.5);
    context.lineTo(x + 4.5, y);
    context.lineTo(x, y + 3.5);
  }
  context.fill();
}

function roundBox(context, { x, y, width, height }, radius) {
  context.beginPath();
  context.roundRect(x, y, width, height, radius);
}

/** The words of a box, cut to its width: title, sub, shape, and the chips in a row below. */
function fitWords(context, { look, width }) {
  const fit = (text, font, room) => {
    context.font = font;
    const fitted = text && fitText(context, text, room);
    return fitted ? { text: fitted, font, wide: context.measureText(fitted).width } : null;
  };
  const small = [look.sub, look.shape].map((text) => fit(text, SUB_FONT, width - 10)).filter(Boolean);
  const share = look.chips.length ? (width - 8) / look.chips.length : 0;
  const chips = look.chips.map((name) => ({ name, ...fit(name, CHIP_FONT, Math.max(share - 12, 30)) }));
  return { title: fit(look.title, TITLE_FONT, width - 14), small, chips };
}

const LEAVES = new Set(["op", "node", "input", "error"]);
const isFolded = ({ look }) => !LEAVES.has(look.kind);
const SHEETS = new Set(["repeat", "loop", "range"]); // folded, they look like several

function paintBox(context, pane, box) {
  const { inks, at, film } = pane;
  const { born, back, began } = progress(box, at, film.forward);
  const now = box.item === pane.now;
  const lit = pane.litBoxes?.has(box.item);
  const alpha = (dimmed(pane, box.item) ? 0.32 : 1) * (began || lit ? 1 : LATER);
  const folded = isFolded(box);
  box.fitted ??= fitWords(context, box);
  context.globalAlpha = alpha;
  let body = box;
  if (SHEETS.has(box.look.kind)) {
    body = { ...box, width: box.width - 6, height: box.height - 6 };
    for (const by of [6, 3]) paintSheet(context, pane, { ...body, x: box.x + by, y: box.y + by });
  }
  roundBox(context, body, roundness(box.look, folded));
  context.fillStyle = inks.paper;
  context.fill();
  if (box.paint && began) {
    context.globalAlpha = alpha * (0.08 + 0.3 * box.paint.strength);
    context.fillStyle = inks.hue[box.paint.hue];
    context.fill();
  }
  context.globalAlpha = now ? 1 : alpha;
  paintBorder(context, pane, body, { back, now, lit });
  if (box.paint && began && box.look.kind !== "input") {
    context.fillStyle = inks.hue[box.paint.hue];
    context.fillRect(body.x + 1, body.y + 6, 3, body.height - 12);
  }
  if (folded) {
    paintSign(context, box.x + 6, box.y + 12, false, inks.quiet);
    paintProgress(context, pane, body, born, back);
  }
  paintWords(context, pane, body);
  if (began) paintKept(context, pane, body);
  context.globalAlpha = 1;
}

const roundness = ({ kind, marks }, folded) => (kind === "input" || marks.includes("leaf") ? 14 : folded ? 7 : 4);

function paintSheet(context, { inks }, sheet) {
  roundBox(context, sheet, 7);
  context.fillStyle = inks.shade;
  context.fill();
  context.strokeStyle = inks.edge;
  context.lineWidth = 0.8;
  context.stroke();
}

function paintBorder(context, { inks, selected, hover, scale, only }, box, { back, now, lit }) {
  const { marks } = box.look;
  const lost = marks.includes("error");
  context.strokeStyle = lost ? inks.bad : now ? (back ? inks.hue.orange : inks.focus)
    : selected === box.item || lit ? inks.focus : back ? inks.hue.orange
    : hover === box.item ? inks.ink : inks.edge;
  context.lineWidth = now ? 3 : selected === box.item || lost || lit ? 2 : back ? 1.6 : 1;
  const apart = marks.includes("no_grad") || marks.includes("inference") || marks.includes("detach");
  context.setLineDash(apart ? [5, 3] : []);
  context.stroke();
  context.setLineDash([]);
  if (only?.(box)) {
    roundBox(context, { x: box.x - 4, y: box.y - 4, width: box.width + 8, height: box.height + 8 }, 8);
    context.strokeStyle = inks.hue.pink;
    context.lineWidth = 2 / Math.max(Math.min(scale, 1), 0.5);
    context.stroke();
  }
}

function paintWords(context, pane, box) {
  const { inks } = pane;
  const { title, small, chips } = box.fitted;
  const middle = box.x + box.width / 2;
  let y = box.y + 17;
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  context.fillStyle = box.look.marks.includes("error") ? inks.bad : inks.ink;
  // beside the fold sign, where the box is narrow
  if (title) put(context, title, middle + (isFolded(box) && title.wide > box.width - 32 ? 4 : 0), y);
  for (const line of small) {
    context.fillStyle = inks.quiet;
    put(context, line, middle, y += 14);
  }
  if (chips.length) paintChips(context, pane, box, middle, y + 8);
}

function put(context, { text, font }, x, y) {
  context.font = font;
  context.fillText(text, x, y);
}

function paintChips(context, { inks, film, at }, { fitted: { chips }, about }, middle, y) {
  const total = chips.reduce((sum, { wide }) => sum + (wide ?? 0) + 14, -4);
  let x = middle - total / 2;
  for (const chip of chips) {
    if (!chip.text) continue;
    chip.node ??= leafOf(film, about, chip.name);
    const { ran } = film.nodes[chip.node] ?? { ran: -1 };
    const reached = ran >= 0 && ran <= at;
    Object.assign(chip, { x, y });
    context.beginPath();
    context.roundRect(x, y, chip.wide + 10, 14, 7);
    context.fillStyle = inks.paper;
    context.fill();
    context.strokeStyle = reached ? inks.hue.orange : inks.edge;
    context.lineWidth = reached ? 1.6 : 0.8;
    context.stroke();
    context.fillStyle = reached ? inks.ink : inks.quiet;
    put(context, chip, x + chip.wide / 2 + 5, y + 10.3);
    x += chip.wide + 14;
  }
}

/** The leaf whose chip lies at a place of the picture; -1 without. */
function chipAt({ fitted }, x, y) {
  const chip = fitted?.chips?.find((each) => x >= each.x && x <= each.x + each.wide + 10 && y >= each.y && y <= each.y + 14);
  return chip?.node ?? -1;
}

/** The AccumulateGrad of the parameter that a chip names by the end of its path; -1 without. */
function leafOf(film, { ops, nodes }, name) {
  const isIt = (path) => path === name || path?.endsWith(`.${name}`);
  for (const op of ops) {
    for (const place of film.ops[op].inputs) {
      const value = film.values[place];
      if (value.leaf && value.node >= 0 && isIt(value.name)) return value.node;
    }
  }
  for (const node of nodes) {
    const leaf = film.nodes[node].next.find((next) => isIt(film.nodes[next].parameter));
    if (leaf !== undefined) return leaf;
  }
  return -1;
}

/** How much of a folded box has run: blue from the left, orange back from the right. */
function paintProgress(context, { inks }, { x, y, width, height, about }, born, back) {
  const wide = width - 12;
  if (born && born < about.born.length) {
    context.fillStyle = inks.focus;
    context.fillRect(x + 6, y + height - 4, wide * born / about.born.length, 3);
  }
  if (back) {
    const share = wide * back / about.back.length;
    context.fillStyle = inks.hue.orange;
    context.fillRect(x + 6 + wide - share, y + height - 4, share, 3);
  }
}

/** A small square while tensors are kept for backward; hollow once they are freed. */
function paintKept(context, { at, film, inks }, box) {
  const { about } = box;
  about.saves ??= savesAny(film, about);
  if (!about.saves) return;
  const held = heldBy(film, about, at) > 0;
  const [x, y] = [box.x + box.width - 10, box.y + box.height - 10];
  context.lineWidth = 1;
  if (held) {
    context.fillStyle = inks.good;
    context.fillRect(x, y, 6, 6);
  } else {
    context.strokeStyle = inks.good;
    context.strokeRect(x + 0.5, y + 0.5, 5, 5);
  }
}

/** Boxes as blocks, for scales at which nothing can be read; those under one another once. */
function paintSmall(context, pane, boxes) {
  const { inks, at, scale } = pane;
  const least = 0.8 / scale;
  let [style, row, column] = ["", NaN, NaN];
  for (const box of boxes) {
    if (box.open) continue;
    const dim = dimmed(pane, box.item);
    const began = !box.about.born.length || box.about.born[0] <= at;
    const back = at >= pane.film.forward && box.about.back.length > 0 && box.about.back[0] <= at;
    const wanted = pane.litBoxes?.has(box.item) ? inks.focus : !began || dim ? inks.line : back ? inks.hue.orange : box.paint ? inks.hue[box.paint.hue] : inks.edge;
    const [y, x] = [Math.round(box.y * scale * 2), Math.round(box.x * scale)];
    if (y === row && x === column && wanted === style) continue;
    [row, column] = [y, x];
    if (wanted !== style) context.fillStyle = style = wanted;
    context.fillRect(box.x, box.y, Math.max(box.width, least), Math.max(box.height, least));
  }
  for (const item of [pane.selected, pane.now]) {
    const box = pane.set.boxes[pane.set.boxOf.get(item)];
    if (!box) continue;
    context.strokeStyle = item === pane.now && at >= pane.film.forward ? inks.hue.orange : inks.focus;
    context.lineWidth = 3 / scale;
    context.strokeRect(box.x - 2 / scale, box.y - 2 / scale, box.width + 4 / scale, box.height + 4 / scale);
  }
}
