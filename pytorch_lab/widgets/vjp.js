// Choose the vector that goes back: two sliders, three arrows, one target. The kernel goes back.

const AXES = (size) => [
  draw("path", { class: "vjp-axis", d: `M0 ${size / 2}H${size}M${size / 2} 0V${size}` }),
  axisName(size - 4, size / 2 - 6, "x[0]", "end"),
  axisName(size / 2 + 6, 12, "x[1]", "start"),
];

function axisName(x, y, words, anchor) {
  return draw("text", { class: "vjp-name", x, y, "text-anchor": anchor }, words);
}

/** The picture of one choice. */
function drawing({ size, arrows, target }) {
  const [first, second, whole] = arrows;
  const [x, y] = target.at;
  return draw("svg", { class: "vjp-picture", viewBox: `0 0 ${size} ${size}`, "aria-hidden": "true" },
    ...AXES(size),
    draw("circle", { class: "vjp-target", cx: x, cy: y, r: 8 }),
    draw("path", { class: "vjp-arrow vjp-first", d: first }),
    draw("path", { class: "vjp-arrow vjp-second", d: second }),
    draw("path", { class: "vjp-arrow vjp-whole", d: whole }));
}

/** A short piece of an arrow's line, as the key to its name. */
function key(name) {
  return draw("svg", { class: "vjp-key", viewBox: "0 0 24 10", "aria-hidden": "true" },
    draw("path", { class: `vjp-arrow vjp-${name}`, d: "M1 5H23" }));
}

/** One slider with its name and its number. */
function slider(place, { v, reach, step }, moved) {
  const number = h("output", {}, String(v[place]));
  const input = h("input", {
    type: "range", min: -reach, max: reach, step, value: v[place],
    oninput: () => { number.textContent = input.value; moved(); },
  });
  const element = h("label", { class: "vjp-slider" }, h("code", {}, `v[${place}]`), input, number);
  return { element, value: () => Number(input.value) };
}

function render({ model, el }) {
  const state = model.get("state");
  const { root, say, close } = frame(el, { name: "Choose v, and see v @ J", kind: "piece lab-vjp" });
  const trouble = troubleBox();
  const wait = h("p", { class: "piece-wait", role: "status" });
  const kernel = patience({ model, says: (text) => { wait.textContent = text; } });
  const moved = () => kernel.request("choose", { v: sliders.map((one) => one.value()) },
    "The kernel has not answered. It may be busy, or not running.");
  const sliders = [0, 1].map((place) => slider(place, state, moved));
  const picture = h("div", {});
  const sum = h("p", { class: "vjp-sum" });
  const note = h("div", { class: "lab-note" });
  root.append(
    h("header", { class: "piece-head" }, h("span", { class: "piece-kind" }, "Choose v")),
    h("p", { class: "lab-title" }, ...prose(`Make \`v @ J\` end in the ring: \`${state.target.words}\``)),
    h("div", { class: "vjp-parts" }, picture, h("div", { class: "vjp-side" },
      ...["first", "second"].map((name, i) => h("p", {}, key(name), h("code", {}, `v[${i}]`), ` × row ${i} of J, which is `, h("code", {}, state.rows[i]))),
      ...sliders.map((one) => one.element), sum, note, wait)),
    trouble.box);
  let told = null;
  const stop = follow(model, (now) => {
    if (kernel.waiting()) kernel.settle();
    picture.replaceChildren(drawing(now));
    sum.replaceChildren(key("whole"), h("code", {}, `v @ J = ${now.says}`));
    note.className = `lab-note${now.reached ? " lab-good" : ""}`;
    note.replaceChildren(...(now.reached ? [icon("right"), " Reached."] : ["Not there yet."]));
    trouble.show(now.trouble);
    if (told !== null && told !== now.says) say(`v @ J = ${now.back}${now.reached ? ", reached" : ""}`);
    told = now.says;
  });
  return () => { stop(); kernel.settle(); close(); };
}
export default { render };
