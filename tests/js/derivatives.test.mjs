import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./load.mjs";

const { arithmetic, digits, meant, near } = await load("base", "piece", "derivatives");

test("a number, or a sum of numbers and names, is read", () => {
  const names = { L: -0.5, v1: 4, a: 2 };
  const read = {
    "2": 2, "-3.5": -3.5, "−1": -1, "0,5": 0.5, "1 - L**2": 0.75, "1-L^2": 0.75, "1 − L²": 0.75, "-L": 0.5,
    "v1 * a": 8, "v1·a": 8, "v1 / a / 2": 1, "2 ** 3 ** 2": 512, "-2 ** 2": -4, "(a + 1) * (v1 - 1)": 9,
    "2 ** -1": 0.5, "1e-3 * 2": 0.002, ".5 + .25": 0.75, "1 - 2 - 3": -4, "+a": 2, "- -a": 2, "0,5 * a": 1,
  };
  for (const [text, number] of Object.entries(read)) assert.equal(arithmetic(text, names), number, text);
  for (const text of ["", " ", "a b", "2a", "(1", "1)", "1 +", "* 2", "x", "1/0", "sin(a)", "1..2", "constructor", "__proto__", "()", "a.grad"]) {
    assert.equal(arithmetic(text, names), null, text);
  }
});

test("a guess is marked with a slack of its own", () => {
  assert.ok(near(0.0099, { answer: 0.009866, slack: 0.0001 }));
  assert.ok(!near(0.01, { answer: 0.009866, slack: 0.0001 }));
  assert.ok(near(0, { answer: 0, slack: 1e-6 }));
});

test("the nearest slip speaks, the first of equals, else the general sentence", () => {
  const blank = { otherwise: "else", slips: [
    { value: 1, slack: 0.5, says: "one" }, { value: 1.2, slack: 0.1, says: "near" }, { value: 1, slack: 0.5, says: "two" }] };
  assert.equal(meant(1, blank), "one");
  assert.equal(meant(1.19, blank), "near");
  assert.equal(meant(1.4, blank), "one");
  assert.equal(meant(7, blank), "else");
});

test("a field shows four digits", () => {
  assert.equal(digits(-0.00986603), "−0.009866");
  assert.equal(digits(3), "3");
});
