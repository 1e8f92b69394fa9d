// The overview: all of a large graph in a corner, with a frame around what is in sight; and the words
// by which a screen reader knows a box.

const [MAP_WIDTH, MAP_HEIGHT] = [110, 130]; // pixels at most

/** The map of a pane: `paint()` draws it where the graph is larger than the window. */
function overview(pane, moved) {
  const map = h("canvas", { class: "lab-player-map", "aria-hidden": "true", hidden: true });
  const context = map.getContext("2d");
  let scale = 1;
  let kept = null; // the boxes, drawn once per layout

  function paint() {
    const { layout, boxes, boxOf } = pane.set;
    const [wide, tall] = [pane.width / pane.scale, pane.height / pane.scale];
    map.hidden = (layout.width <= wide * 1.15 && layout.height <= tall * 1.15) || pane.width < 260;
    if (map.hidden) return;
    scale = Math.min(MAP_WIDTH / layout.width, MAP_HEIGHT / layout.height);
    const size = [Math.max(layout.width * scale, 14), Math.max(layout.height * scale, 14)];
    const key = `${size} ${pane.ratio} ${pane.inks.paper}`;
    const unit = scale * pane.ratio;
    if (kept?.set !== pane.set || kept.key !== key || kept.colour !== pane.colour) {
      kept = { set: pane.set, key, colour: pane.colour, image: document.createElement("canvas") };
      for (const each of [map, kept.image]) [each.width, each.height] = size.map((length) => Math.ceil(length * pane.ratio));
      [map.style.width, map.style.height] = size.map((length) => `${length}px`);
      paintBlocks(kept.image.getContext("2d"), boxes, unit, pane.inks);
    }
    context.clearRect(0, 0, map.width, map.height);
    context.drawImage(kept.image, 0, 0);
    const now = boxes[boxOf.get(pane.now)];
    if (now) {
      context.fillStyle = pane.inks.focus;
      context.fillRect(now.x * unit - 1, now.y * unit - 1, Math.max(now.width * unit, 3) + 2, Math.max(now.height * unit, 2) + 2);
    }
    context.strokeStyle = pane.inks.ink;
    context.lineWidth = 1.5 * pane.ratio;
    context.strokeRect(
      Math.max(pane.x * unit, 1), Math.max(pane.y * unit, 1),
      Math.min(wide * unit, map.width - 2), Math.min(tall * unit, map.height - 2));
  }

  function jump(event) {
    const { left, top } = map.getBoundingClientRect();
    moved((event.clientX - left) / scale, (event.clientY - top) / scale);
  }
  map.addEventListener("pointerdown", (event) => {
    map.setPointerCapture(event.pointerId);
    jump(event);
  });
  map.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });
  return { map, paint };
}

/** The boxes of the map. */
function paintBlocks(context, boxes, unit, inks) {
  context.fillStyle = inks.paper;
  context.globalAlpha = 0.9;
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  context.globalAlpha = 1;
  for (const box of boxes) {
    if (box.open) {
      context.strokeStyle = inks.line;
      context.strokeRect(box.x * unit, box.y * unit, box.width * unit, box.height * unit);
    } else {
      context.fillStyle = box.paint ? inks.hue[box.paint.hue] : inks.edge;
      context.fillRect(box.x * unit, box.y * unit, Math.max(box.width * unit, 1), Math.max(box.height * unit, 1));
    }
  }
}

/** What a screen reader says of a box. */
function sayBox({ at, film, selected }, box) {
  const { look, about } = box;
  const chips = look.chips.length ? `, with ${look.chips.join(" and ")}` : "";
  const size = about.ops.length > 1 ? `, ${about.ops.length} operations` : "";
  const ran = !about.born.length || about.born[0] <= at ? "" : ", not yet run";
  const back = about.back.length && about.back[0] <= at && at >= film.forward ? ", backward has passed" : "";
  return `${[look.title, look.sub, look.shape].filter(Boolean).join(" ")}${chips}${size}${ran}${back}${selected === box.item ? ", selected" : ""}`;
}
