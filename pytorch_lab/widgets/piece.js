// What the pieces of a lesson share: the header with the word for its kind, a question with its
// verdict, code with line numbers, a run's report, a curve, and patience with a silent kernel.

const ICONS = {
  Predict: "M8 1.8a4.4 4.4 0 0 1 2.5 8c-.5.4-.7.9-.7 1.5v.4H6.2v-.4c0-.6-.2-1.1-.7-1.5a4.4 4.4 0 0 1 2.5-8zM6.5 14.2h3",
  "Put in order": "M2 4h8M2 8h8M2 12h8M13.2 3v9.6M11.4 10.8l1.8 1.9 1.8-1.9",
  Clinic: "M1.5 8.5h3l1.5-5 3.2 9.5 1.8-4.5h3.5",
  Recall: "M13.5 8a5.5 5.5 0 1 1-1.7-4M12 1.2v3h-3M8 5v3.2l2 1.3",
  Lesson: "M8 4C6.5 2.8 4.3 2.5 2 2.8v9.5c2.3-.3 4.5 0 6 1.2 1.5-1.2 3.7-1.5 6-1.2V2.8C11.7 2.5 9.5 2.8 8 4zM8 4v9.5",
  Learned: "M3.5 14.5V2M3.5 2.5h8.5l-2 3 2 3H3.5",
  right: "M2.8 8.5l3.5 3.7 7-8.2",
  wrong: "M3.8 3.8l8.4 8.4M12.2 3.8l-8.4 8.4",
  warn: "M8 2L14.5 13.5H1.5zM8 6.5v3.2M8 11.6v.4",
};

/** An element of an SVG. */
function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** A small line drawing; words always stand beside it. */
function icon(name) {
  return draw(
    "svg",
    { class: "piece-icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
    draw("path", { d: ICONS[name] }),
  );
}

/** The word for its kind, and what stands beside it on the right. */
function heading(kind, ...beside) {
  return h("header", { class: "piece-head" },
    h("span", { class: "piece-kind" }, icon(kind), kind), ...beside.filter(Boolean));
}

/** A sentence without its marks, for names that are read aloud. */
function plain(text) {
  return text.replace(/`([^`]+)`/g, "$1").replace(/\*\*([^*]+)\*\*/g, "$1");
}

/** A box that says in words and with a sign how it went; it can be given the focus. */
function verdict(right, ...children) {
  const tone = right ? "lab-good" : "lab-bad";
  return h("div", { class: `lab-note piece-verdict ${tone}`, tabindex: "-1" },
    icon(right ? "right" : "wrong"), h("div", { class: "piece-says" }, ...children));
}

/** Where a trouble of ours is said: the learner's folder is not writable, ... */
function troubleBox() {
  const box = h("div", { class: "lab-note lab-warn", role: "alert", hidden: true });
  const show = (text) => {
    box.hidden = !text;
    box.replaceChildren(...(text ? [icon("warn"), " ", ...prose(text)] : []));
  };
  return { box, show };
}

const SILENCE_MS = 4000;

/**
 * Ask the kernel and say so when it is silent: it may be busy with another cell, or gone.
 * @param {{model: any, says: (text: string) => void}} _
 */
function patience({ model, says }) {
  let timer = null;
  const settle = () => { clearTimeout(timer); timer = null; says(""); };
  const request = (name, arguments_, silent) => {
    settle();
    timer = setTimeout(() => says(silent), SILENCE_MS);
    ask(model, name, arguments_);
  };
  return { request, settle, waiting: () => timer !== null };
}

/**
 * What a learner typed, as a number; null when it is none. A comma may stand for the point, but
 * "1,000" could be meant either way and is none.
 * @param {string} text
 */
function numberFrom(text) {
  let plain = String(text).trim().replace(/\s|_/g, "").replace("−", "-");
  if (/^[+-]?\d*,\d+$/.test(plain) && !/^[+-]?\d{1,3},\d{3}$/.test(plain)) {
    plain = plain.replace(",", ".");
  }
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) : null;
}

/** Whether a number is the answer; `Number.is_right` in question.py has the same rule. */
function closeEnough(guess, { answer, tolerance }) {
  return Math.abs(guess - answer) <= tolerance + 1e-9 * Math.max(1, Math.abs(answer));
}

/** At most six digits that mean something. */
function short(number) {
  return String(Number(number.toPrecision(6)));
}

/** "3 is 1 MB too low." */
function howFar(guess, { answer, unit }) {
  const far = `${short(Math.abs(guess - answer))} ${unit}`.trim();
  return `${short(guess)} is ${far} too ${guess < answer ? "low" : "high"}.`;
}

/**
 * A question, its button, then its verdict.
 * @param {any} question what Question.state() gives
 * @param {{kept: any, heard: (guess: any, right: boolean) => void, lock?: string, again?: string|null}} _ again null: one guess only
 */
function questionForm(question, { kept, heard, lock = "Lock in my guess", again = "Guess again" }) {
  const element = h("div", { class: "piece-question" });
  const parts = question.kind === "number" ? numberParts(question) : choiceParts(question);
  let last = kept?.last ?? null;

  function open() {
    const problem = h("p", { class: "piece-problem", role: "alert", hidden: true });
    const form = h("form", { novalidate: true, onsubmit: (event) => {
      event.preventDefault();
      const { guess, missing } = parts.read(form);
      problem.hidden = missing === undefined;
      problem.textContent = missing ?? "";
      if (missing !== undefined) return;
      const right = parts.right(guess);
      close(guess, null);
      element.querySelector(".piece-verdict").focus({ preventScroll: true });
      heard(guess, right);
    } }, parts.fields(null), problem, h("button", { class: "lab-button lab-main", type: "submit" }, lock));
    element.replaceChildren(form);
  }

  function close(guess, memory) {
    last = guess;
    const right = parts.right(guess);
    const retry = !right && again && question.kind === "choice" && h("button", {
      class: "lab-button", type: "button",
      onclick: () => { open(); element.querySelector("input").focus(); },
    }, again);
    element.replaceChildren(
      h("form", { onsubmit: (event) => event.preventDefault() }, parts.fields(guess)),
      verdict(right,
        h("p", {}, h("strong", {}, right ? "Right. " : "Not quite. "), ...parts.explain(guess)),
        memory && h("p", { class: "lab-quiet" }, ...remembered(memory, question)), retry),
      parts.others(guess, !right && !again) ?? "",
    );
  }

  const adopt = (memory) => { if (memory && memory.last !== last) close(memory.last, memory); };
  if (kept) close(kept.last, kept);
  else open();
  return { element, adopt };
}

/** "You answered this earlier; your first guess was 8." */
function remembered({ guess, last }, { unit }) {
  if (guess === last) return ["This was your guess the first time."];
  const shown = typeof guess === "number" ? `${short(guess)} ${unit}`.trim() : guess;
  return ["Your first guess was: ", ...prose(shown)];
}

function choiceParts({ ask: words, options }) {
  const find = (guess) => options.find((option) => option.text === guess);
  const field = (option, guess) => {
    const mine = option.text === guess;
    const tone = !mine ? "" : option.right ? " piece-right" : " piece-wrong";
    return h("label", { class: `piece-option${tone}` },
      h("input", {
        type: "radio", name: "guess", value: option.text, checked: mine, disabled: guess !== null,
      }),
      h("span", {}, ...prose(option.text)),
      mine && h("span", { class: "piece-tag" }, icon(option.right ? "right" : "wrong"), "your guess"));
  };
  return {
    fields: (guess) => h("fieldset", { class: guess === null ? "" : "piece-locked" },
      h("legend", {}, ...prose(words)), ...options.map((option) => field(option, guess))),
    read: (form) => {
      const guess = new FormData(form).get("guess");
      return guess === null ? { missing: "Pick one of the answers first." } : { guess };
    },
    right: (guess) => find(guess).right,
    explain: (guess) => prose(find(guess).why),
    others: (guess, unfolded) => h("details", { class: "piece-others", open: unfolded },
      h("summary", {}, "What the others would mean"),
      h("dl", {}, ...options.filter((option) => option.text !== guess).flatMap((option) => [
        h("dt", {}, ...prose(option.text), option.right && h("span", { class: "piece-tag" }, icon("right"), "the answer")),
        h("dd", {}, ...prose(option.why))]))),
  };
}

function numberParts(question) {
  const { ask: words, unit, tolerance, shown, why } = question;
  const hint = tolerance ? `Within ± ${short(tolerance)} counts as right.` : "";
  return {
    fields: (guess) => h("label", { class: "piece-number" },
      h("span", { class: "piece-ask" }, ...prose(words)),
      h("span", { class: "lab-row" },
        h("input", {
          type: "text", inputmode: "decimal", autocomplete: "off", name: "guess", size: 12,
          value: guess === null ? "" : short(guess), disabled: guess !== null,
        }),
        unit && h("span", {}, unit), hint && h("span", { class: "lab-quiet" }, hint))),
    read: (form) => {
      const guess = numberFrom(String(new FormData(form).get("guess")));
      return guess === null ? { missing: "Type a number, such as 12 or 0.5." } : { guess };
    },
    right: (guess) => closeEnough(guess, question),
    explain: (guess) => closeEnough(guess, question)
      ? prose(`The answer is **${shown}**. ${why}`)
      : prose(`${howFar(guess, question)} The answer is **${shown}**. ${why}`),
    others: () => null,
  };
}

/** Words of one line of code, each with its kind; what `listing` in listing.py gives. */
function codeWords(words) {
  return words.map(([kind, text]) => (kind ? h("span", { class: `code-${kind}` }, text) : text));
}

/**
 * Code with line numbers, and a word at the line where the error came up.
 * @param {string[][][]} lines
 * @param {number|null} [faulty] from 1
 */
function codeBlock(lines, faulty = null) {
  return h("pre", { class: "piece-code" }, h("code", {}, ...lines.map((words, index) => {
    const wrong = index + 1 === faulty;
    return h("span", { class: `code-line${wrong ? " code-faulty" : ""}`, "data-line": index + 1 },
      wrong && h("span", { class: "code-mark" }, icon("wrong"), h("span", { class: "lab-live" }, "The error came up here: ")),
      ...codeWords(words), "\n");
  })));
}

/** What came of a run: its output, warnings, error with the line, and the measured value. */
function runReport(run, measure) {
  const { stdout, warnings, fault, interrupted, value } = run;
  const parts = [];
  if (stdout) parts.push(h("pre", { class: "run-out" }, stdout.replace(/\n$/, "")));
  for (const text of warnings) parts.push(h("p", { class: "run-warning" }, icon("warn"), h("span", {}, text)));
  if (interrupted) parts.push(h("p", { class: "run-fault" }, icon("wrong"), h("span", {}, "Interrupted before it ended.")));
  if (fault) {
    parts.push(h("div", { class: "run-fault" }, icon("wrong"), h("div", {},
      h("strong", {}, `${fault.type}: `), h("span", { class: "run-message" }, fault.message),
      fault.line && h("div", {}, `line ${fault.line}: `, h("code", {}, fault.source)))));
  }
  if (!fault && !interrupted && value !== null) {
    parts.push(h("p", { class: "run-value" }, measure && h("code", {}, measure), measure && " is ", h("output", {}, value)));
  }
  if (!parts.length) parts.push(h("p", { class: "lab-quiet" }, "It ran without a word."));
  return h("div", { class: "run" }, ...parts);
}

/** The curves that curve.py planned. */
function curveChart(plan) {
  const [left, top, right, bottom] = plan.box;
  const label = (x, y, anchor, text) => draw("text", { x, y, "text-anchor": anchor }, text);
  const svg = draw("svg", {
    class: "curve", viewBox: `0 0 ${plan.width} ${plan.height}`, role: "img", "aria-label": plan.alt,
  });
  for (const [y, text] of plan.y_ticks) {
    svg.append(draw("path", { class: "curve-grid", d: `M${left} ${y}H${right}` }), label(left - 6, y + 4, "end", text));
  }
  for (const [x, text] of plan.x_ticks) svg.append(label(x, bottom + 17, "middle", text));
  svg.append(draw("path", { class: "curve-axis", d: `M${left} ${top}V${bottom}H${right}` }),
    label((left + right) / 2, plan.height - 8, "middle", plan.x_label), label(8, 15, "start", plan.y_label));
  plan.series.forEach(({ name, path, end }, place) => {
    const look = `curve-line curve-${place}`;
    svg.append(draw("path", { class: look, d: path }));
    if (end) svg.append(label(end[0] - 6, end[1], "end", end[2]));
    const x = 168 + 120 * place;
    if (plan.series.length > 1) {
      svg.append(draw("path", { class: look, d: `M${x} 11h22` }), label(x + 28, 15, "start", name));
    }
  });
  return svg;
}

/**
 * A Run button that says what the kernel does: asked, running, silent.
 * @param {{model: any, label: string, collect: () => any}} _ collect gives the arguments of `run`
 */
function runButton({ model, label, collect }) {
  const words = h("span", { class: "piece-wait", role: "status" });
  const kernel = patience({ model, says: (text) => {
    words.textContent = text;
    if (text) turnOff(button, false);
  } });
  const button = h("button", { class: "lab-button lab-main", type: "button", onclick: () => press() }, label);
  function press() {
    if (isOff(button)) return;
    kernel.request("run", collect(),
      "No answer yet: the kernel may be busy with another cell, or not running. Start it, run this cell again, then press here.");
    turnOff(button);
    words.textContent = "Asked the kernel …";
  }
  /** @param {boolean} running whether the kernel says that it is at it */
  function heard(running) {
    kernel.settle();
    turnOff(button, running);
    words.textContent = running ? "Running … (the kernel's interrupt button stops it)" : "";
  }
  return { button, words, press, heard, settle: kernel.settle };
}

export { closeEnough, howFar, numberFrom, short };
