import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";

const widgets = new URL("../../pytorch_lab/widgets/", import.meta.url);

// base.js exports nothing (a widget's module uses its names directly): add an export to test it.
const source = await readFile(new URL("base.js", widgets), "utf8");
const { ask } = await import(
  `data:text/javascript,${encodeURIComponent(`${source}\nexport { ask };`)}`
);

test("base.js exports nothing of its own", () => {
  assert.doesNotMatch(source, /^\s*(export|import)\b/m);
});

test("ask sends the name and the arguments that on_<name> takes", () => {
  const sent = [];
  const model = { send: (content) => sent.push(content) };
  ask(model, "run", { order: [1, 0] });
  ask(model, "reset");
  assert.deepEqual(sent, [{ ask: "run", with: { order: [1, 0] } }, { ask: "reset", with: {} }]);
});
