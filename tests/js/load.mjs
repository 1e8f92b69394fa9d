// Loads a widget's module as the front end gets it: the shared files with its own behind them.
//
//   import { load } from "./load.mjs";
//   const { unpack } = await load("base", "tree", "xray");
//
// `render` needs a page and is tested in tests/browser; here stands the logic that needs none.

import { readFile } from "node:fs/promises";

const widgets = new URL("../../pytorch_lab/widgets/", import.meta.url);

/** @param {...string} stems those of the widget's `shared`, then its own */
export async function load(...stems) {
  const parts = await Promise.all(
    stems.map((stem) => readFile(new URL(`${stem}.js`, widgets), "utf8")),
  );
  const source = parts.join("") + `\n//# sourceURL=${stems.at(-1)}.js`;
  return import(`data:text/javascript;base64,${Buffer.from(source).toString("base64")}`);
}
