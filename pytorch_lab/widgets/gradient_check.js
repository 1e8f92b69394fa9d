// A Jacobian as a matrix: which derivative backward gives wrongly, and how far it is off.

const WHAT = ["off by", "backward", "numeric"];
const SIGNS = { "✗": "wrong", "^": "warn", "?": "warn" };
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** The matrix as a grid of which one cell has the focus. */
function matrix(page, what, tell) {
  const cells = page.cells.map((row, r) => row.map((cell, c) =>
    h("td", { class: `grad-cell grad-${cell.tone}`, role: "gridcell", tabindex: "-1",
      "aria-label": cell.says, "data-row": r, "data-column": c },
      cell.sign && icon(SIGNS[cell.sign]), cell.shown[what])));
  const table = h("table", { class: "grad-matrix", role: "grid", "aria-label": "Derivatives, outputs by inputs" },
    h("thead", {}, h("tr", {}, h("td", {}), page.columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, page.rows.map((name, r) => h("tr", {}, h("th", { scope: "row" }, name), cells[r]))));
  let here = null;
  const go = (cell, focus) => {
    if (!cell) return;
    if (here) { here.tabIndex = -1; here.classList.remove("grad-here"); }
    here = cell;
    here.tabIndex = 0;
    here.classList.add("grad-here");
    if (focus) here.focus();
    tell(here.getAttribute("aria-label"));
  };
  table.addEventListener("click", (event) => go(event.target.closest(".grad-cell"), true));
  table.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move || !here) return;
    event.preventDefault();
    go(cells[Number(here.dataset.row) + move[0]]?.[Number(here.dataset.column) + move[1]], true);
  });
  const wrong = cells.flat().find((cell) => cell.className.includes("grad-wrong"));
  return { table, start: (place) => go(place ? cells[place[0]][place[1]] : wrong ?? cells[0][0], false),
    place: () => here && [Number(here.dataset.row), Number(here.dataset.column)] };
}

/** A row of buttons of which one is pressed. */
function choice(label, names, choose) {
  const buttons = names.map((name, i) => h("button", {
    class: "lab-button", type: "button", "aria-pressed": String(i === 0), onclick: () => press(i),
  }, name));
  const press = (chosen) => {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === chosen)));
    choose(chosen);
  };
  return h("div", { class: "lab-row", role: "group", "aria-label": label }, buttons);
}

/** Everything of one state. */
function open(state, root) {
  const holder = h("div", { class: "grad-holder" });
  const said = h("p", { class: "grad-said", role: "status" });
  const finding = h("p", {});
  const remarks = h("ul", { class: "grad-remarks" });
  const left = h("p", { class: "lab-quiet" });
  let page = state.pages[0];
  let what = 0;
  let drawn = null;
  const draw = (place) => {
    if (!page.cells.length || !page.columns.length) { holder.replaceChildren(); said.textContent = ""; return; }
    drawn = matrix(page, what, (text) => { said.textContent = text; });
    holder.replaceChildren(drawn.table);
    drawn.start(place);
  };
  const turn = (to) => {
    page = state.pages[to];
    finding.className = `grad-finding grad-is-${page.tone}`;
    finding.replaceChildren(icon(page.tone === "right" ? "right" : "warn"), h("span", {}, page.verdict));
    remarks.replaceChildren(...page.remarks.map(([level, words]) =>
      h("li", {}, icon(level === "problem" ? "wrong" : "Learned"), h("span", {}, ...prose(words)))));
    left.textContent = page.left_out;
    draw(null);
  };
  root.replaceChildren(
    h("header", { class: "piece-head" }, h("span", { class: "piece-kind" }, "Gradient check")),
    state.pages.length > 1 ? choice("Which gradient", state.pages.map(({ name }) => name), turn) : "",
    finding, remarks,
    state.pages.some(({ cells }) => cells.length) ? choice("What the cells show", WHAT, (chosen) => {
      what = chosen;
      draw(drawn && drawn.place());
    }) : "",
    holder, said, left);
  turn(0);
}

function render({ model, el }) {
  const { root, close } = frame(el, { name: "Gradient check", kind: "piece lab-grad" });
  const stop = follow(model, (state) => open(state, root));
  return () => { stop(); close(); };
}
export default { render };
