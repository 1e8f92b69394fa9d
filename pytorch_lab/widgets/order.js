// Lines that can be moved by buttons, by keys and by pointer; the kernel runs their order.

const GRIP = "M6 3.5v.1M10 3.5v.1M6 8v.1M10 8v.1M6 12.5v.1M10 12.5v.1";

/**
 * Where a thing goes that is moved by `step` from `place`; the same place at an end.
 * @param {number} place @param {number} step @param {number} count
 */
function moved(place, step, count) {
  return Math.min(Math.max(place + step, 0), count - 1);
}

/** The list of lines; `changed` hears of each move, `say` speaks it. */
function lineList({ lines, texts, order, changed, say }) {
  const list = h("ol", { class: "order-lines", "aria-label": "Lines, in your order" });
  const rows = order.map((index) => row(index));
  list.append(...rows);
  const all = () => [...list.children];

  function row(index) {
    const arrow = (step, word, path) => h("button", {
      class: "order-arrow", type: "button", "aria-label": `Move ${word}: ${texts[index]}`,
      onclick: () => move(item, step),
    }, draw("svg", { class: "piece-icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, draw("path", { d: path })));
    const item = h("li", {
      class: "order-line", "aria-keyshortcuts": "Alt+ArrowUp Alt+ArrowDown", "data-index": index,
      onkeydown: (event) => keyed(event, item), onfocusin: () => activate(item),
      onpointerdown: (event) => grab(event, item), onpointermove: (event) => drag(event, item),
      onpointerup: () => drop(item), onpointercancel: () => drop(item),
    },
      draw("svg", { class: "order-grip piece-icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, draw("path", { d: GRIP })),
      h("pre", { class: "order-code" }, h("code", {}, ...lines[index].flatMap((words, k) => [k ? "\n" : "", ...codeWords(words)]))),
      arrow(-1, "up", "M8 12.5v-9M4.5 7L8 3.5 11.5 7"), arrow(1, "down", "M8 3.5v9M4.5 9L8 12.5 11.5 9"));
    return item;
  }

  // One line at a time is in the tab order, with its two buttons: seven lines are not 21 stops.
  function activate(active) {
    for (const item of all()) {
      for (const stop of [item, ...item.querySelectorAll("button")]) stop.tabIndex = item === active ? 0 : -1;
    }
  }

  /** The neighbour moves, not the line itself: a line taken out of the page loses its focus. */
  function swap(item, step) {
    const neighbour = step < 0 ? item.previousElementSibling : item.nextElementSibling;
    if (!neighbour) return false;
    if (step < 0) item.after(neighbour);
    else item.before(neighbour);
    changed();
    return true;
  }

  function place(item) { return all().indexOf(item); }

  function announce(item, did = true) {
    const where = `line ${place(item) + 1} of ${rows.length}`;
    say(`${texts[item.dataset.index]} is ${did ? "now" : "already"} ${where}.`);
  }

  function move(item, step) { announce(item, swap(item, step)); }

  function keyed(event, item) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    if (event.altKey) move(item, step);
    else all()[moved(place(item), step, rows.length)].focus();
  }

  let held = null;
  function grab(event, item) {
    const touch = event.pointerType === "touch" && !event.target.closest(".order-grip");
    if (event.button !== 0 || touch || event.target.closest("button")) return;
    item.setPointerCapture(event.pointerId);
    item.classList.add("order-held");
    held = place(item);
  }
  function drag(event, item) {
    if (held === null) return;
    const middle = (other) => { const box = other.getBoundingClientRect(); return box.top + box.height / 2; };
    const { previousElementSibling: above, nextElementSibling: below } = item;
    if (above && event.clientY < middle(above)) swap(item, -1);
    else if (below && event.clientY > middle(below)) swap(item, 1);
  }
  function drop(item) {
    item.classList.remove("order-held");
    if (held !== null && held !== place(item)) announce(item);
    held = null;
  }

  activate(rows[0]);
  return {
    list,
    order: () => all().map((item) => Number(item.dataset.index)),
    arrange: (wanted) => list.append(...wanted.map((index) => rows.find((item) => Number(item.dataset.index) === index))),
    mark: (line) => all().forEach((item, k) => item.classList.toggle("order-faulty", k + 1 === line)),
  };
}

/** Your order beside the right one, and both curves in one picture. */
function results({ result, target, target_curve: targetCurve, measure }) {
  const panel = (name, run) => h("section", { class: "order-panel", "aria-label": name },
    h("p", { class: "order-name" }, name), runReport(run, measure));
  const chart = result?.curve ?? targetCurve;
  return [
    h("div", { class: "order-panels" }, result && panel("Your order gives", result.run), panel("A right order gives", target)),
    chart ? curveChart(chart) : "",
  ];
}

function render({ model, el }) {
  const state = model.get("state");
  const { root, say, close } = frame(el, { name: `Put in order: ${plain(state.title)}`, kind: "piece lab-order" });
  const verdictBox = h("div", {});
  const given = h("div", {});
  const lines = lineList({
    lines: state.lines, texts: state.texts, say,
    order: state.result?.order ?? state.earlier?.order ?? state.start,
    changed: () => { verdictBox.replaceChildren(); lines.mark(null); },
  });
  const run = runButton({ model, label: "Run this order", collect: () => ({ order: lines.order() }) });
  const again = h("button", { class: "lab-button", type: "button", onclick: () => {
    lines.arrange(state.start);
    verdictBox.replaceChildren();
    lines.mark(null);
    say("The lines are as they were at first.");
  } }, "Shuffle back");
  const trouble = troubleBox();
  root.append(heading("Put in order"), h("p", { class: "lab-title" }, ...prose(state.title)));
  if (state.setup) {
    root.append(h("details", { class: "order-setup", open: true },
      h("summary", {}, "This runs first"), codeBlock(state.setup)));
  }
  root.append(
    h("p", { class: "order-hint lab-quiet" }, "Drag the lines, use their arrows, or press Alt+↑ and Alt+↓ on a line."),
    lines.list, h("div", { class: "lab-row order-run" }, run.button, again, run.words), verdictBox, given, trouble.box);
  if (state.earlier && !state.result) {
    verdictBox.append(h("p", { class: "lab-note" }, "This is the order you ran last time: ",
      h("strong", {}, state.earlier.right ? "it was right." : "it was not right yet.")));
  }

  let seen = 0;
  const stop = follow(model, (now) => {
    run.heard(now.running);
    trouble.show(now.trouble);
    if (seen === now.runs && seen) return;
    given.replaceChildren(...results(now));
    if (now.runs === 0) return;
    seen = now.runs;
    const { right, run: came } = now.result;
    const words = right ? "Your order gives what a right order gives."
      : came.interrupted ? "The run was interrupted." : came.fault
      ? "This order ends in an error; the line is marked." : "It runs, but it gives something else.";
    lines.mark(came.fault?.line);
    verdictBox.replaceChildren(verdict(right, h("p", {}, h("strong", {}, right ? "Right. " : "Not yet. "), words)));
    say(`${right ? "Right." : "Not yet."} ${words}`);
  });
  return () => { stop(); run.settle(); close(); };
}
export default { render };
export { moved };
