// Guess before you run: a question that is locked in, marked, explained, and remembered.

function render({ model, el }) {
  const { question, kept } = model.get("state");
  const { root, close } = frame(el, { name: `Predict: ${plain(question.ask)}`, kind: "piece lab-predict" });
  const trouble = troubleBox();
  const wait = h("p", { class: "piece-wait", role: "status" });
  const kernel = patience({ model, says: (text) => { wait.textContent = text; } });
  const form = questionForm(question, {
    kept,
    heard: (guess) => kernel.request("guess", { guess },
      "Your guess is not kept yet: the kernel has not answered. It may be busy, or not running."),
  });
  root.append(heading("Predict"), form.element, wait, trouble.box);
  const stop = follow(model, (state) => {
    if (kernel.waiting()) kernel.settle();
    form.adopt(state.kept);
    trouble.show(state.trouble);
  });
  return () => { stop(); kernel.settle(); close(); };
}
export default { render };
