// What each worker drew: a matrix of rows (epoch, worker) and samples; equal draws share a letter.

/** One cell; an equal one can be chosen, and then all that equal it are lit. */
function cellOf(cell, choose) {
  if (!cell.value) return h("td", { class: "rand-none" }, h("span", { "aria-hidden": "true" }, "·"), h("span", { class: "lab-live" }, cell.says));
  if (!cell.letter) return h("td", {}, cell.value);
  return h("td", { class: `rand-equal rand-tone-${cell.tone}` },
    h("button", { type: "button", class: "rand-cell", "data-letter": cell.letter, "aria-pressed": "false",
      onclick: () => choose(cell.letter), title: `all that are marked ${cell.letter} are the same` },
      h("b", {}, cell.letter), " ", cell.value));
}

/** The matrix of one generator. */
function matrix(stream, choose) {
  return h("table", { class: "rand-matrix" },
    h("caption", { class: "lab-live" }, `What was drawn from ${stream.name}`),
    h("thead", {}, h("tr", {}, h("td", {}), stream.columns.map(({ name, lit }) =>
      h("th", { scope: "col", class: lit ? "rand-lit" : "" }, name, lit && h("span", { class: "rand-same" }, " all the same"))))),
    h("tbody", {}, stream.rows.map(({ epoch, name, cells }, i) =>
      h("tr", { class: i > 0 && stream.rows[i - 1].epoch !== epoch ? "rand-next" : "" },
        h("th", { scope: "row" }, `epoch ${epoch}, ${name}`), cells.map((cell) => cellOf(cell, choose))))));
}

/** Everything of one state. */
function open(state, { root, say }) {
  const holder = h("div", { class: "rand-holder", role: "region", tabindex: "0", "aria-label": "Matrix" });
  const sum = h("p", { class: "rand-sum", role: "status" });
  let chosen = "";
  const choose = (letter) => {
    chosen = chosen === letter ? "" : letter;
    const all = [...holder.querySelectorAll(".rand-cell")];
    for (const one of all) one.setAttribute("aria-pressed", String(one.dataset.letter === chosen));
    const count = all.filter((one) => one.dataset.letter === chosen).length;
    say(chosen ? `${count} draws are the same as ${chosen}` : "");
  };
  const tabs = state.streams.map((stream, i) => h("button", {
    class: "lab-button", type: "button", "aria-pressed": "false", onclick: () => show(i),
  }, h("code", {}, stream.name), stream.equal > 0 && icon("warn")));
  function show(place) {
    const stream = state.streams[place];
    tabs.forEach((tab, i) => tab.setAttribute("aria-pressed", String(i === place)));
    chosen = "";
    holder.replaceChildren(matrix(stream, choose));
    sum.textContent = stream.equal ? `${stream.equal} of ${stream.count} draws from ${stream.name} are the same as another.`
      : `All ${stream.count} draws from ${stream.name} differ.`;
  }
  root.replaceChildren(
    h("header", { class: "piece-head" }, h("span", { class: "piece-kind" }, "Random numbers")),
    h("p", { class: "lab-title" }, h("code", {}, state.title)),
    h("p", { class: `rand-finding ${state.good ? "rand-good" : "rand-bad"}` },
      icon(state.good ? "right" : "warn"), h("span", {}, ...prose(state.verdict))),
    tabs.length > 1 && h("div", { class: "lab-row", role: "group", "aria-label": "Generator" }, tabs) || "",
    holder, sum,
    h("ul", { class: "rand-remarks" }, state.remarks.map(([level, words]) =>
      h("li", {}, icon(level === "problem" ? "warn" : "Learned"), h("span", {}, ...prose(words))))),
    state.unused ? h("p", { class: "lab-quiet" }, `Not drawn from: ${state.unused}.`) : "");
  if (state.streams.length) show(0);
}

function render({ model, el }) {
  const { root, say, close } = frame(el, { name: "Random numbers of the workers", kind: "piece lab-rand" });
  const stop = follow(model, (state) => open(state, { root, say }));
  return () => { stop(); close(); };
}
export default { render };
