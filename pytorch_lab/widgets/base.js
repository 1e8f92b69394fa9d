// Shared by every widget: put as text in front of each widget's own module (a front end cannot
// import a sibling file). Nothing here is exported; a widget's module uses the names directly.

/**
 * A DOM element: h("button", {class: "lab-button", onclick: f, "aria-pressed": false}, "Run").
 * @param {string} tag
 * @param {Record<string, any>} [attributes] on… is a listener, true is "", false and null are left out
 * @param {...(Node|string|null|undefined|false)} children
 */
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-") && value != null) element.setAttribute(name, String(value));
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

/** Text with `code` spans and **bold**, as elements; the only markup our sentences use. */
function prose(text) {
  return String(text)
    .split(/(`[^`]+`|\*\*[^*]+\*\*)/)
    .filter(Boolean)
    .map((part) =>
      part.startsWith("`") ? h("code", {}, part.slice(1, -1))
      : part.startsWith("**") ? h("strong", {}, part.slice(2, -2))
      : part);
}

/** Ask the kernel by name; the answer is a change of `state`. */
function ask(model, name, arguments_ = {}) {
  model.send({ ask: name, with: arguments_ });
}

/**
 * The root of a widget: named, themed, and deaf to the notebook's own shortcuts, so that
 * "d d" typed on a focused slider never deletes the cell.
 * @returns {{root: HTMLElement, say: (text: string) => void, close: () => void}}
 */
function frame(el, { name, kind }) {
  const live = h("div", { class: "lab-live", role: "status", "aria-live": "polite" });
  const root = h("section", {
    class: `lab lab-${kind}`, "aria-label": name, "data-lm-suppress-shortcuts": "true",
  });
  const guard = (event) => event.stopPropagation();
  const keys = ["keydown", "keyup", "keypress"];
  for (const key of keys) root.addEventListener(key, guard);
  el.append(root, live);
  return {
    root,
    say: (text) => { live.textContent = text; },
    close: () => {
      for (const key of keys) root.removeEventListener(key, guard);
      root.remove();
      live.remove();
    },
  };
}

/** Call `draw` now and at each change of `state`; returns the function that ends it. */
function follow(model, draw) {
  const redraw = () => draw(model.get("state"));
  model.on("change:state", redraw);
  redraw();
  return () => model.off("change:state", redraw);
}
