// The transport under the picture: one timeline, forward then backward, with the bytes that are kept
// for backward drawn above the slider.

const CHART_WIDTH = 1000;
const CHART_HEIGHT = 34;
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
const TRANSPORT_ICONS = {
  in: "M8 3v10M3 8h10", out: "M3 8h10", all: "M3 6.5V3h3.5M9.5 3H13v3.5M13 9.5V13H9.5M6.5 13H3V9.5",
  start: "M4 3.5v9M12.5 3.5v9L6 8z", back: "M11 3.5v9L4.5 8z", play: "M4.5 3l8 5-8 5z",
  pause: "M5 3.5v9M11 3.5v9", on: "M5 3.5v9L11.5 8z", end: "M12 3.5v9M3.5 3.5v9L10 8z",
};

/**
 * Two runs on one timeline: at each place how many steps of each run are done.
 * @param {number[][]} pairs ops that both have, in order
 * @returns {number[][]} for each run, its count of steps at place 0, 1, ...
 */
export function mergeTimes(films, pairs, nodePairs) {
  if (films.length === 1) return [Array.from({ length: films[0].steps.length + 1 }, (_, i) => i)];
  const [a, b] = films;
  const times = [[0], [0]];
  const push = (i, j) => {
    times[0].push(times[0].at(-1) + i);
    times[1].push(times[1].at(-1) + j);
  };
  const weave = (endA, endB, shared) => {
    let [i, j] = [times[0].at(-1), times[1].at(-1)];
    for (const [sameA, sameB] of [...shared, [endA, endB]]) {
      if (sameA < i || sameB < j) continue; // not in the order of both
      for (; i < sameA; i += 1) push(1, 0);
      for (; j < sameB; j += 1) push(0, 1);
      if (sameA < endA) {
        push(1, 1);
        [i, j] = [i + 1, j + 1];
      }
    }
  };
  weave(a.forward, b.forward, pairs);
  const ran = nodePairs.map(([one, two]) => [a.nodes[one].ran, b.nodes[two].ran])
    .filter(([one, two]) => one >= 0 && two >= 0).sort((one, two) => one[0] - two[0]);
  weave(a.steps.length, b.steps.length, ran);
  return times;
}

/** The chart's outline: at most `most` points, each the largest of its stretch. */
export function outline(held, n, most = 400) {
  const top = Math.max(1, ...held);
  const points = [[0, 0]];
  const stride = Math.max(1, Math.ceil(n / most));
  for (let i = 0; i < n; i += stride) {
    const highest = Math.max(...held.slice(i, i + stride));
    points.push([(i + Math.min(stride, n - i)) / n, highest / top]);
  }
  return points;
}

function chart(film, times, n) {
  const held = Array.from({ length: n }, (_, i) => film.held[times[i + 1] - 1] ?? 0);
  const points = outline(held, n);
  const svg = (tag, attributes, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const tall = CHART_HEIGHT - 2;
  let d = `M0 ${CHART_HEIGHT}`;
  let before = 0;
  for (const [x, y] of points) { // as steps: bytes change at a step, not between two
    d += `H${(before * CHART_WIDTH).toFixed(1)}V${(CHART_HEIGHT - y * tall).toFixed(1)}`;
    before = x;
  }
  d += `H${CHART_WIDTH}V${CHART_HEIGHT}Z`;
  const picture = svg("svg", {
    class: "lab-player-chart", viewBox: `0 0 ${CHART_WIDTH} ${CHART_HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true",
  }, svg("path", { d }));
  return { picture, peak: Math.max(0, ...held) };
}

function transportIcon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  for (const [key, value] of Object.entries({ viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" })) svg.setAttribute(key, value);
  path.setAttribute("d", TRANSPORT_ICONS[name]);
  svg.append(path);
  return svg;
}

/** The transport of a view: `draw(place, text)` shows where the run is. */
function transport(view, n) {
  const { films, times } = view;
  const total = times[0].length - 1;
  const button = (name, label, onclick) =>
    h("button", { class: "lab-player-key", type: "button", "aria-label": label, title: label, onclick }, transportIcon(name));
  const play = button("play", "Play", () => view.toggle());
  play.classList.add("lab-player-play");
  const slider = h("input", {
    type: "range", class: "lab-player-slider", min: 0, max: total, step: 1, "aria-label": "Step of the run",
    oninput: () => view.go(Number(slider.value), { pause: true }),
  });
  const head = h("div", { class: "lab-player-head", "aria-hidden": "true" });
  const charts = films.map((film, i) => chart(film, times[i], total));
  const turn = total ? turnOf(films, times, total) : 1;
  const peak = Math.max(...charts.map((each) => each.peak));
  const kept = h("b", { class: "lab-player-kept" });
  const track = h("div", { class: "lab-player-track" },
    h("div", { class: "lab-player-phases", "aria-hidden": "true" },
      h("span", { style: turn < 1 && `width:${(turn * 100).toFixed(2)}%` }, "forward"),
      turn < 1 && h("span", { class: "lab-player-backward" }, "backward"), kept),
    h("div", { class: "lab-player-memory", hidden: peak === 0 },
      charts.map((each) => each.picture), head,
      turn < 1 && h("i", { class: "lab-player-turn", style: `left:${(turn * 100).toFixed(2)}%` })),
    slider);
  const says = h("div", { class: "lab-player-says" });
  const speed = h("select", {
    class: "lab-player-select", "aria-label": "Speed",
    onchange: () => { view.speed = Number(speed.value); },
  }, SPEEDS.map((each) => h("option", { value: each, selected: each === 1 }, `${each} ×`)));
  const keys = h("div", { class: "lab-player-keys", role: "group", "aria-label": "Playback" },
    button("start", "To the start", () => view.go(0, { pause: true })),
    button("back", "One step back", () => view.step(-1)),
    play,
    button("on", "One step on", () => view.step(1)),
    button("end", "To the end", () => view.go(total, { pause: true })));
  const element = h("div", { class: "lab-player-transport" }, track,
    h("div", { class: "lab-player-bar" }, keys, says, speed));

  function draw(place, text, held) {
    slider.value = String(place);
    slider.setAttribute("aria-valuetext", text);
    head.style.left = `${(100 * place) / total}%`;
    slider.style.setProperty("--lab-share", `${(100 * place) / total}%`);
    if (says.textContent !== text) says.textContent = text;
    for (const each of [says, slider, head]) each.classList.toggle("lab-player-back", place > turn * total);
    const bytes = peak ? `${spellBytes(held)} kept` : "";
    if (kept.textContent !== bytes) kept.textContent = bytes;
  }
  function playing(on) {
    play.replaceChildren(transportIcon(on ? "pause" : "play"));
    play.setAttribute("aria-label", on ? "Pause" : "Play");
    play.title = on ? "Pause" : "Play";
  }
  return { element, draw, playing, total, slider };
}

/** The share of the timeline at which backward begins. */
function turnOf(films, times, total) {
  for (let place = 0; place <= total; place += 1) {
    if (films.some((film, i) => times[i][place] > film.forward)) return (place - 1) / total;
  }
  return 1;
}
