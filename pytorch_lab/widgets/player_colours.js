// Colouring the boxes: by what, and the legend that says so.

/** The menu of colourings, the legend below the picture, and `recolour`. */
function colouring(view, { scene, index }) {
  const { films } = view;
  const legend = h("div", { class: "lab-player-legend" });

  const found = Object.entries(COLOURS).filter(([how]) => {
    const { legend: entries } = paint(how, scene, films[0], index);
    return how === "module" ? entries.length : entries.length > 1;
  });
  const ways = found[0]?.[0] === "module" ? found : [["none", "None"], ...found];
  view.colour = ways[0][0];
  const colours = h("select", { class: "lab-player-select", "aria-label": "Colour by", onchange: () => recolour(colours.value) },
    ways.map(([how, label]) => h("option", { value: how }, label)));

  function recolour(how) {
    view.colour = how;
    for (const pane of view.panes) {
      pane.colour = how === "none" ? { of: () => null, legend: [] } : paint(how, pane.scene, pane.film, pane.index);
      pane.recolour();
      pane.draw();
    }
    const entries = view.panes[0].colour.legend;
    const scale = entries.length === 2 && entries[0].strength < 1;
    legend.replaceChildren(...(scale
      ? [h("span", {}, `${COLOURS[how]} ${entries[0].label}`), h("i", { class: "lab-player-ramp" }), h("span", {}, entries[1].label)]
      : entries.map(({ hue, label }) => h("span", {}, h("i", { class: "lab-player-swatch", style: `background:var(--lab-hue-${hue})` }), label))),
      films.some((film) => film.ops.some(({ saved }) => saved > 0))
        ? h("span", {}, h("i", { class: "lab-player-swatch lab-player-keeps" }), "keeps tensors for backward") : "",
      view.diff ? h("span", {}, h("i", { class: "lab-player-swatch lab-player-only" }), "only in this run") : "");
  }

  return { colours, legend, recolour };
}
