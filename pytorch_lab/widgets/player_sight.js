// Where a reader looks: the part of the picture that the window shows, moved, zoomed and brought to
// a box. Changes `x`, `y` and `scale` of a pane; `glideBy` moves there softly.

function sight(pane, { draw, glideBy }) {
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

  /** Where the window must stand to show a box whole, moved no more than needed; or its upper end. */
  function showing({ x, y, width, height }) {
    const margin = 28 / pane.scale;
    const [w, tall] = [pane.width / pane.scale, pane.height / pane.scale];
    const along = (now, start, length, shown, whenTooLong) => (length + 2 * margin > shown
      ? whenTooLong : Math.max(start + length + margin - shown, Math.min(start - margin, now)));
    return [along(pane.x, x, width, w, x + width / 2 - w / 2), along(pane.y, y, height, tall, y - margin)];
  }

  return { home, fit, hold, zoomBy, pan, reveal, showing };
}
