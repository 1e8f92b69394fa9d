import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./load.mjs";

const { ancestors, codeIn, fit, nest, search, step, typeahead, unpack, visible } =
  await load("base", "tree", "xray");

const body = (kind, type, extra = {}) => ({
  kind, type, status: [{ sign: "+", word: "registered" }], badges: [], ...extra,
});

/** Rows from an outline: [level, name, body]. */
function rowsOf(...lines) {
  const words = lines.map(([, name]) => name);
  const bodies = lines.map(([, , each]) => each ?? body("module", "Linear"));
  return nest(lines.flatMap(([level], i) => [level, i, i]), words, bodies);
}

const NET = rowsOf(
  [1, "Net", body("root", "")],
  [2, "encoder", body("module", "Encoder")],
  [3, "0 … 2", body("repeat", "Block")],
  [4, "0", body("module", "Block")],
  [5, "weight", body("parameter", "Parameter")],
  [4, "1", body("module", "Block", { badges: ["frozen", "2 unused inside"] })],
  [4, "2", body("module", "Block")],
  [2, "layers", body("holder", "list")],
  [3, "[0]", body("module", "Linear", { status: [{ sign: "-", word: "invisible" }] })],
);
const named = (indices) => indices.map((i) => NET[i].name);
const hits = (query) => named(search(NET, query).hits);

test("paths read as in Python, and equal neighbours add nothing to them", () => {
  assert.deepEqual(NET.map(({ path }) => path), [
    "", "encoder", "encoder", "encoder.0", "encoder.0.weight", "encoder.1", "encoder.2",
    "layers", "layers[0]",
  ]);
});

test("every row knows its parent, its kids and where its descendants end", () => {
  assert.deepEqual(NET.map(({ parent }) => parent), [-1, 0, 1, 2, 3, 2, 2, 0, 7]);
  assert.deepEqual(NET[2].kids, [3, 5, 6]);
  assert.deepEqual(NET.map(({ end }) => end), [9, 7, 7, 5, 5, 6, 7, 9, 9]);
  assert.deepEqual(ancestors(NET, 4), [3, 2, 1, 0]);
});

test("a closed row hides all that is below it, also what is open there", () => {
  assert.deepEqual(visible(NET, new Set()), [0]);
  assert.deepEqual(named(visible(NET, new Set([0, 2, 7]))), ["Net", "encoder", "layers", "[0]"]);
  assert.equal(visible(NET, new Set([0, 1, 2, 3, 7])).length, 9);
});

test("search finds names, types, badges, statuses; all its words must match", () => {
  assert.deepEqual(hits("WEIGHT"), ["weight"]);
  assert.deepEqual(hits("block"), ["0", "1", "2"]); // not the row that stands for all three
  assert.deepEqual(hits("frozen"), ["1"]);
  assert.deepEqual(hits("invisible"), ["[0]"]);
  assert.deepEqual(hits("linear invisible"), ["[0]"]);
  assert.deepEqual(hits("linear frozen"), []);
  assert.deepEqual(hits("unused"), []); // "2 unused inside" is about what lies below
});

test("search finds the end of a path, not everything below it", () => {
  assert.deepEqual(hits("encoder"), ["encoder"]);
  assert.deepEqual(hits("encoder.0"), ["0"]);
  assert.deepEqual(hits("layers[0]"), ["[0]"]);
});

test("search opens the ancestors of its hits and keeps nothing else", () => {
  const { keep, open } = search(NET, "weight");
  assert.deepEqual(named(visible(NET, open, keep)), ["Net", "encoder", "0 … 2", "0", "weight"]);
  assert.deepEqual([...open].sort(), [0, 1, 2, 3]);
});

test("an empty search has no words and no hits", () => {
  assert.deepEqual([search(NET, "  ").terms, search(NET, "  ").hits], [[], []]);
});

test("keys of movement stop at both ends; other keys are not ours", () => {
  const shown = [0, 1, 7, 8];
  assert.equal(step("ArrowDown", shown, 1, 10), 7);
  assert.equal(step("ArrowDown", shown, 8, 10), 8);
  assert.equal(step("ArrowUp", shown, 0, 10), 0);
  assert.equal(step("PageUp", shown, 8, 2), 1);
  assert.equal(step("PageDown", shown, 1, 10), 8);
  assert.equal(step("Home", shown, 8, 10), 0);
  assert.equal(step("End", shown, 0, 10), 8);
  assert.equal(step("a", shown, 0, 10), null);
});

test("typing a letter goes on to the next such name; a longer word may stay", () => {
  const shown = [0, 1, 3, 5, 6, 7];
  assert.equal(NET[typeahead(NET, shown, 0, "l")].name, "layers");
  assert.equal(NET[typeahead(NET, shown, 7, "e")].name, "encoder"); // around the end
  assert.equal(NET[typeahead(NET, shown, 1, "en")].name, "encoder");
  assert.equal(typeahead(NET, shown, 0, "z"), null);
  const two = rowsOf([1, "Net"], [2, "encoder"], [2, "entry"]);
  assert.equal(typeahead(two, [0, 1, 2], 1, "e"), 2);
  assert.equal(typeahead(two, [0, 1, 2], 1, "en"), 1);
});

test("columns that don't fit are left out, the least telling first; chosen ones stay", () => {
  const columns = [
    { key: "shape", width: 100, shown: true, rank: 1 },
    { key: "parameters", width: 100, shown: true, rank: 0 },
    { key: "dtype", width: 100, shown: false, rank: 2 },
  ];
  const keys = (chosen, width) => fit(columns, chosen, width).map(({ key }) => key);
  assert.deepEqual(keys(null, 900), ["shape", "parameters"]);
  assert.deepEqual(keys(null, 450), ["parameters"]);
  assert.deepEqual(keys(null, 200), []);
  assert.deepEqual(keys(new Set(["shape", "dtype"]), 200), ["shape", "dtype"]);
});

test("the code of a fix stands between backticks", () => {
  assert.equal(codeIn("Wrap it: `self.w = nn.Parameter(w)`, or `x`."), "self.w = nn.Parameter(w)");
  assert.equal(codeIn("Nothing to write."), "");
});

test("rows are unpacked from numbers", () => {
  const [root, row] = unpack({
    words: ["root", "", "Net", "+registered", " ", "parameter", "Parameter", "w",
      "frozen\tshared", "Why\tbecause\nFix\tso", "(2,)"],
    columns: [{ key: "shape" }],
    bodies: [[0, 1, 1, 3, 4, 4, 1, 1, 1], [5, 6, 0, 3, 4, 4, 8, 9, 10]],
    rows: [1, 2, 0, 2, 7, 1],
  });
  assert.equal(root.name, "Net");
  assert.deepEqual(root.body.badges, []);
  assert.deepEqual(root.body.facts, []);
  assert.equal(row.path, "w");
  assert.deepEqual(row.body.status[0], { sign: "+", word: "registered" });
  assert.deepEqual(row.body.badges, ["frozen", "shared"]);
  assert.deepEqual(row.body.facts, [["Why", "because"], ["Fix", "so"]]);
  assert.equal(row.body.cells.shape, "(2,)");
  assert.equal(row.body.registered, false);
});
