// How a reader takes hold of the picture: pointer and wheel, and a cursor that goes from box to box
// for the keyboard and for a screen reader.

/** Listens to the canvas and to the cursor above it. @returns {{placeCursor: () => void}} */
function hands(pane, { canvas, cursor, tip, name }, { onselect, onfold, onleaf, onkey }) {
  const { element, scene, draw, zoomBy, pan, fit, reveal } = pane;

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
  return { placeCursor };
}
