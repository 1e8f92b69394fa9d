import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./load.mjs";

const { nearest } = await load("base", "piece", "loop");

test("the pointer reads the nearest turn, also beyond both ends", () => {
  const places = [64, 100, 140, 628];
  assert.deepEqual([0, 64, 83, 119, 121, 600, 999].map((x) => nearest(places, x)), [0, 0, 1, 1, 2, 3, 3]);
  assert.equal(nearest([64], 500), 0);
});
