// A DataLoader at work: lanes of workers and model, bars of what was tried, a slider to try more.

const SILENT = "The kernel has not answered. It may be measuring, busy, or not running.";

/** One piece of a lane. A wait is thin and hatched: it does not speak by colour alone. */
function piece([kind, x, width, batch], y) {
  const thin = kind === "wait";
  return draw("rect", {
    class: `loader-${kind}`, "data-batch": batch, x, width, y: thin ? y + 7 : y, height: thin ? 8 : 22,
  });
}

/** What stands still: axis, names, pieces. */
function chart(state) {
  const [width, height] = state.size;
  const [, top, right, bottom] = state.box;
  const svg = draw("svg", { class: "loader-chart", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (const [x, words] of state.ticks) {
    svg.append(draw("path", { class: "loader-grid", d: `M${x} ${top}V${bottom}` }),
      draw("text", { x, y: bottom + 14, "text-anchor": "middle" }, words));
  }
  svg.append(draw("text", { x: right, y: bottom + 28, "text-anchor": "end" }, "ms"));
  for (const { name, y, pieces } of state.lanes) {
    svg.append(draw("text", { class: "loader-name", x: 4, y: y + 15 }, name), ...pieces.map((one) => piece(one, y)));
  }
  return svg;
}

/** The way of one batch: from where it was ready to where the model had it. */
function wayOf(state, batch) {
  const [from, to] = state.links[batch];
  const lane = state.lanes.find(({ name, pieces }) => name !== "model" && pieces.some((one) => one[3] === batch));
  if (!lane) return "";
  const model = state.lanes[state.lanes.length - 1].y;
  return `M${from} ${lane.y + 22}L${to} ${model}`;
}

/** A row for each number of workers that was tried. */
function bars(trials) {
  return h("table", { class: "loader-trials" },
    h("thead", {}, h("tr", {}, ["workers", "a batch every", "model waits", "memory"].map((one) =>
      h("th", { scope: "col" }, one)))),
    h("tbody", {}, trials.map((row) => h("tr", { class: row.here ? "loader-here" : "" },
      h("th", { scope: "row" }, String(row.workers), row.here && h("span", { class: "loader-now" }, " now")),
      h("td", {}, row.trouble ? h("span", { title: row.trouble }, icon("warn"), " failed")
        : h("span", { class: "loader-bar" },
          h("span", { class: "loader-bar-waits", style: `width:${row.bar[0]}px` }),
          h("span", { class: "loader-bar-works", style: `width:${row.bar[1]}px` }),
          h("span", { class: "loader-ms" }, row.ms))),
      h("td", {}, row.waits), h("td", {}, row.memory)))));
}

/** The slider that asks for another number of workers. */
function workersSlider(state, kernel) {
  const number = h("output", {}, String(state.workers));
  const input = h("input", {
    type: "range", min: 0, max: state.most, step: 1, value: state.workers,
    oninput: () => { number.textContent = input.value; },
    onchange: () => kernel.request("measure", { workers: Number(input.value) }, SILENT),
  });
  const show = (now) => { input.value = String(now.workers); number.textContent = String(now.workers); };
  return { element: h("label", { class: "loader-slider" }, h("code", {}, "num_workers"), input, number), show };
}

/** What stands below the title, in words. */
function finding(state) {
  const tone = state.good ? "loader-good" : "loader-bad";
  return h("p", { class: `loader-finding ${state.waits === null ? "" : tone}` },
    state.waits !== null && icon(state.good ? "right" : "warn"), h("span", {}, ...prose(state.verdict)));
}

/** How much of the time the model waits, as one strip. */
function strip({ share, waits }) {
  if (share === null) return "";
  const width = `${Math.round(1000 * share) / 10}%`;
  return h("p", { class: "loader-strip", title: "the model's time" },
    h("span", { class: "loader-bar-waits", style: `width:${width}` }),
    h("span", { class: "loader-bar-works", style: "flex:1" }),
    h("span", { class: "loader-strip-words" }, `waits ${waits}`));
}

/** The parts that follow each state; the slider stays, so that it keeps the focus. */
function body(state, read) {
  const way = draw("path", { class: "loader-way", d: "" });
  const picture = chart(state);
  picture.append(way);
  const last = state.batches.length - 1;
  const slider = last > 0 && h("input", {
    type: "range", min: 0, max: last, value: Math.min(read.batch, last), "aria-label": "Batch",
    oninput: () => move(Number(slider.value)),
  });
  const said = h("p", { class: "loader-said" });
  function move(batch) {
    read.batch = batch;
    if (slider) {
      slider.value = String(batch);
      slider.setAttribute("aria-valuetext", state.batches[batch]);
    }
    said.textContent = state.batches[batch];
    way.setAttribute("d", wayOf(state, batch));
    for (const one of picture.querySelectorAll("rect")) {
      one.classList.toggle("loader-chosen", Number(one.dataset.batch) === batch);
    }
  }
  picture.addEventListener("click", ({ target }) => { if (target.dataset?.batch) move(Number(target.dataset.batch)); });
  if (last >= 0) move(Math.min(read.batch, last));
  return [
    finding(state), strip(state), picture,
    h("ul", { class: "loader-legend" }, state.legend.map(([kind, words]) =>
      h("li", {}, draw("svg", { class: "loader-key", viewBox: "0 0 14 22", "aria-hidden": "true" }, piece([kind, 0, 14, -1], 0)), words))),
    slider && h("label", { class: "loader-slider" }, h("span", {}, "batch"), slider), said,
    state.begin && h("p", { class: "lab-quiet" }, `The first ${state.begin} ms, in which the workers start, are not drawn.`),
    state.left_out > 0 && h("p", { class: "lab-quiet" }, `${state.left_out} more batches are counted, but not drawn.`),
    state.trials.length > 0 && h("div", { class: "loader-scroll", role: "region", tabindex: "0", "aria-label": "Numbers of workers" },
      bars(state.trials)),
    h("ul", { class: "loader-remarks" }, state.remarks.map(([level, words]) =>
      h("li", { class: level === "problem" ? "loader-problem" : "" },
        icon(level === "problem" ? "warn" : "Learned"), h("span", {}, ...prose(words))))),
  ].filter(Boolean);
}

function render({ model, el }) {
  const state = model.get("state");
  const { root, say, close } = frame(el, { name: "A DataLoader at work", kind: "piece lab-loader" });
  const trouble = troubleBox();
  const wait = h("p", { class: "piece-wait", role: "status" });
  const kernel = patience({ model, says: (text) => { wait.textContent = text; } });
  const title = h("p", { class: "lab-title" });
  const parts = h("div", {});
  const goal = h("div", { class: "lab-note", hidden: state.target === null });
  const workers = state.most !== null && workersSlider(state, kernel);
  root.append(
    h("header", { class: "piece-head" }, h("span", { class: "piece-kind" }, "Data loading")), title,
    ...(workers ? [workers.element, wait] : []), goal, trouble.box, parts);
  const read = { batch: 0 };
  let told = null;
  const stop = follow(model, (now) => {
    if (kernel.waiting()) kernel.settle();
    title.replaceChildren(h("code", {}, now.title));
    if (workers) workers.show(now);
    goal.className = `lab-note${now.reached ? " lab-good" : ""}`;
    goal.replaceChildren(...(now.reached ? [icon("right"), " Reached: "] : []),
      `${now.reached ? "the" : "Your target: the"} model should wait at most ${now.target} of the time; it waits ${now.waits ?? "?"}.`);
    trouble.show(now.trouble);
    parts.replaceChildren(...body(now, read));
    if (told !== null && told !== now.verdict) say(now.verdict);
    told = now.verdict;
  });
  return () => { stop(); kernel.settle(); close(); };
}
export default { render };
