// The picture of the graph: a canvas that draws what is in sight, and over it the few elements that
// a keyboard and a screen reader need. Positions come from graph_layout.js once per folding; a step
// of the run only changes how boxes and edges are painted.

const CANVAS_MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
const LEAST_EDGE = 1.5; // pixels; shorter edges are left out
const LEAST_WITH_EDGES = 0.012; // the scale below which edges say nothing
const GLIDE_MS = 240;
const GLIDE_BOXES = 600; // more than that jump
const MOST_SCALE = 3;
const INKS = ["ink", "quiet", "paper", "shade", "line", "edge", "blue", "bad", "good", "focus"];
const HUES = ["blue", "orange", "green", "pink", "sky", "violet", "yellow", "grey"];

/** The colours of the theme as canvas wants them: computed, without variables. */
function readInks(root) {
  const probe = root.ownerDocument.createElement("span");
  root.append(probe);
  const read = (name) => {
    probe.style.color = `var(--lab-${name})`;
    return getComputedStyle(probe).color;
  };
  const inks = Object.fromEntries(INKS.map((name) => [name, read(name)]));
  inks.hue = Object.fromEntries(HUES.map((name) => [name, read(`hue-${name}`)]));
  probe.remove();
  return inks;
}

/** `text` cut to a width with an ellipsis, as the context's font measures it. */
function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : "";
}

/**
 * The state of the picture that is drawn, changed by its owner and drawn with `draw()`:
 * `at`, the step; `lit`, the items that are lit, or null; `selected`, an item or -1.
 */
function graphCanvas({ film, scene, index, root, name, ...handlers }) {
  const canvas = h("canvas", { class: "lab-player-canvas", "aria-hidden": "true" });
  const cursor = h("div", {
    class: "lab-player-cursor", tabindex: "0", role: "button", "aria-label": name,
    "aria-roledescription": "box of the graph",
  });
  const tip = h("div", { class: "lab-player-tip", hidden: true });
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const element = h("div", { class: "lab-player-graph" }, canvas, cursor, tip);
  const pane = {
    element, scene, film, index, open: new Set(scene.open), set: null,
    at: film.steps.length - 1, lit: null, selected: -1, hover: -1, only: null, colour: null,
    x: 0, y: 0, scale: 1, width: 0, height: 0, focus: -1, inks: null, touched: false,
  };
  const context = canvas.getContext("2d");
  let waiting = 0;
  let glide = null;

  Object.assign(pane, { draw }, sight(pane, { draw, glideBy }));
  const { home, hold } = pane;

  function draw() {
    waiting ||= requestAnimationFrame(() => {
      waiting = 0;
      paintNow();
    });
  }

  function paintNow() {
    if (!pane.width || !pane.set) return;
    pane.inks ??= readInks(root);
    if (glide) moveOn();
    const ratio = pane.ratio;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = pane.inks.paper;
    context.fillRect(0, 0, canvas.width, canvas.height);
    const zoom = pane.scale * ratio;
    context.setTransform(zoom, 0, 0, zoom, -pane.x * zoom, -pane.y * zoom);
    paintScene(context, pane);
    placeCursor();
    corner.paint();
  }

  function moveOn() {
    const share = Math.min((performance.now() - glide.start) / GLIDE_MS, 1);
    const eased = 1 - (1 - share) ** 3;
    glide.step(eased);
    if (share < 1) draw();
    else glide = null;
  }

  function glideBy(step) {
    if (still.matches) {
      glide = null;
      step(1);
    } else glide = { start: performance.now(), step };
    draw();
  }

  /**
   * New positions with these frames open; what `anchor` shows stays where the reader sees it, unless
   * a part of it would then lie outside of the window.
   */
  function arrange(open, anchor = -1) {
    const before = pane.set;
    const kept = before && anchor >= 0 ? before.boxes[before.boxOf.get(anchor)] : null;
    pane.open = open;
    pane.set = stageSet(scene, film, index, layoutScene(scene, open), open);
    recolour();
    relight();
    if (!before) return;
    const now = pane.set.boxes[pane.set.boxOf.get(anchor)];
    if (kept && now) {
      // the upper edge's middle stays: there is the sign that was clicked
      pane.x += now.x + now.width / 2 - (kept.x + kept.width / 2);
      pane.y += now.y - kept.y;
    }
    hold();
    const aim = kept && now ? pane.showing(now) : [pane.x, pane.y];
    if (before.boxes.length + pane.set.boxes.length < GLIDE_BOXES) glideFrom(before, kept, now, aim);
    else [pane.x, pane.y] = aim;
    draw();
  }

  function glideFrom(before, kept, now, aim) {
    const shift = kept && now
      ? [now.x + now.width / 2 - kept.x - kept.width / 2, now.y - kept.y] : [0, 0];
    const moves = [];
    for (const box of pane.set.boxes) {
      const old = before.boxes[before.boxOf.get(box.item)];
      if (!old) continue;
      const from = { x: old.x + shift[0], y: old.y + shift[1], width: old.width, height: old.height };
      moves.push([box, from, { x: box.x, y: box.y, width: box.width, height: box.height }]);
    }
    const { set } = pane;
    const start = [pane.x, pane.y];
    glideBy((share) => {
      [pane.x, pane.y] = start.map((from, i) => from + (aim[i] - from) * share);
      set.moving = share < 1;
      for (const [box, from, to] of moves) {
        for (const key of ["x", "y", "width", "height"]) box[key] = from[key] + (to[key] - from[key]) * share;
        box.fitted = null; // words are cut to the width of now
      }
    });
  }

  function recolour() {
    if (pane.colour) for (const box of pane.set.boxes) box.paint = box.open ? null : pane.colour.of(box.item);
  }

  function relight() {
    pane.litBoxes = null;
    if (pane.lit) {
      pane.litBoxes = new Set();
      for (const item of pane.lit) if (item >= 0) pane.litBoxes.add(pane.set.stand[item]);
    }
    pane.litPieces = pane.litBoxes && new Set(pane.set.edges.filter(({ ways }) => {
      for (let i = 0; i < ways.length; i += 2) {
        if (pane.litBoxes.has(ways[i]) && pane.litBoxes.has(ways[i + 1])) return true;
      }
      return false;
    }));
  }

  function resize() {
    const { clientWidth, clientHeight } = element;
    if (!clientWidth || !clientHeight) return;
    const first = !pane.width;
    [pane.width, pane.height] = [clientWidth, clientHeight];
    pane.ratio = Math.min(globalThis.devicePixelRatio || 1, 2);
    canvas.width = Math.round(clientWidth * pane.ratio);
    canvas.height = Math.round(clientHeight * pane.ratio);
    if (first || !pane.touched) home();
    else hold();
    paintNow();
  }

  const { placeCursor } = hands(pane, { canvas, cursor, tip, name }, handlers);
  const corner = overview(pane, (x, y) => {
    pane.x = x - pane.width / 2 / pane.scale;
    pane.y = y - pane.height / 2 / pane.scale;
    pane.touched = true;
    hold();
    draw();
  });
  element.append(corner.map);
  const sized = new ResizeObserver(resize);
  sized.observe(element);
  const themed = new MutationObserver(() => {
    pane.inks = null;
    draw();
  });
  for (const each of [document.documentElement, document.body]) {
    themed.observe(each, { attributes: true, attributeFilter: ["class", "theme", "data-jp-theme-light", "data-vscode-theme-kind"] });
  }
  return Object.assign(pane, {
    paintNow, arrange, recolour, relight,
    close() {
      sized.disconnect();
      themed.disconnect();
      cancelAnimationFrame(waiting);
    },
  });
}
