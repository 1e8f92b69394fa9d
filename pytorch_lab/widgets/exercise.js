const TONES = { open: "blue", failed: "bad", raised: "bad", passed: "good" };
const PATIENCE_MS = 5000; // then a busy kernel and a dead one deserve a word

/** A button that stays focusable when it is off, so that its reason can be heard. */
function setButton(button, label, off, reason = "") {
  button.textContent = label;
  turnOff(button, off);
  button.title = off ? reason : "";
}

/** A block of code with a caption and a Copy button. */
function codeBlock(caption, text, say) {
  const copy = h("button", { class: "lab-button lab-copy", type: "button" }, "Copy");
  const pre = h("pre", { tabindex: "0", "aria-label": caption }, text);
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
      say("Copied");
    } catch {
      // No clipboard without https: what is selected can be copied by hand.
      getSelection().selectAllChildren(pre);
      copy.textContent = "Selected";
      say("Selected, copy it with your keyboard");
    }
  });
  return h("figure", { class: "lab-code" },
    h("figcaption", {}, h("span", {}, caption), copy), pre);
}

/** What the check found: the sentence, the learner's line, the difference, what was printed. */
function finding(s) {
  if (!s.why && !s.evidence) return null;
  return h("div", { class: `lab-note lab-${TONES[s.state]}` },
    s.why && h("p", {}, prose(s.why)),
    s.line && s.line.source && h("pre", { class: "lab-line" },
      h("span", { class: "lab-number", "aria-hidden": true }, String(s.line.number)),
      h("span", {}, s.line.source)),
    s.evidence && h("p", { class: "lab-evidence" }, s.evidence));
}

function hintList(s) {
  if (!s.hints.length) return null;
  return h("ol", { class: "lab-hints", "aria-label": "Hints" },
    s.hints.map((hint, i) => h("li", {}, h("span", { class: "lab-quiet" }, `Hint ${i + 1}`),
      h("span", {}, prose(hint)))));
}

function printed(s) {
  if (!s.printed) return null;
  return h("details", { class: "lab-printed" },
    h("summary", {}, "Printed while checking"), h("pre", { tabindex: "0" }, s.printed));
}

function plural(count, one, many) {
  return `${count} ${count === 1 ? one : many}`;
}

/** What is said aloud after a button was pressed. */
function spoken(s) {
  if (s.pressed === "hint") return s.hints.length ? `Hint ${s.hints.length}: ${s.hints.at(-1)}` : "";
  if (s.pressed === "solution") return s.solution.text ? "The solution is shown below." : s.solution.reason;
  return `${s.word}. ${s.message}`;
}

function render({ model, el }) {
  const { root, say, close } = frame(el, { name: "Exercise", kind: "exercise" });
  const slot = (name) => h("div", { class: name });
  const header = h("header", { class: "lab-header" });
  const found = slot("lab-found"), help = slot("lab-help"), below = slot("lab-below");
  let timer = 0, folded = false, turn = model.get("state").turn;

  const press = (name) => (event) => {
    const button = event.currentTarget, s = model.get("state");
    if (isOff(button)) return say(button.title);
    if (name === "solution" && s.solution.text) {
      folded = !folded;
      return draw(s);
    }
    folded = false;
    root.setAttribute("aria-busy", "true");
    if (name === "check") button.textContent = "Checking…";
    clearTimeout(timer);
    timer = setTimeout(() => {
      const text = "No answer from the kernel yet. If it is not busy, run this cell again.";
      below.prepend(h("p", { class: "lab-note lab-warn" }, text));
      say(text);
    }, PATIENCE_MS);
    ask(model, "press", { button: name });
  };
  const button = (name, extra = "") => h("button",
    { class: `lab-button ${extra}`, type: "button", onclick: press(name) });
  const check = button("check", "lab-main"), hint = button("hint");
  const solution = button("solution"), reset = button("reset", "lab-reset");
  root.append(header, found, help,
    h("div", { class: "lab-row lab-buttons" }, check, hint, solution, reset), below);

  function draw(s) {
    clearTimeout(timer);
    root.removeAttribute("aria-busy");
    const tries = plural(s.tries, "try", "tries");
    root.setAttribute("aria-label",
      `Exercise ${s.exercise}: ${s.word}${s.tries ? `, ${tries} so far` : ""}`);
    header.replaceChildren(
      h("p", { class: "lab-title" },
        h("span", { class: "lab-quiet" }, `Exercise ${s.exercise}`),
        ...(s.title ? [" ", h("span", {}, prose(s.title))] : [])),
      h("p", { class: "lab-facts lab-quiet" },
        s.tries > 0 && h("span", {}, tries),
        s.points != null && h("span", {}, plural(s.points, "point", "points")),
        h("span", { class: `lab-state lab-${TONES[s.state]}` }, `${s.icon} ${s.word}`)));
    found.replaceChildren(...[finding(s), printed(s)].filter(Boolean));
    help.replaceChildren(...[hintList(s)].filter(Boolean));

    const left = s.hint_count - s.hints.length;
    setButton(check, "Check", false);
    setButton(hint, left ? `Hint ${s.hints.length + 1} of ${s.hint_count}` : "No more hints", !left,
      "All hints are shown.");
    const shown = Boolean(s.solution.text) && !folded;
    setButton(solution, shown ? "Hide solution" : "Solution", !s.solution.enabled, s.solution.reason);
    solution.setAttribute("aria-expanded", String(shown));
    setButton(reset, "Reset", false);

    below.replaceChildren(...[
      s.note && h("p", { class: "lab-note lab-warn" }, s.note),
      !s.solution.enabled && h("p", { class: "lab-reason lab-quiet" }, s.solution.reason),
      shown && codeBlock("A solution", s.solution.text, say),
      s.stub && codeBlock("The cell as it was given", s.stub, say),
    ].filter(Boolean));
    if (s.turn !== turn) {
      turn = s.turn;
      say(spoken(s));
    }
  }

  const end = follow(model, draw);
  return () => {
    clearTimeout(timer);
    end();
    close();
  };
}

export default { render };
