// The X-ray of a module. Python sends rows as numbers and says every word; here they are unpacked
// and drawn. tree.js, in front of this, folds and searches.

const NAME_WIDTH = 180;
const STATUS_WIDTH = 122;

/** Rows from the packed state. @returns {Row[]} */
export function unpack({ words, bodies, rows, columns }) {
  const split = (text, by) => (text ? text.split(by) : []);
  const shared = bodies.map(([kind, type, registered, a, b, c, badges, facts, ...cells]) => ({
    kind: words[kind],
    type: words[type],
    registered: registered === 1,
    status: [a, b, c].map((i) => ({ sign: words[i][0], word: words[i].slice(1) })), // one per lens
    badges: split(words[badges], "\t"),
    facts: split(words[facts], "\n").map((line) => line.split("\t")),
    cells: Object.fromEntries(columns.map(({ key }, i) => [key, words[cells[i]]])),
  }));
  return nest(rows, words, shared);
}

/** The columns that fit beside the name, the most telling first; all, if the reader chose them. */
export function fit(columns, chosen, width) {
  if (chosen) return columns.filter(({ key }) => chosen.has(key));
  let room = width - NAME_WIDTH - STATUS_WIDTH;
  const fitting = columns.filter(({ shown }) => shown).sort((a, b) => a.rank - b.rank)
    .filter((column) => (room -= column.width) >= 0);
  return columns.filter((column) => fitting.includes(column));
}

/** The code in a sentence: what stands between its first pair of backticks. */
export function codeIn(sentence) {
  return /`([^`]+)`/.exec(sentence)?.[1] ?? "";
}

// What is said in the X-ray of a module; another state brings its own words in `says`.
const SAYS = { tree: "Modules of", why: "Why it is invisible" };

// --- drawing --------------------------------------------------------------------------------------

const tone = (sign) => ({ "+": "lab-yes", "-": "lab-no" })[sign] ?? "lab-quiet";

function badge(view, word) {
  const [colour, meaning] = view.state.legend[word];
  return h("span", { class: `lab-badge lab-badge-${colour}`, title: meaning }, word);
}

/** What stands in the first column: name, type, badges. */
function nameOf(view, row, open) {
  const terms = view.found?.terms ?? [];
  return [
    h("span", { class: `lab-xray-id lab-kind-${row.body.kind}`, title: row.path || row.name },
      marked(row.name, terms)),
    row.body.type && h("span", { class: "lab-xray-type" }, marked(row.body.type, terms)),
    ...row.body.badges.filter((word) => !(open && word.endsWith(" inside")))
      .map((word) => badge(view, word)),
  ];
}

function cellsOf(view, { body }) {
  const { sign, word } = body.status[view.lens];
  return [
    h("div", { role: "gridcell", class: `lab-xray-status ${tone(sign)}` },
      sign !== " " && icon(sign), h("span", {}, word)),
    ...view.columns.map(({ key, end }) => h("div", {
      role: "gridcell", class: end ? "lab-end" : "", title: body.cells[key] || null,
    }, body.cells[key])),
  ];
}

function headingsOf(view) {
  const count = view.found && `${view.found.hits.length.toLocaleString("en")} found`;
  return [
    h("div", { role: "columnheader" }, "Name",
      count && h("span", { class: "lab-xray-count" }, count), count && "Esc clears"),
    h("div", { role: "columnheader" }, view.state.lenses[view.lens].heading),
    ...view.columns.map(({ label, end }) =>
      h("div", { role: "columnheader", class: end ? "lab-end" : "" }, label)),
  ];
}

/** All that is known of one row. */
function details(view, index) {
  const { path, name, body } = view.rows[index];
  const { Why: why, Fix: fix, Code: lines, ...facts } = Object.fromEntries(body.facts);
  const code = lines?.replaceAll("\v", "\n");
  const list = [
    ...view.state.lenses.map(({ heading }, i) => [heading, body.status[i].word.trim(),
      body.status[i].sign]),
    ...view.state.columns.map(({ key, label }) => [label, body.cells[key]]),
    ...Object.entries(facts),
  ].filter(([, text]) => text);
  const kind = { root: "module", again: "another name", repeat: "equal neighbours" }[body.kind]
    ?? body.kind;
  return [
    h("div", { class: "lab-xray-path" },
      h("code", {}, body.kind === "finding" ? name : path || name),
      h("button", {
        class: "lab-button lab-xray-close", type: "button", "aria-label": "Close details",
        onclick: () => view.select(null),
      }, icon("-"))),
    h("div", { class: "lab-quiet" },
      [body.type, body.type.toLowerCase() !== kind && kind].filter(Boolean).join(", ")),
    why && h("div", { class: "lab-note lab-bad" },
      h("div", { class: "lab-xray-label" }, { ...SAYS, ...view.state.says }.why), h("div", {}, prose(why))),
    fix && h("div", { class: "lab-note lab-good" },
      h("div", { class: "lab-xray-label" }, "Fix", codeIn(fix) && copyButton(view, codeIn(fix))),
      h("div", {}, prose(fix))),
    code && h("div", { class: "lab-note lab-good" },
      h("div", { class: "lab-xray-label" }, "Fix", copyButton(view, code)),
      h("pre", { tabindex: 0 }, code)),
    h("dl", {}, list.map(([label, text, sign]) => [
      h("dt", {}, label), h("dd", { class: sign ? tone(sign) : "" }, text)])),
    body.badges.map((word) => h("p", { class: "lab-xray-meaning" },
      badge(view, word), ` ${view.state.legend[word][1]}`)),
  ].flat().filter(Boolean);
}

function copyButton(view, code) {
  const button = h("button", { class: "lab-button", type: "button", title: code }, "Copy code");
  button.addEventListener("click", async () => {
    const done = await copy(code).catch(() => false);
    button.textContent = done ? "Copied" : "Select it and copy";
    view.say(button.textContent);
  });
  return button;
}

async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return true;
  }
  const field = h("textarea", { class: "lab-live" }); // a hub without https has no clipboard
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

function header(view) {
  const { finding, good } = view.state.lenses[view.lens];
  return [
    h("p", { class: `lab-xray-finding ${good ? "lab-yes" : "lab-no"}` },
      icon(good ? "+" : "-"), h("strong", {}, prose(finding))),
    h("ul", { class: "lab-xray-totals" }, view.state.totals.map((total) => h("li", {}, total))),
  ];
}

function lensChooser(view) {
  const group = `${view.id}-lens`;
  return view.state.lenses.length > 1 && h("fieldset", { class: "lab-xray-lenses" },
    h("legend", { class: "lab-hidden" }, "What to look for"),
    view.state.lenses.map(({ label }, i) => {
      const input = h("input", {
        type: "radio", name: group, checked: i === view.lens, onchange: () => view.look(i),
      });
      return h("label", {}, input, h("span", {}, label));
    }));
}

function columnChooser(view) {
  const boxes = view.state.columns.map(({ key, label, missing }) => {
    const input = h("input", {
      type: "checkbox", disabled: missing !== "", value: key,
      onchange: (event) => view.choose(key, event.target.checked),
    });
    return h("label", {}, input, h("span", {}, label),
      missing && h("span", { class: "lab-quiet" }, missing));
  });
  const chooser = h("details", { class: "lab-xray-columns" },
    h("summary", { class: "lab-button" }, "Columns", icon(">")),
    h("div", { class: "lab-xray-menu", role: "group", "aria-label": "Columns to show" }, boxes));
  chooser.addEventListener("toggle", () => {
    const shown = new Set(view.columns.map(({ key }) => key));
    for (const box of chooser.querySelectorAll("input")) box.checked = shown.has(box.value);
  });
  chooser.addEventListener("focusout", (event) => {
    if (!chooser.contains(event.relatedTarget)) chooser.open = false;
  });
  chooser.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !chooser.open) return;
    chooser.open = false;
    chooser.querySelector("summary").focus();
  });
  return chooser;
}

function searchBox(view) {
  const input = h("input", {
    type: "search", class: "lab-xray-search", placeholder: "Search name or type",
    "aria-label": "Search the tree", spellcheck: "false", autocomplete: "off",
    oninput: () => view.search(input.value),
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      input.value = "";
      view.search("");
    } else if (event.key === "Enter") view.nextHit(event.shiftKey ? -1 : 1);
    else if (event.key === "ArrowDown") view.tree.grid.focus();
    else return;
    event.preventDefault();
  });
  return input;
}

/** The view of one state: what is open, chosen, searched, selected; and the elements that show it. */
function open(state, { root, say, id }) {
  const rows = unpack(state);
  const foldable = rows.filter(({ kids }) => kids.length).map(({ index }) => index);
  const view = {
    id, state, rows, say, lens: state.lens ?? 0, chosen: null, found: null, columns: [],
    open: new Set(state.open), selected: state.selected, active: state.selected ?? 0,
  };
  const head = h("div", { class: "lab-xray-head" });
  const unfold = h("button", { class: "lab-button", type: "button", onclick: () => unfoldAll() });
  const pane = h("section", { class: "lab-xray-details", "aria-label": "Details" });
  const tree = view.tree = treegrid(view, {
    label: `${{ ...SAYS, ...state.says }.tree} ${state.type}`,
    name: (row, isOpen) => nameOf(view, row, isOpen),
    cells: (row) => cellsOf(view, row),
    headings: () => headingsOf(view),
    onselect: (index) => view.select(index === view.selected ? null : index),
  });

  const isUnfolded = () => foldable.every((index) => view.open.has(index));
  function unfoldAll() {
    view.open = new Set(isUnfolded() ? [0] : foldable);
    draw();
  }
  function draw(how) {
    view.columns = fit(state.columns, view.chosen, tree.grid.clientWidth);
    const widths = view.columns.map(({ width }) => `${width}px`).join(" ");
    tree.grid.style.setProperty("--lab-columns",
      `minmax(${widths ? NAME_WIDTH : NAME_WIDTH - 40}px, 1fr) ${STATUS_WIDTH}px ${widths}`);
    unfold.textContent = isUnfolded() ? "Fold all" : "Unfold all";
    unfold.disabled = foldable.length < 2 || view.found !== null;
    tree.draw(how);
  }
  function drawDetails() {
    pane.hidden = view.selected === null;
    pane.replaceChildren(...(pane.hidden ? [] : details(view, view.selected)));
  }
  Object.assign(view, {
    look(lens) {
      view.lens = lens;
      head.replaceChildren(...header(view));
      say(state.lenses[lens].finding);
      draw();
    },
    choose(key, on) {
      view.chosen ??= new Set(view.columns.map((column) => column.key));
      if (on) view.chosen.add(key);
      else view.chosen.delete(key);
      draw();
    },
    select(index) {
      if (index === null) tree.grid.focus();
      else view.active = index;
      view.selected = index;
      drawDetails();
      draw({ show: true });
      if (index !== null) say(`Details of ${rows[index].path || rows[index].name}`);
    },
    search(query) {
      const found = search(rows, query);
      // a hit stays in sight when the search ends; after a search without hits none is active
      if (!found.terms.length && view.active >= 0) {
        for (const i of ancestors(rows, view.active)) view.open.add(i);
      }
      view.found = found.terms.length ? found : null;
      if (found.hits.length) view.active = found.hits[0];
      draw({ show: true });
      say(view.found ? `${found.hits.length} found` : "");
    },
    nextHit(by) {
      const hits = view.found?.hits ?? [];
      if (!hits.length) return;
      const at = hits.indexOf(view.active);
      tree.go(hits[(at + by + hits.length) % hits.length]);
    },
  });

  head.append(...header(view));
  root.replaceChildren(head,
    h("div", { class: "lab-xray-bar" },
      searchBox(view), lensChooser(view), columnChooser(view), unfold),
    h("div", { class: "lab-xray-main" }, tree.grid, pane));
  drawDetails();
  draw({ show: true });
  return { draw, grid: tree.grid };
}

let xrays = 0;

function render({ model, el }) {
  const state = model.get("state");
  const { root, say, close } = frame(el, {
    name: `X-ray of ${state.type}: ${state.finding}`, kind: "xray",
  });
  const id = `lab-xray-${(xrays += 1)}`;
  let width = 0;
  let shown = null;
  const resized = new ResizeObserver(([{ contentRect }]) => {
    const before = width;
    width = Math.round(contentRect.width);
    // a notebook may draw before there is room; then the first size brings the selected row in sight
    if (width !== before) shown?.draw({ show: before === 0 });
  });
  const stop = follow(model, (changed) => {
    resized.disconnect();
    root.setAttribute("aria-label", `X-ray of ${changed.type}: ${changed.finding}`);
    shown = open(changed, { root, say, id });
    resized.observe(shown.grid);
  });
  return () => {
    resized.disconnect();
    stop();
    close();
  };
}
export default { render };
