// The player: what ran, played step by step. Python packs a record (player_state.py); here it is
// unpacked, laid out, drawn and played. The files in front of this: graph_*.js (where boxes go),
// player_film.js (what ran), player_items.js (what a box stands for), player_canvas.js and
// player_paint.js (the picture), player_source.js and player_details.js (beside it),
// player_timeline.js (below it), player_play.js and player_choice.js (what a reader does).

const VIEWS = { ops: "Operations", autograd: "Autograd nodes" };

/** The film, with room for the details that come later. */
function filmOf(packed, details, key) {
  const film = unpackFilm(packed);
  return Object.assign(film, { key, known: { values: {}, nodes: {}, formulas: {}, count: 0 }, asked: new Set() , ...(details && { whole: true })});
}

function learn(film, details) {
  for (const part of ["values", "nodes", "formulas"]) Object.assign(film.known[part], details[part]);
  film.known.count += 1;
}

/** What stands in the transport: "forward 3 of 14: linear (32, 128)". */
export function sayStep(film, at) {
  if (at < 0) return "before the first step";
  const step = film.steps[at];
  if (!step) return "";
  if (!step.back) {
    const op = film.ops[step.index];
    const value = film.values[op.outputs[0]];
    return `forward ${at + 1} of ${film.forward}: ${op.name}${value ? ` → ${spellShape(value.shape)}` : ""}`;
  }
  const node = film.nodes[step.index];
  const name = node.kind === "accumulate" ? `${node.parameter || "leaf"}.grad` : plainNode(node.name);
  return `backward ${at + 1 - film.forward} of ${film.steps.length - film.forward}: ${name}`;
}

/** What a box or a step is about: see `detailsPane`. */
function subjectOf(pane, item, pinned) {
  const look = pane.scene.looks[item];
  const index = pane.scene.refs[item];
  if (look.kind === "op" || look.kind === "function") return { kind: "op", index, pinned };
  if (look.kind === "node") return { kind: "node", index, pinned };
  if (look.kind === "input") return { kind: "value", index, pinned };
  if (look.kind === "error") return { kind: "error", index: 0, pinned };
  const about = pane.index.of(item);
  return { kind: "frame", index, item, look, about, only: about.ops.length === 1 ? about.ops[0] : -1, pinned };
}

function open(state, { root, say, model }) {
  const films = state.films.map((packed, i) => filmOf(packed, state.details?.[i], i));
  films.forEach((film, i) => state.details?.[i] && learn(film, state.details[i]));
  films.forEach((film, i) => { film.source = state.source?.[i] ?? []; });
  const known = { ...state.scenes }; // packed, by view
  const diff = state.diff;
  const times = mergeTimes(films, diff?.ops ?? [], diff?.nodes ?? []);
  const total = times[0].length - 1;
  const view = {
    films, times, total, diff, say, error: state.error, place: 0, speed: 1, colour: "module", shows: state.views[0],
    panes: [], hits: [], playing: false, chosen: null,
    isOpen: (film, subject) => subject.kind === "frame" && view.panes[film.key].open.has(subject.item),
  };
  view.place = state.error ? total : times[0].findIndex((_, place) => films.every((film, i) => times[i][place] >= film.forward));

  const scenes = films.map(() => ({})); // unpacked when a view is first shown
  const parted = new Set((diff?.lines ?? []).map(([file, line]) => `${file}\n${line}`));
  const newSource = () => sourcePane(films, { onpick: (key) => view.pickLine(key), onkey: globalKey, parted });
  view.source = newSource();
  const details = detailsPane(view);
  const keys = transport(view);
  const stage = h("div", { class: "lab-player-stage" });

  const sceneOf = (i) => (scenes[i][view.shows] ??= unpackScene(known[view.shows][i]));
  const indexOf = (i) => (sceneOf(i).index ??= indexItems(sceneOf(i), films[i]));

  // --- what is drawn at a place of the timeline -----------------------------------------------------

  const atOf = (i) => (total ? times[i][view.place] - 1 : 0); // without a timeline all is there
  const moved = (i) => view.place === 0 || times[i][view.place] > times[i][view.place - 1];

  /** The run that made the step at this place; in a comparison it may be the second one. */
  const leader = () => (moved(0) || films.length === 1 ? 0 : 1);

  function draw({ follow = false } = {}) {
    const lead = leader();
    films.forEach((film, i) => {
      const pane = view.panes[i];
      pane.at = atOf(i);
      pane.now = moved(i) ? itemOfStep(pane, pane.at) : -1;
      pane.nowNode = film.steps[pane.at]?.back ? film.steps[pane.at].index : -1;
      pane.now = pane.now >= 0 ? pane.set.stand[pane.now] : -1;
      if (follow && pane.now >= 0) pane.reveal(pane.now);
      pane.draw();
    });
    const film = films[lead];
    const at = atOf(lead);
    const back = Boolean(film.steps[at]?.back);
    view.source.draw(films.map((_, i) => atOf(i)), back, films.map((each, i) => (i === lead ? opOfStep(each, atOf(i)) : -1)));
    keys.draw(view.place, sayStep(film, at), Math.max(...films.map((each, i) => each.held[atOf(i)] ?? 0)));
    drawDetails();
  }

  function itemOfStep(pane, at) {
    const step = pane.film.steps[at];
    if (!step) return -1;
    return step.back ? pane.index.itemOfNode[step.index] : pane.index.itemOfOp[step.index];
  }

  function drawDetails() {
    const { chosen } = view;
    const i = chosen?.pane ?? leader();
    const [film, at] = [films[i], atOf(i)];
    const step = film.steps[at];
    const subject = chosen ? subjectOf(view.panes[i], chosen.item, true)
      : !step || !total ? { kind: "start", index: 0, total }
      : step.back ? { kind: "node", index: step.index } : { kind: "op", index: step.index };
    want(film, subject, at);
    details.draw(film, subject, at);
    const lead = leader();
    view.source.tell(figuresOfStep(films[lead], atOf(lead)));
  }

  /** Ask for the details of a stretch of steps that the kernel has not told yet. */
  function want(film, subject, at) {
    if (film.whole || ["start", "error"].includes(subject.kind) || subject.only < 0) return;
    const step = subject.kind === "op" ? subject.index : subject.kind === "frame" ? subject.only
      : subject.kind === "value" ? film.ops.findIndex(({ inputs }) => inputs.includes(subject.index))
      : subject.kind === "node" ? Math.max(film.nodes[subject.index].ran, film.nodes[subject.index].op, 0)
      : Math.max(at, 0);
    const stretch = Math.floor(Math.max(step, 0) / state.stretch);
    const key = subject.kind !== "node" || film.nodes[subject.index]?.ran >= 0 ? stretch : `n${subject.index}`;
    if (film.asked.has(key)) return;
    film.asked.add(key);
    if (typeof key === "number") ask(model, "details", { film: film.key, first: stretch * state.stretch });
    else ask(model, "node", { film: film.key, node: subject.index });
  }

  Object.assign(view, { draw, leader, atOf });
  playable(view, keys);
  choosable(view);

  // --- the head -------------------------------------------------------------------------------------

  const remark = h("p", { class: "lab-player-note" });
  const remarks = h("div", { class: "lab-player-notebox", hidden: true }, remark, h("button", {
    class: "lab-player-close", type: "button", "aria-label": "Light everything again", title: "Light everything again",
    onclick: () => {
      view.select(-1);
      view.panes[0].element.querySelector("[tabindex]").focus({ preventScroll: true });
    },
  }, "×"));
  view.note = (text) => {
    remarks.hidden = !text;
    remark.textContent = text;
    if (text) say(text);
  };

  const { search, count } = searchBox(view, { find: view.searchFor, show: view.showItem });
  const { colours, legend, recolour } = colouring(view, { scene: sceneOf(0), index: indexOf(0) });

  function globalKey(event) {
    if (event.target.closest("input:not([type=range]), select, summary")) return;
    const button = event.target.closest("button");
    const act = {
      ArrowRight: () => view.step(event.shiftKey ? 10 : 1), ArrowLeft: () => view.step(event.shiftKey ? -10 : -1),
      Home: () => view.go(0, { pause: true }), End: () => view.go(total, { pause: true }),
      " ": button ? null : () => view.toggle(), Escape: () => view.select(-1),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    act();
    event.preventDefault();
    event.stopPropagation();
  }

  // --- together -------------------------------------------------------------------------------------

  function build() {
    for (const pane of view.panes) pane.close();
    view.panes = films.map((film, i) => {
      const scene = sceneOf(i);
      const pane = graphCanvas({
        film, scene, index: indexOf(i), root, onleaf: (node) => view.path(node, i),
        name: `Graph${films.length > 1 ? " AB"[i + 1] : ""}: press the down arrow to go from box to box`,
        onselect: (item) => view.select(item, i), onfold: (item) => view.fold(item, i), onkey: globalKey,
      });
      if (diff) pane.only = onlyHere(pane, new Set(diff.only[i]), new Set(diff.nodesOnly[i]));
      pane.arrange(new Set(scene.open));
      return pane;
    });
    stage.replaceChildren(remarks, ...view.panes.map((pane, i) => h("div", { class: "lab-player-side" },
      films.length > 1 && h("div", { class: "lab-player-label" }, state.labels[i]),
      pane.element, zoomKeys(pane))));
    recolour(view.colour);
    draw();
  }

  const picker = viewPicker(state.views, (name) => {
    view.shows = name;
    view.unchoose();
    if (known[name]) build();
    else ask(model, "scene", { view: name });
  });
  const menu = playerMenu({
    unfold(all) {
      for (const pane of view.panes) {
        const every = pane.scene.ends.map((_, item) => item).filter((item) => pane.scene.ends[item] > item + 1);
        pane.arrange(all ? new Set(every) : new Set(pane.scene.open), pane.now);
        pane.home();
      }
      draw();
    },
    svg: () => view.panes.forEach((pane, i) => download(`${state.title}${films.length > 1 ? `-${"ab"[i]}` : ""}.svg`, svgOf(pane, state.title), "image/svg+xml")),
    page: state.offline ? null : () => ask(model, "page"),
  });

  const hasSource = films.some((film) => film.ops.some(({ site }) => site));
  root.addEventListener("keydown", globalKey);
  root.replaceChildren(
    h("div", { class: "lab-player-top" },
      h("strong", { class: "lab-player-title" }, state.title), h("span", { class: "lab-quiet lab-player-totals" }, state.totals), notesOf(state.notes),
      h("div", { class: "lab-player-tools" }, search, count, picker, h("label", { class: "lab-player-by" }, h("span", { class: "lab-quiet" }, "Colour"), colours), menu)),
    state.error ? h("p", { class: "lab-note lab-bad" }, state.error) : "",
    h("div", { class: `lab-player-main${hasSource ? "" : " lab-player-bare"}` },
      h("div", { class: "lab-player-left" }, hasSource && view.source.element, details.element),
      h("div", { class: "lab-player-right" }, stage, legend, total > 0 && keys.element)));
  build();
  if (state.error) draw({ follow: true });
  if (!state.source && hasSource) ask(model, "source");
  return {
    view,
    answer(answer) {
      if (answer.source) {
        films.forEach((film, i) => { film.source = answer.source[i]; });
        const old = view.source.element;
        view.source = newSource();
        old.replaceWith(view.source.element);
        draw();
      }
      if (answer.scenes) {
        known[answer.view] = answer.scenes;
        build();
      }
      if (answer.details) {
        learn(films[answer.film], answer.details);
        drawDetails();
      }
      if (answer.page) download(`${state.title}.html`, answer.page, "text/html");
    },
    close() {
      view.stop();
      root.removeEventListener("keydown", globalKey);
      for (const pane of view.panes) pane.close();
    },
  };
}

/** Which boxes stand only for what one of two runs has. */
function onlyHere(pane, ops, nodes) {
  return ({ about }) => (pane.scene.view === "ops"
    ? about.ops.length > 0 && about.ops.some((op) => ops.has(op))
    : about.nodes.some((node) => nodes.has(node)));
}

function render({ model, el }) {
  const state = model.get("state");
  const { root, say, close } = frame(el, { name: `Graph of ${state.title}`, kind: "player" });
  let shown = null;
  const stop = follow(model, (changed) => {
    shown?.close();
    root.setAttribute("aria-label", `Graph of ${changed.title}`);
    shown = open(changed, { root, say, model });
  });
  const answered = () => shown.answer(model.get("answer"));
  model.on("change:answer", answered);
  return () => {
    model.off("change:answer", answered);
    stop();
    shown.close();
    close();
  };
}
export default { render };
