// A foldable tree with columns: a `treegrid` of which only the rows in sight are elements, so that
// ten thousand rows fold as fast as ten. The widget says what is in a row; here are nesting, folding,
// searching, and the keys that the ARIA practices give a treegrid.

const ROW_HEIGHT = 26;
const SPARE = 6; // rows drawn above and below those in sight

/**
 * @typedef {object} Row
 * @property {number} index
 * @property {number} level the root has 1
 * @property {string} name
 * @property {string} path as Python would write it, from the root
 * @property {any} body what equal rows share: `kind`, `type`, `status`, `badges`, ...
 * @property {number} parent -1 for the root
 * @property {number[]} kids
 * @property {number} end the index after its last descendant
 */

/** Rows from numbers: level, name, body of each, in the order they show. @returns {Row[]} */
export function nest(flat, words, bodies) {
  const rows = [];
  const above = []; // the last row of each level
  for (let i = 0; i < flat.length; i += 3) {
    const [level, name, body] = [flat[i], words[flat[i + 1]], bodies[flat[i + 2]]];
    const index = rows.length;
    while (above.length >= level) above.pop().end = index;
    const parent = above.at(-1);
    const row = {
      index, level, name, body, path: join(parent, name, body.kind),
      parent: parent?.index ?? -1, kids: [], end: 0,
    };
    parent?.kids.push(index);
    above.push(row);
    rows.push(row);
  }
  for (const row of above) row.end = rows.length;
  return rows;
}

function join(parent, name, kind) {
  if (!parent) return "";
  if (kind === "repeat") return parent.path;
  return name.startsWith("[") || !parent.path ? parent.path + name : `${parent.path}.${name}`;
}

/** The indices that show: below open rows, and of those only what `keep` has, if given. */
export function visible(rows, open, keep = null) {
  const shown = [];
  for (let i = 0; i < rows.length;) {
    if (keep && !keep.has(i)) {
      i = rows[i].end;
      continue;
    }
    shown.push(i);
    i = open.has(i) ? i + 1 : rows[i].end;
  }
  return shown;
}

/** Every row above `index`. */
export function ancestors(rows, index) {
  const found = [];
  for (let i = rows[index].parent; i >= 0; i = rows[i].parent) found.push(i);
  return found;
}

/** Which rows match all words of a query; what to keep and open so that each hit can be seen. */
export function search(rows, query) {
  const terms = query.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = [];
  const keep = new Set();
  const open = new Set();
  for (const row of terms.length ? rows : []) {
    if (row.body.kind === "repeat" || !terms.every((term) => matches(row, term))) continue;
    hits.push(row.index);
    keep.add(row.index);
    for (const i of ancestors(rows, row.index)) {
      keep.add(i);
      open.add(i);
    }
  }
  return { terms, hits, keep, open };
}

/** Whether a word is in what a row says of itself, or in its path up to and including its name. */
function matches(row, term) {
  row.lower ??= {
    path: row.path.toLowerCase(),
    said: [row.name, row.body.type, row.body.status[0].word,
      ...row.body.badges.filter((badge) => !badge.endsWith(" inside"))].join(" ").toLowerCase(),
  };
  if (row.lower.said.includes(term)) return true;
  const at = row.lower.path.lastIndexOf(term);
  return at >= 0 && at + term.length > row.path.length - row.name.length;
}

/** Where a key leads from `active`; null when it is not a key of movement. */
export function step(key, shown, active, page) {
  const at = shown.indexOf(active);
  const last = shown.length - 1;
  const to = {
    ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: last, PageDown: at + page, PageUp: at - page,
  }[key];
  return to === undefined ? null : shown[Math.max(0, Math.min(last, to))];
}

/** The next shown row after `active` whose name begins with `typed`, around the end. */
export function typeahead(rows, shown, active, typed) {
  const at = Math.max(0, shown.indexOf(active));
  const first = typed.length > 1 ? 0 : 1; // while a word grows, the row it found may stay
  for (let i = 0; i < shown.length; i += 1) {
    const candidate = shown[(at + first + i) % shown.length];
    if (rows[candidate].name.toLowerCase().startsWith(typed.toLowerCase())) return candidate;
  }
  return null;
}


// --- drawing --------------------------------------------------------------------------------------

const ICONS = {
  "+": "M3 8.5l3.2 3.5L13 4.5",
  "-": "M4 4l8 8M12 4l-8 8",
  ">": "M6 4l4 4-4 4",
};
let trees = 0; // makes the ids of rows differ between the trees of one page

function icon(sign) {
  const make = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const size = { viewBox: "0 0 16 16", width: 14, height: 14 };
  const picture = make("svg", { ...size, class: "lab-icon", "aria-hidden": "true" });
  picture.append(make("path", { d: ICONS[sign] }));
  return picture;
}

/** `text` with the first of the searched words in it marked. */
function marked(text, terms) {
  const found = terms.map((term) => [text.toLowerCase().indexOf(term), term.length])
    .find(([at]) => at >= 0);
  if (!found) return [text];
  const [from, length] = found;
  return [text.slice(0, from), h("mark", {}, text.slice(from, from + length)),
    text.slice(from + length)];
}

/**
 * The tree itself. `draw` is to be called when what it shows has changed.
 * @param {object} view the widget's own view: rows, open, found (a search or null), active, selected
 * @param {object} parts
 * @param {string} parts.label
 * @param {(row: Row) => (Node|string)[]} parts.name what stands behind the fold mark
 * @param {(row: Row) => Node[]} parts.cells
 * @param {() => Node[]} parts.headings
 * @param {(index: number) => void} parts.onselect a click, Enter or Space on a row
 */
function treegrid(view, { label, name, cells, headings, onselect }) {
  const id = `lab-tree-${(trees += 1)}`;
  const head = h("div", { role: "rowgroup", class: "lab-tree-head" });
  const body = h("div", { role: "rowgroup", class: "lab-tree-body" });
  const grid = h("div", {
    role: "treegrid", class: "lab-tree", tabindex: 0, "aria-label": label, "aria-readonly": true,
  }, head, body);
  let shown = [];
  let drawn = 0; // the place of the first row that is an element
  let typed = { text: "", at: -Infinity };

  const isOpen = (index) => (view.found ? view.found.open : view.open).has(index);

  function fold(index, open = !isOpen(index)) {
    const { open: set } = view.found ?? view;
    if (open) {
      set.add(index);
      for (const kid of view.rows[index].kids) view.found?.keep.add(kid);
    } else {
      set.delete(index);
      // what was active in a branch that closes is no longer there
      if (view.active > index && view.active < view.rows[index].end) view.active = index;
    }
    draw();
  }

  function rowElement(index, place) {
    const row = view.rows[index];
    const siblings = row.parent < 0 ? [index] : view.rows[row.parent].kids;
    const open = isOpen(index);
    const foldable = row.kids.length > 0;
    return h("div", {
      role: "row", id: `${id}-${index}`, "data-row": index,
      class: ["lab-tree-row", index === view.active && "lab-active",
        index === view.selected && "lab-selected", row.body.status[view.lens ?? 0].sign === "-"
          && "lab-wrong"].filter(Boolean).join(" "),
      style: `top:${place * ROW_HEIGHT}px`,
      "aria-level": row.level, "aria-rowindex": place + 2,
      "aria-setsize": siblings.length, "aria-posinset": siblings.indexOf(index) + 1,
      "aria-expanded": foldable ? open : null, "aria-selected": index === view.selected,
    },
    h("div", { role: "rowheader", class: "lab-tree-name" },
      h("span", { class: "lab-tree-indent", style: `width:${(row.level - 1) * 18}px` }),
      h("span", { class: `lab-tree-fold${open ? " lab-open" : ""}`, "data-fold": foldable },
        foldable && icon(">")),
      name(row, open)),
    cells(row));
  }

  /** Draw what is open; with `show`, bring the active row into sight. */
  function draw({ show = false } = {}) {
    shown = visible(view.rows, view.found ? view.found.open : view.open, view.found?.keep ?? null);
    if (!shown.includes(view.active)) view.active = shown[0] ?? -1;
    head.replaceChildren(h("div", { role: "row", class: "lab-tree-row", "aria-rowindex": 1 },
      headings()));
    body.style.height = `${shown.length * ROW_HEIGHT}px`;
    grid.setAttribute("aria-rowcount", shown.length + 1);
    if (show) scrollToActive();
    drawSight();
  }

  const firstInSight = () => Math.max(0, Math.floor(grid.scrollTop / ROW_HEIGHT) - SPARE);

  function drawSight() {
    const first = drawn = firstInSight();
    const last = first + Math.ceil(grid.clientHeight / ROW_HEIGHT) + 2 * SPARE;
    const rows = shown.slice(first, last).map((index, i) => rowElement(index, first + i));
    // the active row is always an element, because the grid names it as its active descendant
    const at = shown.indexOf(view.active);
    if (at >= 0 && (at < first || at >= last)) rows.push(rowElement(view.active, at));
    body.replaceChildren(...rows);
    if (at >= 0) grid.setAttribute("aria-activedescendant", `${id}-${view.active}`);
    else grid.removeAttribute("aria-activedescendant");
  }

  /** Make a row the active one and bring it into sight. */
  function go(index) {
    view.active = index;
    scrollToActive();
    drawSight();
  }

  function scrollToActive() {
    const top = shown.indexOf(view.active) * ROW_HEIGHT;
    const room = grid.clientHeight - head.offsetHeight - ROW_HEIGHT;
    if (top < grid.scrollTop) grid.scrollTop = Math.max(0, top);
    else if (top > grid.scrollTop + room) grid.scrollTop = top - room;
  }

  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== grid) return;
    const row = view.rows[view.active];
    if (!row) return;
    const page = Math.max(1, Math.floor(grid.clientHeight / ROW_HEIGHT) - 2);
    const to = step(event.key, shown, view.active, page);
    if (to !== null) go(to);
    else if (event.key === "ArrowRight") into(row);
    else if (event.key === "ArrowLeft") outOf(row);
    else if (event.key === "Enter" || event.key === " ") onselect(row.index);
    else if (event.key === "*") unfoldNeighbours(row);
    else if (event.key.length === 1) jump(event.key, event.timeStamp);
    else return;
    event.preventDefault();
  }

  function into(row) {
    if (!row.kids.length) return;
    if (!isOpen(row.index)) fold(row.index, true);
    else go(shown[shown.indexOf(row.index) + 1]);
  }

  function outOf(row) {
    if (row.kids.length && isOpen(row.index)) fold(row.index, false);
    else if (row.parent >= 0) go(row.parent);
  }

  function unfoldNeighbours(row) {
    const neighbours = row.parent < 0 ? [row.index] : view.rows[row.parent].kids;
    for (const index of neighbours) if (view.rows[index].kids.length) view.open.add(index);
    draw();
  }

  function jump(letter, now) {
    const find = (text) => {
      typed = { text, at: now };
      return typeahead(view.rows, shown, view.active, text);
    };
    const longer = now - typed.at < 700 ? find(typed.text + letter) : null;
    const to = longer ?? find(letter);
    if (to !== null) go(to);
  }

  grid.addEventListener("keydown", press);
  grid.addEventListener("scroll", () => {
    if (firstInSight() !== drawn) drawSight();
  });
  body.addEventListener("click", (event) => {
    const index = Number(event.target.closest("[data-row]")?.dataset.row ?? -1);
    if (index < 0) return;
    view.active = index;
    if (event.target.closest('[data-fold]')) fold(index);
    else onselect(index);
  });
  body.addEventListener("dblclick", (event) => {
    const index = Number(event.target.closest("[data-row]")?.dataset.row ?? -1);
    if (index >= 0 && view.rows[index].kids.length && !event.target.closest("[data-fold]")) {
      fold(index);
    }
  });
  return { grid, draw, go };
}
