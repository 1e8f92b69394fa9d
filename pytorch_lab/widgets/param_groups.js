// Parameter groups: each layer with its group, what is in none in the open, and a way to pick one.

const LOOKS = 8; // colours; after them the first comes again, the name stands beside it

/** A small square in the colour of a group. */
function swatch(index) {
  return h("span", { class: `groups-swatch groups-${index % LOOKS}`, "aria-hidden": "true" });
}

/** Which rows are picked: all when no group is chosen. */
function picked(rows, chosen) {
  return chosen === null ? rows : rows.filter(({ groups }) => groups.includes(chosen));
}

/** The head of a column; the last gives way where there is no room. */
function heading_(words, index, all) {
  return h("th", { scope: "col", class: index === all.length - 1 ? "groups-more" : "" }, words);
}

function groupTable(state, choose) {
  const head = ["group", "lr", "weight_decay", "tensors", "elements"];
  const buttons = [];
  const body = state.groups.map(({ name, cells, more }, index) => {
    const button = h("button", {
      class: "lab-button groups-pick", type: "button", "aria-pressed": "false", title: more,
      onclick: () => choose(index),
    }, swatch(index), name);
    buttons.push(button);
    return h("tr", {}, h("th", { scope: "row" }, button), cells.slice(1).map((cell, i) => h("td", { class: i === 3 ? "groups-more" : "" }, cell)));
  });
  const table = h("table", { class: "groups-table" },
    h("thead", {}, h("tr", {}, head.map(heading_))), h("tbody", {}, body));
  return { table, buttons };
}

/** The pieces of a name between which a line may break: "body.", "norm1.", "weight". */
function pieces(name) {
  return name.split(/(?<=[._])/);
}

function rowOf({ name, size, says, lr, groups, lost, idle }) {
  return h("tr", { class: lost ? "groups-lost" : idle ? "groups-idle" : "" },
    h("th", { scope: "row" }, h("code", {}, pieces(name).flatMap((piece) => [piece, h("wbr")]))),
    h("td", { class: "groups-where" }, lost && icon("warn"), groups.map(swatch), h("span", {}, says)),
    h("td", {}, lr), h("td", { class: "groups-more" }, size));
}

function open(state, { root, say }) {
  let chosen = null;
  const body = h("tbody", {});
  const { table, buttons } = groupTable(state, (index) => {
    chosen = chosen === index ? null : index;
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === chosen)));
    fill();
    say(chosen === null ? "all rows" : `${picked(state.rows, chosen).length} rows of ${state.groups[chosen].name}`);
  });
  const fill = () => body.replaceChildren(...picked(state.rows, chosen).map(rowOf));
  fill();
  root.replaceChildren(
    h("header", { class: "piece-head" }, h("span", { class: "piece-kind" }, "Parameter groups")),
    h("p", { class: "lab-title" }, state.title),
    h("p", { class: `groups-finding ${state.good ? "groups-good" : "groups-bad"}` },
      icon(state.good ? "right" : "warn"), h("strong", {}, state.finding)),
    h("div", { class: "groups-scroll", tabindex: "0", role: "region", "aria-label": "Groups" }, table),
    h("div", { class: "groups-scroll groups-tall", tabindex: "0", role: "region", "aria-label": "Parameters" },
      h("table", { class: "groups-table" },
        h("thead", {}, h("tr", {}, ["parameter", "where", "lr", "shape"].map(heading_))),
        body)),
    h("p", { class: "lab-quiet", hidden: !state.left_out }, `and ${state.left_out} more rows`),
    h("ul", { class: "groups-remarks" }, state.remarks.map(([level, words]) =>
      h("li", {}, icon(level === "problem" ? "warn" : "Learned"), h("span", {}, ...prose(words))))));
}

function render({ model, el }) {
  const { root, say, close } = frame(el, { name: "Parameter groups", kind: "piece lab-groups" });
  const stop = follow(model, (state) => open(state, { root, say }));
  return () => { stop(); close(); };
}
export { picked, pieces };
export default { render };
