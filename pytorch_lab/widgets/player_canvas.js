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
function graphCanvas({ film, scene, index, root, name, onselect, onfold, onleaf, onkey }) {
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

  /** New positions with these frames open; what `anchor` shows stays where the reader sees it. */
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
    if (before.boxes.length + pane.set.boxes.length < GLIDE_BOXES) glideFrom(before, kept, now);
    draw();
  }

  function glideFrom(before, kept, now) {
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
    glideBy((share) => {
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

  // --- where we look --------------------------------------------------------------------------------

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

  /** All in sight if letters can still be read; else the upper end, as wide as it fits. */
  function home() {
    const { width, height } = pane.set.layout;
    const whole = fitScale();
    pane.scale = whole >= 0.62 ? Math.min(whole, 1.15) : Math.max(Math.min((pane.width - 24) / width, 1), 0.62);
    pane.x = width / 2 - pane.width / 2 / pane.scale;
    pane.y = whole >= 0.62 ? height / 2 - pane.height / 2 / pane.scale : -14 / pane.scale;
    if (pane.scale * width > pane.width) pane.x = startX() - pane.width / 2 / pane.scale;
    pane.touched = false;
    draw();
  }
  const fitScale = () => Math.min((pane.width - 24) / pane.set.layout.width, (pane.height - 28) / pane.set.layout.height);
  const startX = () => {
    const top = pane.set.boxes.filter(({ open }) => !open).reduce((a, b) => (b.y < a.y ? b : a), pane.set.boxes[0]);
    return top ? top.x + top.width / 2 : 0;
  };

  function fit() {
    const { width, height } = pane.set.layout;
    pane.scale = Math.min(fitScale(), 1.15);
    pane.x = width / 2 - pane.width / 2 / pane.scale;
    pane.y = height / 2 - pane.height / 2 / pane.scale;
    draw();
  }

  /** At least a strip of the picture stays in the window. */
  function hold() {
    const { width, height } = pane.set.layout;
    const [w, tall] = [pane.width / pane.scale, pane.height / pane.scale];
    const strip = 60 / pane.scale;
    pane.x = Math.max(strip - w, Math.min(width - strip, pane.x));
    pane.y = Math.max(strip - tall, Math.min(height - strip, pane.y));
  }

  function zoomBy(factor, px = pane.width / 2, py = pane.height / 2) {
    const scale = Math.max(Math.min(fitScale(), 1) * 0.7, Math.min(MOST_SCALE, pane.scale * factor));
    pane.x += px / pane.scale - px / scale;
    pane.y += py / pane.scale - py / scale;
    pane.scale = scale;
    pane.touched = true;
    hold();
    draw();
  }

  function pan(dx, dy) {
    pane.x += dx / pane.scale;
    pane.y += dy / pane.scale;
    pane.touched = true;
    hold();
    draw();
  }

  /** The nearest place from which a window shows no more than a strip beside the picture. */
  function within(place, length, shown) {
    const [low, high] = [-14 / pane.scale, length - shown + 14 / pane.scale];
    return low > high ? (low + high) / 2 : Math.max(low, Math.min(high, place));
  }

  /** Bring the box that stands for an item in sight, moving no more than needed. */
  function reveal(item, { centre = false } = {}) {
    const box = item >= 0 && pane.set ? pane.set.boxes[pane.set.boxOf.get(pane.set.stand[item])] : null;
    if (!box || !pane.width) return;
    const [w, tall] = [pane.width / pane.scale, pane.height / pane.scale];
    const margin = 28 / pane.scale;
    const inside = box.x - margin >= pane.x && box.x + box.width + margin <= pane.x + w &&
      box.y - margin >= pane.y && box.y + box.height + margin <= pane.y + tall;
    if (inside && !centre) return;
    const from = [pane.x, pane.y];
    const fits = box.x - margin >= pane.x && box.x + box.width + margin <= pane.x + w;
    const { width, height } = pane.set.layout;
    const to = [
      within(fits ? pane.x : box.x + box.width / 2 - w / 2, width, w),
      within(box.y + box.height / 2 - tall / 2, height, tall),
    ];
    glideBy((share) => {
      pane.x = from[0] + (to[0] - from[0]) * share;
      pane.y = from[1] + (to[1] - from[1]) * share;
    });
  }

  // --- pointer --------------------------------------------------------------------------------------

  function boxAt(px, py) {
    const [x, y] = [pane.x + px / pane.scale, pane.y + py / pane.scale];
    for (let i = pane.set.boxes.length - 1; i >= 0; i -= 1) {
      const box = pane.set.boxes[i];
      const tall = box.open ? FRAME_HEAD : box.height; // of an open frame its head alone
      if (x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + tall) return box;
    }
    return null;
  }

  const spot = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  let grip = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    grip = { x: event.clientX, y: event.clientY, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (grip) {
      const [dx, dy] = [event.clientX - grip.x, event.clientY - grip.y];
      if (grip.moved || Math.hypot(dx, dy) > 4) {
        pan(-dx, -dy);
        Object.assign(grip, { x: event.clientX, y: event.clientY, moved: true });
        canvas.classList.add("lab-player-held");
      }
      return;
    }
    hoverAt(...spot(event));
  });
  canvas.addEventListener("pointerup", (event) => {
    const click = grip && !grip.moved;
    grip = null;
    canvas.classList.remove("lab-player-held");
    if (click) clickAt(...spot(event));
  });
  canvas.addEventListener("pointercancel", () => { grip = null; });
  canvas.addEventListener("pointerleave", () => hoverAt(-1, -1));
  canvas.addEventListener("dblclick", (event) => {
    const box = boxAt(...spot(event));
    if (box && isFrame(box) && !onSign(box, ...spot(event))) onfold(box.item);
  });
  // a wheel over the picture scrolls the notebook; with Ctrl (or a pinch) it zooms, and once the
  // reader has clicked into the picture it pans
  element.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) {
      zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0022)), ...spot(event));
    } else if (element.contains(document.activeElement)) pan(event.deltaX, event.deltaY);
    else return;
    event.preventDefault();
  }, { passive: false });

  function hoverAt(px, py) {
    const box = px < 0 ? null : boxAt(px, py);
    const hover = box ? box.item : -1;
    canvas.style.cursor = box ? "pointer" : "";
    if (hover === pane.hover) return;
    pane.hover = hover;
    tip.hidden = !box || pane.scale > 0.55;
    if (!tip.hidden) {
      tip.textContent = [box.look.title, box.look.sub, box.look.shape].filter(Boolean).join("  ");
      tip.style.transform = `translate(${Math.min(px + 12, pane.width - 160)}px, ${Math.max(py - 30, 4)}px)`;
    }
    draw();
  }

  const isFrame = (box) => scene.ends[box.item] > box.item + 1;
  const onSign = (box, px) => isFrame(box) && px < (box.x - pane.x + SIGN_WIDTH) * pane.scale;

  function clickAt(px, py) {
    const box = boxAt(px, py);
    cursor.focus({ preventScroll: true });
    const leaf = box ? chipAt(box, pane.x + px / pane.scale, pane.y + py / pane.scale) : -1;
    if (leaf >= 0) onleaf(leaf);
    else if (box && onSign(box, px, py)) {
      pane.focus = box.item;
      onfold(box.item);
    } else {
      pane.focus = box ? box.item : -1;
      onselect(box ? box.item : -1);
    }
    draw();
  }

  // --- keyboard and screen reader -------------------------------------------------------------------

  function placeCursor() {
    const box = pane.set.boxes[pane.set.boxOf.get(pane.focus)];
    cursor.classList.toggle("lab-player-on", Boolean(box));
    if (!box) {
      cursor.removeAttribute("style");
      if (cursor.getAttribute("aria-label") !== name) cursor.setAttribute("aria-label", name);
      cursor.removeAttribute("aria-expanded");
      return;
    }
    const [left, top] = [(box.x - pane.x) * pane.scale, (box.y - pane.y) * pane.scale];
    cursor.style.transform = `translate(${left.toFixed(1)}px, ${top.toFixed(1)}px)`;
    cursor.style.width = `${(box.width * pane.scale).toFixed(1)}px`;
    cursor.style.height = `${(box.height * pane.scale).toFixed(1)}px`;
    const label = sayBox(pane, box);
    if (cursor.getAttribute("aria-label") !== label) cursor.setAttribute("aria-label", label);
    if (isFrame(box)) cursor.setAttribute("aria-expanded", String(box.open));
    else cursor.removeAttribute("aria-expanded");
  }

  cursor.addEventListener("keydown", (event) => {
    const { boxes, boxOf } = pane.set;
    const at = boxOf.get(pane.focus);
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      const to = at === undefined ? (by > 0 ? 0 : boxes.length - 1) : Math.max(0, Math.min(boxes.length - 1, at + by));
      pane.focus = boxes[to].item;
      reveal(pane.focus);
      onselect(pane.focus);
    } else if (event.key === "Enter" && at !== undefined) {
      if (isFrame(boxes[at])) onfold(pane.focus);
      else onselect(pane.focus);
    } else if (event.key === "Escape") {
      pane.focus = -1;
      onselect(-1);
    } else if (event.key === "+" || event.key === "-") zoomBy(event.key === "+" ? 1.25 : 0.8);
    else if (event.key === "0") fit();
    else {
      onkey(event);
      return;
    }
    event.preventDefault();
    placeCursor(); // at once: a screen reader speaks before the next frame
    draw();
  });

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
    draw, paintNow, arrange, home, fit, zoomBy, pan, reveal, recolour, relight,
    close() {
      sized.disconnect();
      themed.disconnect();
      cancelAnimationFrame(waiting);
    },
  });
}
