// The race of optimizers: level lines, ways that grow step by step, and sliders that race anew.

const PLAY_MS = 5000; // for all steps

/** What stands still: the level lines and the middle of the picture. */
function ground({ size: [width, height], levels, goals }) {
  return draw("svg", { class: "race-picture", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    ...levels.map((d) => draw("path", { class: "race-level", d })),
    ...goals.map((d) => draw("path", { class: "race-goal-mark", d })));
}

/** The lines of a way up to a step, as a path; a line outside the picture is empty. */
function wayTo(lines, step) {
  return lines.slice(0, step + 1).filter((line) => line.length)
    .map(([a, b, c, d]) => `M${a} ${b}L${c} ${d}`).join("");
}

/** Where a racer stands after a step; its last place if it has ended before. */
function placeAt(places, step) {
  return places[Math.min(step, places.length - 1)];
}

/** What a racer has come to: "0.23", "0.001, there at 20", "diverged at step 7". */
function saysAt({ heights, arrived, stopped, result }, step) {
  if (stopped && step >= heights.length - 1) return result;
  const height = heights[Math.min(step, heights.length - 1)];
  return arrived !== null && step >= arrived ? `${height}, there at ${arrived}` : height;
}

/** One racer's line, head and number. */
function runner(number) {
  const line = draw("path", { class: `race-way race-${number}` });
  const head = draw("circle", { class: `race-head race-${number}`, r: 8 });
  const label = draw("text", { class: "race-number", "text-anchor": "middle" }, String(number + 1));
  return {
    line,
    marks: [head, label],
    go({ places, lines }, step) {
      const [x, y] = placeAt(places, step);
      line.setAttribute("d", wayTo(lines, step));
      head.setAttribute("cx", x);
      head.setAttribute("cy", y);
      label.setAttribute("x", x);
      label.setAttribute("y", y);
    },
  };
}

/** A row of the legend, with what it says at a step. */
function legendRow({ name, settings }, number) {
  const says = h("span", { class: "race-says" });
  const element = h("li", {},
    draw("svg", { class: "race-key", viewBox: "0 0 20 20", "aria-hidden": "true" },
      draw("circle", { class: `race-head race-${number}`, cx: 10, cy: 10, r: 8 }),
      draw("text", { class: "race-number", x: 10, y: 10, "text-anchor": "middle" }, String(number + 1))),
    h("span", { class: "race-name", title: settings }, name), says);
  return { element, says };
}

/** One slider over its stops. */
function tuner({ name, label, stops, at }, moved) {
  const number = h("span", { class: "race-number-of" }, String(stops[at]));
  const input = h("input", {
    type: "range", min: 0, max: stops.length - 1, step: 1, value: at, "aria-label": label,
    "aria-valuetext": String(stops[at]),
    oninput: () => {
      const value = stops[Number(input.value)];
      number.textContent = String(value);
      input.setAttribute("aria-valuetext", String(value));
      moved(name, value);
    },
  });
  return h("label", { class: "race-tuner" }, h("span", {}, label), input, number);
}

/** What moves: the step, by hand or by itself. */
function transport({ changed }) {
  let step = 0;
  let steps = 0;
  let timer = 0;
  const words = h("span", { class: "race-step" });
  const scrub = h("input", {
    type: "range", min: 0, step: 1, "aria-label": "Step of the race",
    oninput: () => { stop(); go(Number(scrub.value)); },
  });
  const button = h("button", { class: "lab-button lab-main", type: "button", onclick: () => toggle() }, "Play");

  function go(to) {
    step = Math.max(0, Math.min(steps, to));
    scrub.value = String(step);
    words.textContent = `step ${step} of ${steps}`;
    changed(step);
  }
  function stop() {
    clearInterval(timer);
    timer = 0;
    button.textContent = "Play";
  }
  function toggle() {
    if (timer) { stop(); return; }
    if (step >= steps) go(0);
    button.textContent = "Pause";
    const stride = Math.max(1, Math.ceil(steps / (PLAY_MS / 33)));
    timer = setInterval(() => {
      go(step + stride);
      if (step >= steps) stop();
    }, Math.max(33, (PLAY_MS * stride) / Math.max(steps, 1)));
  }
  return {
    element: h("div", { class: "race-bar" }, button, scrub, words),
    take(count) {
      const atEnd = step === steps;
      steps = count;
      scrub.max = String(count);
      go(atEnd ? count : step);
    },
    stop,
  };
}

function render({ model, el }) {
  const first = model.get("state");
  const { root, say, close } = frame(el, { name: `Race on a ${first.title}`, kind: "piece lab-race" });
  const trouble = troubleBox();
  const wait = h("p", { class: "piece-wait", role: "status" });
  const kernel = patience({ model, says: (text) => { wait.textContent = text; } });
  const tuned = {};
  let behind = false; // a slider has moved while the kernel was at it
  const request = () => {
    if (kernel.waiting()) { behind = true; return; }
    kernel.request("tune", { ...tuned }, "The kernel has not answered. It may be busy, or not running.");
  };
  const title = h("p", { class: "lab-title" });
  const goal = h("p", { class: "race-goal" });
  const holder = h("div", { class: "race-holder" });
  const legend = h("ul", { class: "race-legend" });
  const notes = h("div", {});
  let state = null;
  let runners = [];
  let rows = [];
  const show = (step) => {
    runners.forEach((one, i) => one.go(state.racers[i], step));
    rows.forEach(({ says }, i) => { says.textContent = saysAt(state.racers[i], step); });
  };
  const film = transport({ changed: (step) => { if (state) show(step); } });
  const tuners = first.sliders.map((one) => tuner(one, (name, value) => { tuned[name] = value; request(); }));
  root.append(
    h("header", { class: "piece-head" }, h("span", { class: "piece-kind" }, "Race")),
    title, goal,
    h("div", { class: "race-parts" }, h("div", { class: "race-left" }, holder, film.element),
      h("div", { class: "race-side" }, legend, ...tuners, wait)),
    trouble.box, notes);

  const end = follow(model, (now) => {
    if (kernel.waiting()) kernel.settle();
    const again = state !== null;
    state = now;
    title.replaceChildren(h("code", {}, now.title));
    goal.hidden = now.goal === null;
    if (now.goal) {
      const mark = now.goal.reached ? [icon("right"), h("strong", { class: "race-good" }, "Reached. ")] : [h("strong", {}, "Target: ")];
      goal.replaceChildren(...mark, now.goal.says);
    }
    const picture = ground(now);
    runners = now.racers.map((_, i) => runner(i));
    // A head stays readable where other ways cross it.
    picture.append(...runners.map(({ line }) => line), ...runners.flatMap(({ marks }) => marks));
    holder.replaceChildren(picture);
    rows = now.racers.map(legendRow);
    legend.replaceChildren(...rows.map(({ element }) => element));
    notes.replaceChildren(h("ul", { class: "race-notes" }, now.remarks.map(([level, words]) =>
      h("li", {}, icon(level === "problem" ? "warn" : "Learned"), h("span", {}, ...prose(words))))));
    trouble.show(now.trouble);
    film.take(now.steps);
    if (again) say(now.racers.map(({ name, result }) => `${name} ${result}`).join(", "));
    if (behind) { behind = false; request(); }
  });
  return () => { film.stop(); end(); kernel.settle(); close(); };
}
export { placeAt, saysAt, wayTo };
export default { render };
