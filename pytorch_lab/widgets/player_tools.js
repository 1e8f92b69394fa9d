// The controls around the picture: search, the menu, zoom, notes; and saving to a file.

/** The search box of a view: `find` lights what matches, Enter goes from hit to hit. */
function searchBox(view, { find, show }) {
  const search = h("input", {
    type: "search", class: "lab-player-search", placeholder: "Search", "aria-label": "Search operations, modules, parameters",
    spellcheck: "false", autocomplete: "off", oninput: () => { count.textContent = find(search.value); },
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      search.value = "";
      count.textContent = find("");
    } else if (event.key === "Enter" && view.hits.length) {
      view.hit = (view.hit + (event.shiftKey ? -1 : 1) + view.hits.length) % view.hits.length;
      const [i, item] = view.hits[view.hit];
      const { hits, hit } = view;
      show(i, item);
      Object.assign(view, { hits, hit });
      count.textContent = `${hit + 1} of ${hits.length}`;
    } else return;
    event.preventDefault();
  });
  const count = h("span", { class: "lab-player-count lab-quiet" });
  return { search, count };
}

function zoomKeys(pane) {
  const key = (label, sign, onclick) => h("button", { class: "lab-player-zoom", type: "button", "aria-label": label, title: label, onclick }, transportIcon(sign));
  return h("div", { class: "lab-player-zooms", role: "group", "aria-label": "Zoom" },
    key("Zoom in", "in", () => pane.zoomBy(1.25)), key("Zoom out", "out", () => pane.zoomBy(0.8)), key("Show all", "all", () => pane.fit()));
}

/** What a reader should know of this record, folded away. */
function notesOf(notes) {
  if (!notes.length) return "";
  return h("details", { class: "lab-player-notes lab-quiet" },
    h("summary", {}, notes.length === 1 ? "1 note" : `${notes.length} notes`),
    h("ul", {}, notes.map((text) => h("li", {}, text))));
}

/** Which graph is shown; nothing where there is but one. */
function viewPicker(views, show) {
  if (views.length < 2) return "";
  const select = h("select", { class: "lab-player-select", "aria-label": "Graph", onchange: () => show(select.value) },
    views.map((name) => h("option", { value: name }, VIEWS[name])));
  return h("label", { class: "lab-player-by" }, h("span", { class: "lab-quiet" }, "Graph"), select);
}

function playerMenu({ unfold, svg, page }) {
  const item = (label, onclick) => h("button", {
    class: "lab-player-item", type: "button", onclick: () => {
      menu.open = false;
      menu.querySelector("summary").focus();
      onclick();
    },
  }, label);
  const menu = h("details", { class: "lab-player-menu" },
    h("summary", { class: "lab-button" }, "More"),
    h("div", { class: "lab-player-items" },
      item("Unfold all", () => unfold(true)), item("Fold again", () => unfold(false)),
      item("Save as SVG", svg), page && item("Save as a page that works offline", page)));
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
    event.stopPropagation();
  });
  return menu;
}

function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: url, download: name.replace(/[^\w.-]+/g, "_") });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
