// A training loop: the loss of every turn, and under it each order with what it did to the gradients.

const LOG = "Logarithmic";

/** A short piece of a curve's line, as the key to its name. */
function lineKey(place) {
  return draw("svg", { class: "loop-key", viewBox: "0 0 28 10", "aria-hidden": "true" },
    draw("path", { class: `loop-line loop-${place}`, d: "M1 5H27" }));
}

/** What stands still: axes and curves. */
function chart(state, scale) {
  const [width, height] = state.size;
  const [left, top, right, bottom] = state.box;
  const text = (x, y, anchor, words) => draw("text", { x, y, "text-anchor": anchor }, words);
  const svg = draw("svg", { class: "loop-chart", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (const [y, words] of scale.ticks) {
    svg.append(draw("path", { class: "loop-grid", d: `M${left} ${y}H${right}` }), text(left - 8, y + 4, "end", words));
  }
  for (const [x, words] of state.x_ticks) svg.append(text(x, bottom + 18, "middle", words));
  svg.append(draw("path", { class: "loop-axis", d: `M${left} ${top}V${bottom}H${right}` }),
    text((left + right) / 2, height - 4, "middle", "turn"));
  scale.paths.forEach((d, place) => svg.append(draw("path", { class: `loop-line loop-${place}`, d })));
  return svg;
}

/** One number of every turn as bars. */
function strip({ label, says, bars, bad }, [width, height]) {
  return h("figure", { class: "loop-strip" },
    h("figcaption", {}, h("span", {}, label), h("span", { class: "loop-says" }, says)),
    draw("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      draw("path", { class: "loop-bars", d: bars }), draw("path", { class: "loop-bad-bars", d: bad }),
      draw("path", { class: "loop-axis", d: `M0 ${height - 0.5}H${width}` })));
}

/** The failure and the remarks, each with its sign. */
function remarks({ failure, remarks: list }) {
  const all = [...(failure ? [["failure", failure]] : []), ...list];
  const sign = { failure: "wrong", problem: "warn", note: "Learned" };
  return h("ul", { class: "loop-remarks" }, all.map(([level, words]) =>
    h("li", { class: `loop-of-${level}` }, icon(sign[level]), h("span", {}, ...prose(words)))));
}

/** One order: its lines, its strips, what is to be said. */
function panel(run, place, several, state) {
  return h("section", { class: "loop-panel", "aria-label": run.name || "This order" },
    h("p", { class: "loop-name" }, several && lineKey(place), several && h("strong", {}, run.name),
      h("span", { class: run.good ? "loop-good" : "loop-odd" }, icon(run.good ? "right" : "warn"), run.finding)),
    codeBlock(run.code, run.faulty),
    run.strips.map((one) => strip(one, state.strip)),
    remarks(run));
}

/** The numbers of one turn, a row for each order. */
function table(state, several) {
  const labels = Object.keys(state.runs[0].values);
  const cells = state.runs.map(() => labels.map(() => h("td", {})));
  const element = h("div", { class: "loop-table" }, h("table", {},
    h("thead", {}, h("tr", {}, several && h("th", { scope: "col" }, "order"),
      labels.map((label) => h("th", { scope: "col" }, label)))),
    h("tbody", {}, state.runs.map((run, k) => h("tr", {},
      several && h("th", { scope: "row" }, lineKey(k), run.name), cells[k])))));
  const show = (at) => state.runs.forEach((run, k) => labels.forEach((label, i) => {
    cells[k][i].textContent = run.values[label][at];
  }));
  return { element, show };
}

/** The view of one state. */
function open(state, { root, say }) {
  const [left, top, , bottom] = state.box;
  const several = state.runs.length > 1;
  let log = state.scales.log?.first ?? false;
  const pointer = draw("path", { class: "loop-pointer", d: "" });
  const holder = h("div", {});
  const numbers = table(state, several);
  const turn = h("span", { class: "loop-turn" });
  const slider = h("input", {
    type: "range", min: 0, max: state.stops.length - 1, value: 0, "aria-label": "Turn",
    oninput: () => move(Number(slider.value)),
  });
  const toggle = state.scales.log && h("button", {
    class: "lab-button", type: "button", "aria-pressed": String(log),
    onclick: () => { log = !log; toggle.setAttribute("aria-pressed", String(log)); redraw(); say(log ? "logarithmic scale" : "linear scale"); },
  }, LOG);

  function move(to) {
    const at = Math.max(0, Math.min(state.stops.length - 1, to));
    slider.value = String(at);
    const read = state.runs.map(({ name, values }) => `${name} loss ${values.loss[at]}`.trim()).join(", ");
    slider.setAttribute("aria-valuetext", `turn ${state.stops[at]}: ${read}`);
    turn.textContent = state.stops[at].toLocaleString("en");
    numbers.show(at);
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
  }
  root.replaceChildren(
    h("header", { class: "piece-head" }, h("span", { class: "piece-kind" }, "Training loop"),
      h("span", { class: "lab-quiet" }, state.title)),
    h("p", { class: "loop-y" }, "loss"), holder,
    h("div", { class: "loop-bar" },
      h("label", { class: "loop-slider" }, h("span", {}, "turn "), turn, slider), toggle),
    numbers.element,
    h("div", { class: "loop-panels" }, state.runs.map((run, k) => panel(run, k, several, state))));
  redraw();
  move(0);
}

/** The index of the place nearest to x; `places` rise. */
function nearest(places, x) {
  let best = 0;
  places.forEach((place, k) => { if (Math.abs(place - x) < Math.abs(places[best] - x)) best = k; });
  return best;
}

function render({ model, el }) {
  const { root, say, close } = frame(el, { name: "Training loop, turn by turn", kind: "piece lab-loop" });
  const stop = follow(model, (state) => open(state, { root, say }));
  return () => { stop(); close(); };
}
export { nearest };
export default { render };
