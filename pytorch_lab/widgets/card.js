// The card above a lesson, and the one below it with the learner's guesses.

function opening({ goal, needs, changed }) {
  const list = (name, lines) => lines.length > 0 && h("section", { class: "card-part", "aria-label": name },
    h("p", { class: "piece-step" }, name), h("ul", {}, ...lines.map((line) => h("li", {}, ...prose(line)))));
  return [
    h("p", { class: "card-goal" }, ...prose(goal)),
    h("div", { class: "card-parts" }, list("Needs", needs), list("Changed since most tutorials were written", changed)),
  ];
}

/** How many of the guesses were right at once, in words. @param {{mark: string}[]} rows */
function tally(rows) {
  const right = rows.filter((row) => row.mark === "right").length;
  if (!rows.length) return "Your guesses of this lesson will stand here.";
  return `Your guesses: ${right} of ${rows.length} right the first time`;
}

function guessTable(rows) {
  const cell = (text) => h("td", {}, ...prose(text));
  return h("table", { class: "card-table" },
    h("caption", {}, tally(rows)),
    h("thead", {}, h("tr", {}, ...["Question", "Your first guess", "Answer", "It was"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows.map(({ ask: words, guess, answer, mark }) => {
      const good = mark !== "not right";
      return h("tr", {}, h("th", { scope: "row" }, ...prose(words)), cell(guess), cell(answer),
        h("td", { class: good ? "card-good" : "card-bad" }, h("span", {}, icon(good ? "right" : "wrong"), mark)));
    })));
}

function render({ model, el }) {
  const state = model.get("state");
  const { root, close } = frame(el, { name: `${state.kind}: ${plain(state.title)}`, kind: "piece lab-card" });
  const minutes = state.minutes && h("span", { class: "lab-quiet" }, `${state.minutes} minutes`);
  root.append(heading(state.kind, minutes), h("p", { class: "lab-title card-title" }, ...prose(state.title)));
  if (state.kind === "Lesson") {
    root.append(...opening(state).filter(Boolean));
    return close;
  }
  const given = h("div", {});
  root.append(h("p", { class: "card-goal" }, ...prose(state.learned)), given);
  const stop = follow(model, ({ rows }) => {
    given.replaceChildren(rows.length ? guessTable(rows) : h("p", { class: "lab-quiet" }, tally(rows)));
  });
  return () => { stop(); close(); };
}
export default { render };
export { tally };
