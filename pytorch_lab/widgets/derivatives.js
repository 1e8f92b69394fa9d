// A small graph to be filled in by hand: a field on each arrow, then one in each box. The numbers,
// the sentences and the places come from Python; here they are compared and shown.

ICONS["By hand"] = "M11.6 2.2l2.2 2.2-8 8-3 .8.8-3zM10 3.8l2.2 2.2M2 15h12";

const TRIES = 2; // so many wrong numbers, and the rule is offered

/**
 * What a learner typed, as a number: a decimal, or a sum of numbers and the graph's own names,
 * "1 - L**2"; null when it is neither.
 * @param {string} text @param {Record<string, number>} names
 */
function arithmetic(text, names = {}) {
  const simple = numberFrom(text);
  if (simple !== null) return simple;
  const plain = String(text).replace(/[−–]/g, "-").replace(/[·×]/g, "*").replace(/\^/g, "**").replace(/²/g, "**2").replace(/,/g, ".");
  const tokens = plain.match(/\*\*|[-+*/()]|\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|[^\W\d]\w*|\S/giu) ?? [];
  let at = 0;
  const take = (...signs) => (signs.includes(tokens[at]) ? tokens[at++] : null);
  function sum() {
    let value = product();
    for (let sign; (sign = take("+", "-"));) value = sign === "+" ? value + product() : value - product();
    return value;
  }
  function product() {
    let value = signed();
    for (let sign; (sign = take("*", "/"));) value = sign === "*" ? value * signed() : value / signed();
    return value;
  }
  function signed() {
    if (take("-")) return -signed();
    if (take("+")) return signed();
    const base = atom();
    return take("**") ? base ** signed() : base;
  }
  function atom() {
    if (take("(")) {
      const value = sum();
      return take(")") ? value : NaN;
    }
    const token = tokens[at++];
    if (token === undefined) return NaN;
    if (/^[\d.]/.test(token)) return Number(token);
    return Object.hasOwn(names, token) ? names[token] : NaN;
  }
  const value = sum();
  return at === tokens.length && Number.isFinite(value) ? value : null;
}

/** Whether a guess is close enough; `Blank.is_right` in derivatives_blanks.py has the same rule. */
function near(guess, { answer, slack }) {
  return Math.abs(guess - answer) <= slack;
}

/** What a wrong guess may mean; `Blank.says` in derivatives_blanks.py has the same rule. */
function meant(guess, { slips, otherwise }) {
  const off = ({ value }) => Math.abs(guess - value);
  const fits = slips.filter((slip) => off(slip) <= slip.slack);
  return fits.reduce((best, slip) => (best && off(best) <= off(slip) ? best : slip), null)?.says ?? otherwise;
}

/** At most four digits: what a field shows of a number that was right. */
function digits(number) {
  return String(Number(number.toPrecision(4))).replace("-", "−");
}

/** The arrows; words for them stand in the fields. */
function arrowDrawing({ width, height, arrows }) {
  const svg = draw("svg", { class: "hand-arrows", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (const { path, tip } of arrows) {
    svg.append(draw("path", { d: path }));
    if (tip) svg.append(draw("path", { class: "hand-tip", d: `M${tip[0] - 4} ${tip[1] - 7}L${tip[0]} ${tip[1]}L${tip[0] + 4} ${tip[1] - 7}Z` }));
  }
  return svg;
}

/**
 * One field with its name, its sign, and the sentence that a wrong number gets.
 * @param {{blank: any, names: Record<string, number>, heard: (guess: number, right: boolean) => void, onward: () => void}} _
 */
function field({ blank, names, heard, onward }) {
  let tries = 0;
  let checked = null;
  const input = h("input", {
    type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false", size: 7,
    "aria-label": `${blank.label}: ${blank.asks}`,
    onkeydown: (event) => {
      if (event.key === "Escape") quiet();
      if (event.key === "Enter") { event.preventDefault(); if (check()) onward(); }
    },
    oninput: () => { checked = null; quiet(); },
    onchange: () => check(),
  });
  const sign = h("span", { class: "hand-sign" });
  const bubble = h("div", { class: "hand-bubble lab-note lab-bad", role: "group", "aria-label": `About ${blank.label}`, hidden: true });
  const element = h("div", { class: "hand-field" }, h("label", {}, h("span", { class: "hand-name" }, blank.label), input), sign, bubble);

  function quiet() {
    bubble.hidden = true;
    input.removeAttribute("aria-invalid");
    element.classList.remove("hand-wrong");
    if (!input.readOnly) sign.replaceChildren();
  }
  function speak(text, wrong = true) {
    const rule = tries >= TRIES && h("button", { class: "lab-button", type: "button", onclick: () => {
      show(h("p", {}, blank.rule));
      input.focus();
    } }, "Show the rule");
    show(h("p", {}, text), rule);
    element.classList.toggle("hand-wrong", wrong);
  }
  /** Below the field, or above where there is no room, and inside of the graph. */
  function show(...children) {
    bubble.replaceChildren(...children.filter(Boolean));
    bubble.hidden = false;
    bubble.style.cssText = "";
    const [mine, stage, seen, its] = [element, element.closest(".hand-stage"), element.closest(".hand-scroll"), bubble]
      .map((one) => one.getBoundingClientRect());
    const [left, right] = [Math.max(stage.left, seen.left), Math.min(stage.right, seen.right)];
    bubble.style.left = `${Math.max(left, Math.min(mine.left - 8, right - its.width)) - mine.left}px`;
    if (its.bottom > stage.bottom) bubble.style.cssText += "top:auto;bottom:calc(100% + 5px)";
  }
  function settle(number) {
    quiet();
    input.value = digits(number);
    input.readOnly = true;
    element.classList.add("hand-right");
    sign.replaceChildren(icon("right"), h("span", { class: "lab-live" }, "right"));
  }
  /** @returns {boolean} whether the field holds the right number */
  function check() {
    if (input.readOnly) return true;
    if (input.value === checked || !input.value.trim()) return false;
    checked = input.value;
    const guess = arithmetic(input.value, names);
    if (guess === null) {
      speak("Type a number, or a sum such as 1 - 0.5**2 or a * 2.", false);
      return false;
    }
    const right = near(guess, blank);
    if (right) settle(blank.answer);
    else {
      tries += 1;
      input.setAttribute("aria-invalid", "true");
      sign.replaceChildren(icon("wrong"), h("span", { class: "lab-live" }, "not right"));
      speak(meant(guess, blank));
    }
    heard(guess, right);
    return right;
  }
  return { element, input, settle, isRight: () => input.readOnly, says: () => bubble.textContent };
}

/** A box of the graph, in its place. */
function boxAt({ x, y, width, height }, kind, ...children) {
  return h("div", { class: kind, style: `left:${x}px;top:${y}px;width:${width}px;height:${height}px` }, ...children);
}

function render({ model, el }) {
  const state = model.get("state");
  const { root, say, close } = frame(el, { name: `By hand: ${plain(state.title)}`, kind: "piece lab-derivatives" });
  const wait = h("p", { class: "piece-wait", role: "status" });
  const kernel = patience({ model, says: (text) => { wait.textContent = text; } });
  const trouble = troubleBox();
  const step = h("p", { class: "piece-step" });
  const hint = h("p", { class: "hand-hint" });
  const end = h("div", {});
  const stage = h("div", { class: "hand-stage", style: `width:${Math.max(state.plan.width, 290)}px;height:${state.plan.height}px` });
  const last = state.gradients[0].label.replace(/\.grad$/, "");
  let first = { ...state.kept.first };
  const fields = { slopes: [], gradients: [] };
  const everyField = () => [...fields.slopes, ...fields.gradients];
  const complete = (list) => list.every((one) => one.isRight());

  function fill(blank) {
    const made = field({
      blank, names: state.names,
      onward: () => {
        const list = complete(fields.slopes) ? fields.gradients : fields.slopes;
        const from = list.indexOf(made) + 1;
        [...list.slice(from), ...list].find((one) => !one.isRight())?.input.focus();
      },
      heard: (guess, right) => {
        first[blank.key] ??= right;
        const news = advance();
        say(right ? `Right: ${blank.label}. ${news}` : `Not right. ${made.says()}`);
        kernel.request("fill", { key: blank.key, guess },
          "This number is not kept yet: the kernel has not answered. It may be busy, or not running.");
      },
    });
    return made;
  }

  /** Show how far it is; returns what is new in words. */
  function advance() {
    const { slopes, gradients } = fields;
    const done = (list) => `${list.filter((one) => one.isRight()).length} of ${list.length}`;
    const open = complete(slopes);
    for (const { element } of gradients) element.classList.toggle("hand-later", !open);
    step.textContent = open ? `2. The gradients, from ${last} back: ${done(gradients)}` : `1. The local derivatives: ${done(slopes)}`;
    hint.replaceChildren(...prose(open
      ? `Start at **${last}** and walk back: the gradient of a box is what comes back on the arrows that leave it.`
      : "On each arrow: how fast does the box **below** move when the box **above** moves, and all else is still?"));
    end.replaceChildren();
    if (!open) return "";
    if (!complete(gradients)) return gradients.some((one) => one.isRight()) ? "" : `All local derivatives are right. Now the gradients, from ${last} back.`;
    const right = Object.values(first).filter(Boolean).length;
    const total = slopes.length + gradients.length;
    const words = `All ${total} numbers agree with autograd, ${right === total ? "all" : right} at the first try.`;
    end.append(verdict(true, h("p", {}, h("strong", {}, "Done. "), words,
      ...prose(` What you did from ${last} back is what \`${last}.backward()\` does.`))));
    return `Done. ${words}`;
  }

  function put() {
    fields.slopes = state.slopes.map(fill);
    fields.gradients = state.gradients.map(fill);
    const boxes = new Map(state.plan.boxes.map((box) => [box.blank, box]));
    stage.replaceChildren(arrowDrawing(state.plan),
      ...state.slopes.map(({ key }, at) => boxAt(boxes.get(key), "hand-slope", fields.slopes[at].element)),
      ...state.gradients.map(({ key }, at) => {
        const box = boxes.get(key);
        return boxAt(box, "hand-step", h("code", { class: "hand-code" }, box.label), h("span", { class: "hand-value" }, box.value.replace("-", "−")), fields.gradients[at].element);
      }));
  }

  /** Fill in what was right earlier. */
  function adopt({ filled }) {
    const blanks = [...state.slopes, ...state.gradients];
    everyField().forEach((one, at) => {
      if (blanks[at].key in filled && !one.isRight()) one.settle(blanks[at].answer);
    });
  }

  const again = h("button", { class: "lab-button", type: "button", onclick: () => {
    first = {};
    put();
    advance();
    fields.slopes[0].input.focus();
    kernel.request("again", {}, "The kernel has not answered: after a reload the old numbers may come back.");
  } }, "Empty all");
  root.append(heading("By hand"), h("p", { class: "lab-title" }, ...prose(state.title)),
    h("pre", { class: "piece-code hand-lines" }, h("code", {}, state.lines.join("\n"))),
    step, hint, h("div", { class: "hand-scroll" }, stage), end,
    h("div", { class: "lab-row hand-foot" }, again, h("span", { class: "lab-quiet" }, "Enter checks a number and goes on to the next.")),
    wait, trouble.box);
  put();
  adopt(state.kept);
  advance();
  const stop = follow(model, (now) => {
    if (kernel.waiting()) kernel.settle();
    trouble.show(now.trouble);
    adopt(now.kept);
    advance();
  });
  return () => { stop(); kernel.settle(); close(); };
}
export default { render };
export { arithmetic, digits, meant, near };
