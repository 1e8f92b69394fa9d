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
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
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

/** Switch a button off or on. It stays focusable: the keyboard keeps its place. */
function turnOff(button, off = true) {
  button.setAttribute("aria-disabled", String(off));
}

/** @returns {boolean} */
function isOff(button) {
  return button.getAttribute("aria-disabled") === "true";
}

/**
 * The root of a widget: named, themed, and deaf to the notebook's own shortcuts, so that
 * "d d" typed on a focused slider never deletes the cell.
 *
 * Two guards, because front ends differ. JupyterLab 4.6 listens on the document while the key
 * bubbles: it never hears a key that stops here. One that listens in the capture phase has already
 * heard it, but leaves alone an element that carries `data-lm-suppress-shortcuts`; the focused
 * element must carry it itself, since a shortcut's selector (`… :focus`) is matched before Lumino
 * climbs to the parents.
 * @returns {{root: HTMLElement, say: (text: string) => void, close: () => void}}
 */
function frame(el, { name, kind }) {
  const live = h("div", { class: "lab-live", role: "status", "aria-live": "polite" });
  const root = h("section", { class: `lab lab-${kind}`, "aria-label": name });
  const ours = new AbortController();
  for (const key of ["keydown", "keyup", "keypress"]) {
    root.addEventListener(key, (event) => event.stopPropagation(), { signal: ours.signal });
  }
  const mark = (event) => event.target.setAttribute("data-lm-suppress-shortcuts", "true");
  root.addEventListener("focusin", mark, { signal: ours.signal });
  el.append(root, live);
  return {
    root,
    say: (text) => { live.textContent = text; },
    close: () => {
      ours.abort();
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
