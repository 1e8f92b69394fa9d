// The learning rate of every step: lines, the stretches that are odd, and a pointer to read them.

const LOG = "Logarithmic";

/** A short piece of a curve's line, as the key to its name. */
function lineKey(place) {
  return draw("svg", { class: "lr-key", viewBox: "0 0 28 10", "aria-hidden": "true" },
    draw("path", { class: `lr-line lr-${place}`, d: "M1 5H27" }));
}

/** What stands still: axes, shaded stretches, curves. */
function chart(state, scale) {
  const [width, height] = state.size;
  const [left, top, right, bottom] = state.box;
  const text = (x, y, anchor, words) => draw("text", { x, y, "text-anchor": anchor }, words);
  const svg = draw("svg", { class: "lr-chart", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (const [start, end] of state.shades) {
    svg.append(draw("rect", { class: "lr-odd", x: start, y: top, width: Math.max(end - start, 2), height: bottom - top }));
  }
  for (const [y, words] of scale.ticks) {
    svg.append(draw("path", { class: "lr-grid", d: `M${left} ${y}H${right}` }), text(left - 8, y + 4, "end", words));
  }
  for (const [x, words] of state.x_ticks) svg.append(text(x, bottom + 18, "middle", words));
  svg.append(draw("path", { class: "lr-axis", d: `M${left} ${top}V${bottom}H${right}` }),
    draw("text", { class: "lr-of", x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, "step"));
  scale.paths.forEach((d, place) => svg.append(draw("path", { class: `lr-line lr-${place}`, d })));
  return svg;
}

/** The remarks, the troubles first, each with its sign. */
function remarks(list) {
  return h("ul", { class: "lr-remarks" }, list.map(([level, words]) =>
    h("li", { class: level === "problem" ? "lr-problem" : "" },
      icon(level === "problem" ? "warn" : "Learned"), h("span", {}, ...prose(words)))));
}

/** The view of one state. */
function open(state, { root, say }) {
  const [left, top, , bottom] = state.box;
  let log = false;
  let at = 0;
  const pointer = draw("path", { class: "lr-pointer", d: "" });
  const holder = h("div", { class: "lr-holder" });
  const values = state.lines.map(() => h("span", { class: "lr-value" }));
  const step = h("span", { class: "lr-step" });
  const slider = h("input", {
    type: "range", min: 0, max: state.stops.length - 1, value: 0, "aria-label": "Step",
    oninput: () => move(Number(slider.value)),
  });
  const toggle = state.scales.log && h("button", {
    class: "lab-button", type: "button", "aria-pressed": "false",
    onclick: () => { log = !log; toggle.setAttribute("aria-pressed", String(log)); redraw(); },
  }, LOG);

  function move(to) {
    at = Math.max(0, Math.min(state.stops.length - 1, to));
    slider.value = String(at);
    const read = state.lines.map(({ name, values: all }) => `${name} ${all[at]}`).join(", ");
    slider.setAttribute("aria-valuetext", `step ${state.stops[at]}: ${read}`);
    step.textContent = state.stops[at].toLocaleString("en");
    state.lines.forEach(({ values: all }, i) => { values[i].textContent = all[at]; });
    pointer.setAttribute("d", `M${state.places[at]} ${top}V${bottom}`);
  }
  function redraw() {
    const picture = chart(state, state.scales[log ? "log" : "linear"]);
    picture.append(pointer);
    picture.addEventListener("pointermove", (event) => {
      const { left: edge, width } = picture.getBoundingClientRect();
      const x = ((event.clientX - edge) / width) * state.size[0];
      if (x >= left - 4) move(nearest(state.places, x));
    });
    holder.replaceChildren(picture);
    say(log ? "logarithmic scale" : "");
  }
  root.replaceChildren(
    h("header", { class: "piece-head" }, h("span", { class: "piece-kind" }, "Learning rate")),
    h("p", { class: "lab-title" }, h("code", {}, state.title)),
    h("p", { class: `lr-finding ${state.good ? "lr-good" : "lr-bad"}` },
      icon(state.good ? "right" : "warn"), h("strong", {}, state.finding)),
    holder,
    h("div", { class: "lr-bar" },
      h("label", { class: "lr-slider" }, h("span", {}, "step "), step, slider), toggle),
    h("ul", { class: "lr-legend" }, state.lines.map(({ name }, i) =>
      h("li", {}, lineKey(i), h("span", { class: "lr-name" }, name), values[i])),
      state.left_out > 0 && h("li", { class: "lab-quiet" }, `and ${state.left_out} more curves`)),
    remarks(state.remarks));
  redraw();
  move(0);
}

/** The index of the place nearest to x; `places` rise. */
function nearest(places, x) {
  let low = 0;
  let high = places.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && x - places[low - 1] < places[low] - x ? low - 1 : low;
}

function render({ model, el }) {
  const { root, say, close } = frame(el, { name: "Learning rate over the steps", kind: "piece lab-lr" });
  const stop = follow(model, (state) => open(state, { root, say }));
  return () => { stop(); close(); };
}
export { nearest };
export default { render };
