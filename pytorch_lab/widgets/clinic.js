// A patient: code, symptom, cause, cure. The cause is judged here, the cure in the kernel.

const INDENT = "    ";

/**
 * What Tab or Enter does to a text: the new text between `start` and `end`, or null.
 * @param {string} key @param {string} text @param {number} start
 */
function typed(key, text, start) {
  const line = text.slice(text.lastIndexOf("\n", start - 1) + 1, start);
  if (key === "Tab") return INDENT.slice(line.length % INDENT.length);
  if (key === "Enter") {
    const indent = line.match(/^ */)[0];
    return "\n" + indent + (/:\s*(#.*)?$/.test(line) ? INDENT : "");
  }
  return null;
}

/** A text area for code. Tab indents, until Esc is pressed: then it leaves, as everywhere else. */
function editor(code, run) {
  let leaving = false;
  const area = h("textarea", {
    class: "clinic-code", "aria-label": "Your code", spellcheck: "false", autocapitalize: "off",
    autocomplete: "off", rows: Math.max(4, code.split("\n").length + 1), "aria-keyshortcuts": "Control+Enter",
    onkeydown: (event) => {
      const { key } = event;
      if (key === "Enter" && (event.ctrlKey || event.metaKey || event.shiftKey)) {
        event.preventDefault();
        run();
      } else if (key === "Escape") {
        leaving = true;
      } else if (["Tab", "Enter"].includes(key) && !event.shiftKey && !(key === "Tab" && leaving)) {
        event.preventDefault();
        insert(area, typed(key, area.value, area.selectionStart));
      } else if (!["Shift", "Tab"].includes(key)) {
        leaving = false;
      }
    },
    onfocus: () => { leaving = false; },
  });
  area.value = code;
  return area;
}

/** Type a text into the area so that the browser's undo knows of it. */
function insert(area, text) {
  if (!document.execCommand?.("insertText", false, text)) {
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
  }
}

/** The second half: edit, run, see. */
function cure({ model, state, say }) {
  const area = editor(state.result?.code ?? state.code, () => run.press());
  const run = runButton({ model, label: "Run", collect: () => ({ code: area.value }) });
  const back = h("button", { class: "lab-button", type: "button", onclick: () => {
    area.value = state.code;
    area.focus();
  } }, "Broken code again");
  const given = h("div", { class: "clinic-given" });
  const fix = h("details", { class: "piece-others", hidden: true }, h("summary", {}, "Show a fix"), codeBlock(state.fix));
  const element = h("section", { class: "clinic-cure", "aria-label": "Heal the code" },
    h("p", { class: "piece-step" }, "Now heal it"),
    h("p", { class: "lab-quiet" }, "Tab indents; Esc, then Tab leaves. Ctrl+Enter runs."),
    area, h("div", { class: "lab-row" }, run.button, back, run.words), given, fix);

  function show({ healed, doubt, run: came, curve }) {
    const words = healed ? "The patient does what it should." : doubt
      ? `It runs, but the check could not look at it: ${doubt}` : came.interrupted ? "The run was interrupted."
      : came.fault ? "It ends in an error." : "It runs, but the symptom is not gone.";
    const shown = verdict(healed, h("p", {}, h("strong", {}, healed ? "Healed. " : "Not yet. "), words));
    given.replaceChildren(shown, h("div", { class: "clinic-report" }, runReport(came, state.measure)), curve ? curveChart(curve) : "");
    if (!healed) fix.hidden = false; // offered from the first failed try on
    say(`${healed ? "Healed." : "Not yet."} ${words}`);
  }
  return { element, run, show };
}

function render({ model, el }) {
  const state = model.get("state");
  const { root, say, close } = frame(el, { name: `Clinic: ${plain(state.title)}`, kind: "piece lab-clinic" });
  const wait = h("p", { class: "piece-wait", role: "status" });
  const kernel = patience({ model, says: (text) => { wait.textContent = text; } });
  const healing = cure({ model, state, say });
  const open = (right) => { healing.element.hidden = !right; };
  const form = questionForm(state.question, {
    kept: state.kept, lock: "This is the cause", again: "Look again",
    heard: (guess, right) => {
      open(right);
      kernel.request("guess", { guess }, "Your guess is not kept yet: the kernel has not answered. It may be busy, or not running.");
    },
  });
  const trouble = troubleBox();
  root.append(heading("Clinic"), h("p", { class: "lab-title" }, ...prose(state.title)),
    codeBlock(state.listing, state.symptom.fault?.line),
    h("section", { class: "clinic-symptom", "aria-label": "What happens" },
      h("p", { class: "piece-step" }, "What happens"), runReport(state.symptom, state.measure),
      state.curve && curveChart(state.curve)),
    form.element, wait, healing.element, trouble.box);
  if (state.was_healed) healing.element.prepend(h("p", { class: "lab-note lab-good" }, icon("right"), " You healed this one earlier."));

  const isRight = (guess) => state.question.options.some((option) => option.right && option.text === guess);
  open(isRight(state.kept?.last));
  let seen = 0;
  const stop = follow(model, (now) => {
    if (kernel.waiting()) kernel.settle();
    healing.run.heard(now.running);
    trouble.show(now.trouble);
    form.adopt(now.kept);
    if (now.kept) open(isRight(now.kept.last));
    if (now.runs === seen) return;
    seen = now.runs;
    healing.show(now.result);
  });
  return () => { stop(); kernel.settle(); healing.run.settle(); close(); };
}
export default { render };
export { typed };
