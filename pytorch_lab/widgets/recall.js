// Questions one after another; at the end the score, with all answers.

/** "2 of 3 right" in words. @param {boolean[]} marks */
function score(marks) {
  const right = marks.filter(Boolean).length;
  if (right === marks.length) return marks.length === 1 ? "Right." : `All ${right} right.`;
  return `${right} of ${marks.length} right.`;
}

/** What is said of one question at the end. */
function summaryRow(question, guess) {
  const right = question.kind === "number" ? closeEnough(guess, question)
    : question.options.find((option) => option.text === guess).right;
  const answer = question.kind === "number" ? question.shown
    : question.options.find((option) => option.right).text;
  const why = question.kind === "number" ? question.why
    : question.options.find((option) => option.right).why;
  return { right, row: h("li", { class: right ? "piece-right" : "piece-wrong" },
    icon(right ? "right" : "wrong"), h("span", { class: "lab-live" }, right ? "Right:" : "Not right:"),
    h("div", {}, h("p", {}, ...prose(question.ask)),
      h("p", {}, h("strong", {}, ...prose(answer)), right ? "" : [" – not ", ...prose(String(guess))]),
      h("p", { class: "lab-quiet" }, ...prose(why)))) };
}

function render({ model, el }) {
  const { questions, kept } = model.get("state");
  const { root, say, close } = frame(el, { name: `Recall: ${questions.length} questions`, kind: "piece lab-recall" });
  const count = h("span", { class: "lab-quiet" });
  const body = h("div", {});
  const wait = h("p", { class: "piece-wait", role: "status" });
  const trouble = troubleBox();
  const kernel = patience({ model, says: (text) => { wait.textContent = text; } });
  const answers = kept.map((memory) => memory?.guess ?? null);
  root.append(heading("Recall", count), body, wait, trouble.box);

  function put(place) {
    count.textContent = `Question ${place + 1} of ${questions.length}`;
    const last = place + 1 === questions.length;
    const next = h("button", {
      class: "lab-button lab-main recall-next", type: "button", hidden: true,
      onclick: () => { last ? finish() : put(place + 1); body.querySelector("input, .recall-score").focus(); },
    }, last ? "See my score" : "Next question");
    const form = questionForm(questions[place], {
      kept: null, lock: "Answer", again: null,
      heard: (guess) => {
        answers[place] = guess;
        next.hidden = false;
        kernel.request("guess", { place, guess }, "Your answer is not kept yet: the kernel has not answered. It may be busy, or not running.");
      },
    });
    body.replaceChildren(form.element, next);
  }

  function finish() {
    count.textContent = "";
    const rows = questions.map((question, place) => summaryRow(question, answers[place]));
    const words = score(rows.map(({ right }) => right));
    body.replaceChildren(h("p", { class: "recall-score lab-title", tabindex: "-1" }, words),
      h("ol", { class: "recall-list" }, ...rows.map(({ row }) => row)));
    say(words);
  }

  const first = answers.indexOf(null);
  if (first < 0) finish();
  else put(first);
  const stop = follow(model, (state) => {
    if (kernel.waiting()) kernel.settle();
    trouble.show(state.trouble);
  });
  return () => { stop(); kernel.settle(); close(); };
}
export default { render };
export { score };
