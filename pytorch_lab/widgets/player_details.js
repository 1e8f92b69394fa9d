// What is known of a step or of a box: its values, what it saved, the formula of its derivative.

const MODE_SAYS = {
  no_grad: "Ran under no_grad: no node was made, no gradient comes back through it.",
  inference: "Ran in inference_mode: no node, no version count.",
};
const KIND_SAYS = {
  detach: "The graph ends here on purpose: the result shares memory but has no past.",
  exit: "The value leaves torch here: what is computed from it has no gradient.",
  function: "A custom autograd.Function; what ran in its forward lies inside.",
  checkpoint: "A checkpoint: what ran in it is run again in backward.",
  transform: "torch.func: the inner operations have no grad_fn.",
  compiled: "Compiled code: one node for all of it.",
  backward: "Calls backward from within the recorded code.",
  optimizer: "Part of an optimizer's step.",
};

/** "min … max · mean · zeros", and in words what is wrong with the values. */
function figures(stats, one = false) {
  if (!stats) return null;
  const [low, high, mean, norm, zeros] = stats;
  const text = low === high
    ? `${one ? "" : "all "}${spellNumber(low)}`
    : `${spellNumber(low)} … ${spellNumber(high)} · mean ${spellNumber(mean)} · norm ${spellNumber(norm)}`;
  return [
    text, zeros >= 0.005 && zeros < 1 && ` · ${Math.round(zeros * 100)} % zeros`,
    warnings(stats),
  ];
}

function nameOfValue(film, value) {
  if (value.name) return value.name;
  return value.op >= 0 ? film.ops[value.op].name : value.kind;
}

/** Numbers of a small tensor as a heat map: blue above zero, orange below. */
function heatMap(numbers, shape, label) {
  const columns = Math.max(shape.at(-1) ?? 1, 1);
  const rows = Math.ceil(numbers.length / columns);
  if (!numbers.length || columns > 128 || rows > 128) return null;
  const cell = Math.max(3, Math.min(26, Math.floor(260 / columns), Math.floor(180 / rows)));
  const top = Math.max(...numbers.map((n) => Math.abs(Number(n)) || 0)) || 1;
  const cells = numbers.map((n, i) => {
    const share = Math.abs(Number(n)) / top;
    const hue = Number(n) < 0 ? "orange" : "blue";
    const bad = !Number.isFinite(Number(n));
    return h("i", {
      style: `grid-column:${(i % columns) + 1};${bad ? "background:var(--lab-bad)" : `background:color-mix(in srgb, var(--lab-hue-${hue}) ${Math.round(share * 100)}%, var(--lab-paper))`}`,
      title: spellNumber(n),
    });
  });
  return h("div", {
    class: "lab-player-heat", role: "img", "aria-label": `${label}: ${rows} ${rows === 1 ? "row" : "rows"} of ${columns}`,
    style: `grid-template-columns:repeat(${columns}, ${cell}px);grid-auto-rows:${cell}px`,
  }, cells);
}

function detailsPane(view) {
  const element = h("section", { class: "lab-player-details", "aria-label": "Details", tabindex: "0" });
  let shown = "";

  /** Redraws only when what it says has changed. */
  function draw(film, subject, at) {
    const key = `${subject.kind} ${subject.index} ${subject.item} ${film.key} ${film.known.count} ${stateKey(film, subject, at)} ${view.isOpen(film, subject)} ${subject.pinned}`;
    if (key === shown) return;
    shown = key;
    const parts = { op: opDetails, node: nodeDetails, value: valueDetails, frame: frameDetails, start: startDetails, error: errorDetails }[subject.kind];
    element.replaceChildren(...parts(view, film, subject, at).flat(Infinity).filter(Boolean));
    element.scrollTop = 0;
  }
  return { element, draw };
}

/** What of the run's place changes the details: which nodes have run. */
function stateKey(film, { kind, index }, at) {
  if (kind === "start") return "";
  if (kind === "frame") return String(at); // what it keeps
  const nodes = kind === "op" ? film.ops[index].nodes : kind === "node" ? [index] : [];
  return nodes.map((node) => (film.nodes[node].ran >= 0 && film.nodes[node].ran <= at ? 1 : 0)).join("");
}

function heading(view, title, sub, pinned) {
  return h("div", { class: "lab-player-heading" },
    h("strong", {}, title), sub && h("span", { class: "lab-quiet" }, sub),
    pinned && h("button", {
      class: "lab-player-close", type: "button", "aria-label": "Back to the step that runs", title: "Back to the step that runs",
      onclick: () => view.select(-1),
    }, "×"));
}

function startDetails(view, film, { total }) {
  return [
    heading(view, film.name, ""),
    h("p", {}, total ? "Nothing has run yet. Press play, or the right arrow for one step." : "Click a box to see what it is."),
  ];
}

function errorDetails(view, film, { pinned }) {
  return [heading(view, "The run ended here", "", pinned), h("p", { class: "lab-player-bad" }, view.error)];
}

function valueDetails(view, film, { index, pinned }, at) {
  const value = film.values[index];
  return [
    heading(view, nameOfValue(film, value), value.kind, pinned),
    h("dl", {}, valueEntry(view, film, index, "in")),
    value.leaf && value.node >= 0 && nodePart(view, film, film.nodes[value.node], at, pinned),
    !value.grad && h("p", { class: "lab-quiet" }, "Does not ask for a gradient."),
  ];
}

function opDetails(view, film, { index, pinned }, at) {
  const op = film.ops[index];
  return [heading(view, op.name, op.module ? `${op.module} (${op.type})` : op.type, pinned), ...aboutOp(view, film, op, at, pinned)];
}

function aboutOp(view, film, op, at, pinned) {
  const notes = [KIND_SAYS[op.kind], MODE_SAYS[op.mode],
    op.inPlace && "Changes its input in place: the same memory, a new version.",
    op.autocast && `Autocast to ${op.autocast}.`].filter(Boolean);
  const nodes = op.nodes.filter((node) => film.nodes[node].kind !== "accumulate")
    .sort((a, b) => (b === op.node) - (a === op.node));
  return [
    notes.map((text) => h("p", { class: "lab-player-remark" }, text)),
    h("dl", {},
      op.inputs.map((value) => valueEntry(view, film, value, "in")),
      op.outputs.map((value) => valueEntry(view, film, value, "out"))),
    nodes.slice(0, 6).map((node) => nodePart(view, film, film.nodes[node], at, pinned)),
    nodes.length > 6 && h("p", { class: "lab-quiet" }, `and ${nodes.length - 6} more ${nodes.length === 7 ? "node" : "nodes"}`),
    !nodes.length && op.kind === "op" && op.mode === "grad" &&
      h("p", { class: "lab-quiet" }, "No node: none of its inputs asks for a gradient."),
  ];
}

/** One input or output: its name, shape and figures; a leaf lights its path. */
function valueEntry(view, film, place, role) {
  const value = film.values[place];
  const known = film.known.values[place] ?? {};
  const name = nameOfValue(film, value);
  const leaf = value.leaf && value.node >= 0;
  const term = leaf
    ? h("button", { class: "lab-player-link", type: "button", title: "Light the path that reaches it", onclick: () => view.path(value.node) }, name)
    : role === "in" && value.op >= 0
      ? h("button", { class: "lab-player-link", type: "button", title: "Show where it was made", onclick: () => view.selectOp(value.op) }, name)
      : h("span", {}, role === "out" ? "result" : name);
  const plain = [value.dtype !== "float32" && value.dtype, value.device !== "cpu" && value.device].filter(Boolean);
  return [
    h("dt", {}, term),
    h("dd", {},
      h("code", {}, spellShape(value.shape)), plain.length > 0 && ` ${plain.join(" ")}`,
      known.version > 0 && value.kind === "result" && ` version ${known.version}`,
      known.view !== undefined && h("span", { class: "lab-quiet" }, ` view of ${nameOfValue(film, film.values[known.view])}`),
      known.stats && h("div", { class: "lab-player-figures" }, figures(known.stats, value.shape.length === 0)),
      known.numbers?.length > 1 && heatMap(known.numbers, value.shape, `values of ${name}`)),
  ];
}

function nodePart(view, film, node, at, pinned) {
  const known = film.known.nodes[node.index];
  const formula = film.known.formulas[node.name];
  const done = node.ran >= 0 && node.ran <= at;
  const saved = known?.saved ?? [];
  return h("div", { class: `lab-player-node${done ? " lab-player-done" : ""}` },
    h("div", { class: "lab-player-nodename" }, h("code", {}, node.name),
      h("span", { class: "lab-quiet" }, done ? "has run" : node.ran >= 0 ? "runs in backward" : "")),
    formula && h("div", { class: "lab-player-formula" },
      h("div", {}, formula.says), (formula.gradients ?? []).map((line) => h("div", {}, line))),
    saved.length > 0 && h("ul", { class: "lab-player-saved", "aria-label": "Saved for backward" }, saved.map((each) => savedEntry(film, node, each, done))),
    (done || pinned) && gradientPart(known, "the result", done),
    known?.hooks > 0 && h("div", { class: "lab-player-remark" }, `${known.hooks} hook${known.hooks > 1 ? "s" : ""} of yours`));
}

/** What reaches a node in backward: its figures, and its numbers where they are known. */
function gradientPart(known, of, done) {
  const place = known?.grads?.findIndex(Boolean) ?? -1;
  if (place < 0) return null;
  const [shape, numbers] = [known.shapes[place] ?? [], known.numbers?.[place]];
  return h("div", { class: "lab-player-figures" },
    h("span", { class: "lab-player-grad" }, done ? "gradient " : "will get the gradient "), h("code", {}, spellShape(shape)), " ", figures(known.grads[place], shape.length === 0),
    numbers?.length > 1 && heatMap(numbers, shape, `gradient of ${of}`));
}

function savedEntry(film, node, [name, shape, dtype, bytes, version, value], done) {
  const freed = done && node.freed;
  const known = value !== null && value !== undefined ? nameOfValue(film, film.values[value]) : "";
  return h("li", { class: freed ? "lab-player-freed" : "" },
    h("span", { class: "lab-player-square", "aria-hidden": "true" }),
    `${freed ? "freed" : "saved"} ${name}`, known && known !== name && ` = ${known}`, " ",
    h("code", {}, spellShape(shape)), ` ${spellBytes(bytes)}`, version > 0 && `, version ${version}`);
}

function nodeDetails(view, film, { index, pinned }, at) {
  const node = film.nodes[index];
  const op = film.ops[node.op];
  if (node.kind === "accumulate") return leafDetails(view, film, node, at, pinned);
  return [
    heading(view, plainNode(node.name), op ? `made by ${op.name}${op.module ? ` in ${op.module}` : ""}` : "", pinned),
    nodePart(view, film, node, at, pinned),
    node.next.length > 0 && h("p", { class: "lab-quiet" }, "hands its gradient to ",
      node.next.slice(0, 6).map((next, i) => [i > 0 && ", ", h("button", {
        class: "lab-player-link", type: "button", onclick: () => view.selectNode(next),
      }, film.nodes[next].parameter || plainNode(film.nodes[next].name))])),
  ];
}

function leafDetails(view, film, node, at, pinned) {
  const known = film.known.nodes[node.index];
  const done = node.ran >= 0 && node.ran <= at;
  const name = node.parameter || "a leaf without a name";
  return [
    heading(view, name, "AccumulateGrad", pinned),
    h("p", {}, done ? "The gradient was added to " : "Its gradient will be added to ", h("code", {}, `${node.parameter || "leaf"}.grad`), "."),
    (done || pinned) && gradientPart(known, name, done),
    h("button", { class: "lab-button lab-player-small", type: "button", onclick: () => view.path(node.index) }, "Light its path"),
  ];
}

/** A frame; one with a single op in it tells of that op, for nobody unfolds a Linear to read on. */
function frameDetails(view, film, { item, look, about, only, pinned }, at) {
  const open = view.isOpen(film, { kind: "frame", item });
  const parts = only >= 0 ? aboutOp(view, film, film.ops[only], at, pinned) : aboutFrame(view, film, about, at);
  return [
    heading(view, look.title, look.sub, pinned), ...parts,
    h("button", { class: "lab-button lab-player-small", type: "button", onclick: () => view.fold(item) }, open ? "Fold" : "Unfold"),
  ];
}

function aboutFrame(view, film, about, at) {
  const names = new Set();
  for (const op of about.ops) {
    for (const value of film.ops[op].inputs) {
      const { leaf, node, name } = film.values[value];
      if (leaf && node >= 0 && name) names.add(`${name}\n${node}`);
      if (names.size > 40) break;
    }
  }
  const held = heldBy(film, about, at);
  const ns = about.ops.reduce((sum, op) => sum + (film.ops[op].inside < 0 ? film.ops[op].ns ?? 0 : 0), 0);
  return [
    h("dl", {},
      h("dt", {}, "operations"), h("dd", {}, String(about.ops.length)),
      h("dt", {}, "keeps now"), h("dd", {}, spellBytes(held)),
      ns > 0 && [h("dt", {}, "forward took"), h("dd", {}, spellTime(ns))]),
    names.size > 0 && h("p", {}, [...names].slice(0, 8).map((entry) => {
      const [name, node] = entry.split("\n");
      return [h("button", { class: "lab-player-link", type: "button", title: "Light the path that reaches it", onclick: () => view.path(Number(node)) }, name), " "];
    }), names.size > 8 && h("span", { class: "lab-quiet" }, `and ${names.size - 8} more`)),
  ];
}
