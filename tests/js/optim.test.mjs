import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./load.mjs";

const { nearest } = await load("base", "piece", "lr_curve");
const { placeAt, saysAt, wayTo } = await load("base", "piece", "race");
const { picked, pieces } = await load("base", "piece", "param_groups");

test("the pointer reads the nearest step, also beyond both ends", () => {
  const places = [10, 20, 30, 40];
  assert.deepEqual([-5, 10, 14, 16, 29, 35.1, 99].map((x) => nearest(places, x)), [0, 0, 0, 1, 2, 3, 3]);
  assert.equal(nearest([7], 100), 0);
});

test("a way grows line by line and leaves out what is outside the picture", () => {
  const lines = [[], [0, 0, 1, 1], [], [5, 5, 6, 6]];
  assert.equal(wayTo(lines, 0), "");
  assert.equal(wayTo(lines, 1), "M0 0L1 1");
  assert.equal(wayTo(lines, 2), "M0 0L1 1");
  assert.equal(wayTo(lines, 99), "M0 0L1 1M5 5L6 6");
});

test("a racer that has ended stays where it was", () => {
  assert.deepEqual(placeAt([[0, 0], [1, 2]], 1), [1, 2]);
  assert.deepEqual(placeAt([[0, 0], [1, 2]], 50), [1, 2]);
});

test("what is said of a racer depends on the step", () => {
  const there = { heights: ["4", "2", "0.1"], arrived: 2, stopped: false, result: "there at step 2" };
  assert.deepEqual([0, 1, 2, 9].map((k) => saysAt(there, k)), ["4", "2", "0.1, there at 2", "0.1, there at 2"]);
  const lost = { heights: ["4", "9"], arrived: null, stopped: true, result: "diverged at step 2" };
  assert.deepEqual([0, 1, 5].map((k) => saysAt(lost, k)), ["4", "diverged at step 2", "diverged at step 2"]);
});

test("a chosen group picks its rows, no choice picks all", () => {
  const rows = [{ groups: [0] }, { groups: [] }, { groups: [0, 1] }];
  assert.equal(picked(rows, null).length, 3);
  assert.deepEqual(picked(rows, 1), [rows[2]]);
  assert.deepEqual(picked(rows, 0), [rows[0], rows[2]]);
});

test("a name may break after a dot and after an underscore, and loses nothing", () => {
  assert.deepEqual(pieces("body.0.in_proj_weight"), ["body.", "0.", "in_", "proj_", "weight"]);
  assert.deepEqual(pieces("tensor (3,)"), ["tensor (3,)"]);
});
