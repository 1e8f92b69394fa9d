// The source of what ran, with the line of the step that runs and, below it, the values it made.

let sources = 0; // makes the ids of lines differ between the players of one page

/** The source of a run; `draw(at, chosen)` lights the line of a step. */
function sourcePane(films, { onpick, onkey, parted }) {
  const id = `lab-player-${(sources += 1)}`;
  const list = h("div", {
    class: "lab-player-code", role: "listbox", tabindex: "0", "aria-label": "Source",
  });
  const rows = h("div", { class: "lab-player-lines", role: "presentation" });
  list.append(rows);
  const beside = h("div", { class: "lab-player-values", role: "presentation" }, h("div", {})); // below the line that is lit
  const lines = new Map(); // "file\nline" → its element, text and ops
  const ran = films.map(linesThatRan);
  let shownFile = "";
  for (const stretch of uniqueStretches(films)) rows.append(...stretchRows(stretch));
  list.style.setProperty("--lab-rows", String(rows.childElementCount + 1)); // with the row of `beside`
  let lit = null;
  let active = null;
  let picked = new Set();

  function uniqueStretches() {
    const seen = new Map();
    for (const film of films) for (const each of film.source) seen.set(`${each.file}\n${each.first}\n${each.lines.length}`, each);
    return [...seen.values()];
  }

  function stretchRows(stretch) {
    const margin = Math.min(...stretch.lines.filter((text) => text.trim()).map((text) => text.length - text.trimStart().length));
    const dedent = Number.isFinite(margin) ? margin : 0;
    const head = stretch.file === shownFile ? "" : stretch.name;
    shownFile = stretch.file;
    const rows = stretch.lines.map((text, i) => {
      const key = `${stretch.file}\n${stretch.first + i}`;
      const ops = ran.map((known) => known.get(key) ?? []);
      const hang = text.slice(dedent).search(/\S|$/) + 2; // what is too long goes on below its begin
      const code = h("span", { class: "lab-player-text", style: `--lab-hang:${hang}ch` }, breakable(text.slice(dedent)));
      const value = h("span", { class: "lab-player-shape" });
      const busy = ops.some((some) => some.length);
      const row = h("div", {
        id: `${id}-${lines.size}`, role: "option", "aria-selected": "false", "aria-disabled": busy ? null : "true",
        class: `lab-player-line${busy ? " lab-player-ran" : ""}${parted.has(key) ? " lab-player-parted" : ""}`,
        title: parted.has(key) ? "Here the two runs part" : null, onclick: () => busy && pick(key),
      }, h("span", { class: "lab-player-number" }, stretch.first + i), code, value);
      lines.set(key, { key, row, code, value, text: text.slice(dedent), dedent, ops, busy });
      return row;
    });
    return [
      h("div", { class: "lab-player-file", role: "presentation" }, head), ...rows,
    ];
  }

  function pick(key) {
    active = lines.get(key);
    list.setAttribute("aria-activedescendant", active.row.id);
    onpick(picked.has(key) ? null : key);
  }

  list.addEventListener("keydown", (event) => {
    const busy = [...lines.values()].filter((line) => line.busy);
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && busy.length) {
      const at = busy.indexOf(active);
      const to = busy[Math.max(0, Math.min(busy.length - 1, at < 0 ? 0 : at + by))];
      if (to !== active || !picked.size) pick(to.key);
      to.row.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Escape") onpick(null);
    else {
      onkey(event);
      return;
    }
    event.preventDefault();
  });

  function unlight() {
    if (!lit) return;
    beside.remove();
    for (const line of lit) {
      line.row.classList.remove("lab-player-now", "lab-player-back");
      line.code.replaceChildren(...breakable(line.text));
    }
    lit = null;
  }

  /** The line of a step is lit and its expression marked; every line shows what it last made. */
  function draw(ats, back, opOf) {
    unlight();
    const site = films.map((film, i) => film.ops[opOf[i]]?.site).find(Boolean);
    if (site) {
      lit = [];
      for (let number = site.line; number <= site.end; number += 1) {
        const line = lines.get(`${site.file}\n${number}`);
        if (!line) continue;
        lit.push(line);
        markLine(line, site, number);
        line.row.classList.add("lab-player-now");
        line.row.classList.toggle("lab-player-back", back);
      }
      lit.at(-1)?.row.after(beside);
      beside.classList.toggle("lab-player-back", back);
      if (lit[0]) keepInSight(list, lit[0].row);
    }
    for (const line of lines.values()) if (line.busy) showShape(line, ats);
  }

  function showShape(line, ats) {
    let text = "";
    films.forEach((film, i) => {
      const done = countUpTo(line.ops[i], ats[i]);
      if (!done || text) return;
      const op = film.ops[line.ops[i][done - 1]];
      const value = film.values[op.outputs[0]];
      text = value ? spellShape(value.shape) : "";
      if (done > 1 && line.ops[i].length > 1) line.row.title = `${done} of ${line.ops[i].length} operations of this line have run`;
    });
    if (line.value.textContent !== text) line.value.textContent = text;
  }

  /** The lines that are lit because something on them was chosen. */
  function choose(keys) {
    picked = keys;
    for (const line of lines.values()) {
      const on = keys.has(line.key);
      if (line.on === on) continue;
      line.on = on;
      line.row.classList.toggle("lab-player-picked", on);
      line.row.setAttribute("aria-selected", String(on));
    }
  }

  /** Stands below the line that is lit: what it made, or the gradient that came back to it. */
  function tell(parts) {
    beside.firstChild.replaceChildren(...parts.filter(Boolean));
  }

  return { element: list, draw, choose, tell };
}

function markLine(line, site, number) {
  if (site.from < 0) return;
  const from = number === site.line ? site.from - line.dedent : line.text.length - line.text.trimStart().length;
  const to = number === site.end ? site.to - line.dedent : line.text.length;
  line.code.replaceChildren(
    ...breakable(line.text.slice(0, from)), h("mark", {}, breakable(line.text.slice(from, to))), ...breakable(line.text.slice(to)));
}

/** Code that may go on in the next row after a bracket, a dot or a comma, not only at a space. */
function breakable(text) {
  return text.split(/(?<=[([.,])(?=[^\s)\].,])/).flatMap((part, i) => (i ? [h("wbr", {}), part] : [part]));
}

/** Scrolls the list alone, never the page. */
function keepInSight(list, row) {
  const [top, low] = [row.offsetTop, row.offsetTop + row.offsetHeight + 20]; // the list is positioned
  if (top < list.scrollTop + 24 || low > list.scrollTop + list.clientHeight - 12) {
    list.scrollTop = top - list.clientHeight / 2 + 20;
  }
}

/** What stands below the line of a step: shape and figures of its result, or of its gradient. */
function figuresOfStep(film, at) {
  const step = film.steps[at];
  if (!step) return [];
  const known = step.back ? film.known.nodes[step.index] : film.known.values[film.ops[step.index].outputs[0]];
  const stats = step.back ? known?.grads?.find(Boolean) : known?.stats;
  const shape = step.back ? known?.shapes?.[0] : film.values[film.ops[step.index].outputs[0]]?.shape;
  if (!shape && !stats) return []; // not told yet, or the op ended in an error
  return [
    h("span", {}, `${step.back ? "gradient" : "→"} ${shape ? spellShape(shape) : ""}`),
    ...(stats ? extremes(stats).map(([word, number]) => h("span", {}, word && h("i", {}, word), number)) : []),
    ...(stats ? warnings(stats) : []),
  ];
}

/** Least, mean and largest; one number where all are equal. */
function extremes([low, high, mean]) {
  if (low === high) return [["", ` ${spellNumber(low)}`]];
  return [["min ", spellNumber(low)], ["mean ", spellNumber(mean)], ["max ", spellNumber(high)]];
}

function warnings([, , , , , nan, inf]) {
  return [[nan, "NaN"], [inf, "inf"]].filter(([count]) => count > 0)
    .map(([count, word]) => h("strong", { class: "lab-player-bad" }, ` ${count} ${word}`));
}
