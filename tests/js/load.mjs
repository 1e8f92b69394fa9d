// Loads a widget's module as the front end gets it: base.js with the widget's own file behind it.
//
//   import { load } from "./load.mjs";
//   const { rows } = await load("xray");
//
// `render` needs a page and is tested in tests/browser; here stands the logic that needs none.

import { readFile } from "node:fs/promises";

const widgets = new URL("../../pytorch_lab/widgets/", import.meta.url);

/** @param {string} stem the common name of the widget's files */
export async function load(stem) {
  const parts = await Promise.all(
    ["base.js", `${stem}.js`].map((name) => readFile(new URL(name, widgets), "utf8")),
  );
  const source = parts.join("") + `\n//# sourceURL=${stem}.js`;
  return import(`data:text/javascript;base64,${Buffer.from(source).toString("base64")}`);
}
