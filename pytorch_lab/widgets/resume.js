// The ways to resume: losses laid over those of the uninterrupted run, and a bar for each distance.

/** What stands still, with the losses of one way over it. */
function lossChart(state, row) {
  const [width, height] = state.size;
  const [left, top, right, bottom] = state.box;
  const text = (x, y, anchor, words) => draw("text", { x, y, "text-anchor": anchor }, words);
  const line = (name, d) => draw("path", { class: name, d });
  return draw("svg", {
    class: "resume-chart", viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `Losses of the uninterrupted run, and ${row.says}`,
  },
  ...state.y_ticks.flatMap(([y, words]) => [
    line("resume-grid", `M${left} ${y}H${right}`), text(left - 8, y + 4, "end", words)]),
  ...state.x_ticks.map(([x, words]) => text(x, bottom + 18, "middle", words)),
  line("resume-axis", `M${left} ${top}V${bottom}H${right}`),
  text((left + right) / 2, height - 6, "middle", "step"), text(left, 13, "start", "loss"),
  ...(state.cut === null ? [] : [line("resume-cut", `M${state.cut} ${top}V${bottom}`),
    text(state.cut, 13, "middle", "interrupted")]),
  line("resume-truth", state.truth), line("resume-way", row.path));
}

function legend(row) {
  const key = (name) => draw("svg", { class: "resume-key", viewBox: "0 0 28 10", "aria-hidden": "true" },
    draw("path", { class: name, d: "M1 5H27" }));
  return h("ul", { class: "resume-legend" },
    h("li", {}, key("resume-truth"), "never interrupted"),
    h("li", {}, key("resume-way"), row.name));
}

let resumes = 0;

/** The view of one state. */
function open(state, { root, say }) {
  const group = `lab-resume-${(resumes += 1)}`;
  const picture = h("div", {});
  const key = h("div", {});

  function choose(place) {
    const row = state.rows[place];
    picture.replaceChildren(lossChart(state, row));
    key.replaceChildren(legend(row));
    say(row.says);
  }
  const way = (row, place) => h("label", { class: `resume-row ${row.exact ? "resume-good" : "resume-bad"}` },
    h("input", { type: "radio", name: group, checked: place === state.selected, onchange: () => choose(place) }),
    h("span", { class: "resume-name" }, row.name),
    h("span", { class: "resume-distance" }, row.exact && icon("right"), row.distance),
    h("span", { class: "resume-track" },
      h("span", { class: "resume-bar", style: `width:${100 * row.share}%` })),
    h("span", { class: "resume-began" }, row.began));
  const block = (title, from, to) => from < to && h("fieldset", { class: "resume-ways" },
    h("legend", {}, title),
    state.rows.slice(from, to).map((row, i) => way(row, from + i)));

  root.replaceChildren(
    h("header", { class: "piece-head" }, h("span", { class: "piece-kind" }, "Resuming")),
    h("p", { class: "lab-title" }, state.title),
    h("p", { class: `resume-finding ${state.good ? "resume-good" : "resume-bad"}` },
      icon(state.good ? "right" : "warn"), h("strong", {}, state.finding)),
    picture, key,
    block("Put back, one more each time: distance of the weights at the end", 0, state.without),
    block("Left out, everything else put back", state.without, state.rows.length));
  choose(state.selected);
  say("");
}

function render({ model, el }) {
  const { root, say, close } = frame(el, { name: "Ways to resume a run", kind: "piece lab-resume" });
  const stop = follow(model, (state) => open(state, { root, say }));
  return () => { stop(); close(); };
}
export default { render };
