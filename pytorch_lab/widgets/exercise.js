function render({ model, el }) {
  const { root, close } = frame(el, { name: "Exercise", kind: "exercise" });
  const press = (button) => () => ask(model, "press", { button });
  const end = follow(model, (s) => {
    root.replaceChildren(
      h("p", { class: "lab-title" }, `Exercise ${s.exercise}`),
      h("p", {}, `${s.icon} ${s.word}`),
      h("p", {}, prose(s.message)),
      h("ol", {}, s.hints.map((hint) => h("li", {}, prose(hint)))),
      h("div", { class: "lab-row" },
        h("button", { class: "lab-button lab-main", onclick: press("check") }, "Check"),
        h("button", { class: "lab-button", onclick: press("hint") }, "Hint"),
        h("button", { class: "lab-button", onclick: press("reset") }, "Reset"),
        h("button", { class: "lab-button", disabled: !s.solution.enabled, onclick: press("solution") }, "Solution"),
      ),
    );
  });
  return () => { end(); close(); };
}

export default { render };
