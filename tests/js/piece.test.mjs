import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";

import { load } from "./load.mjs";

const { closeEnough, howFar, numberFrom, short } = await load("base", "piece", "predict");
const { moved } = await load("base", "piece", "order");
const { typed } = await load("base", "piece", "clinic");
const { score } = await load("base", "piece", "recall");
const { tally } = await load("base", "piece", "card");

const table = JSON.parse(await readFile(new URL("../number_guesses.json", import.meta.url), "utf8"));

test("a number is marked as in Python", () => {
  assert.ok(table.length > 10);
  for (const { guess, answer, tolerance, right } of table) {
    assert.equal(closeEnough(guess, { answer, tolerance }), right, `${guess} for ${answer}`);
  }
});

test("what a learner types is read as a number, or refused", () => {
  const read = {
    "4": 4, " 4.5 ": 4.5, "-3": -3, "−3": -3, "+2": 2, ".5": 0.5, "5.": 5, "1e-3": 0.001, "0,5": 0.5,
    "12,25": 12.25, "1 024": 1024, "1_000": 1000, "1,0000": 1,
  };
  for (const [text, number] of Object.entries(read)) assert.equal(numberFrom(text), number, text);
  for (const text of ["", " ", "four", "1,000", "1,2,3", "4 MB", "nan", "Infinity", "0x10", "1/3", "--1", "."]) {
    assert.equal(numberFrom(text), null, text);
  }
});

test("numbers are shown with at most six digits", () => {
  assert.equal(short(0.1 + 0.2), "0.3");
  assert.equal(short(4), "4");
  assert.equal(short(1234567), "1234570");
});

test("how far off, and in which direction", () => {
  assert.equal(howFar(1, { answer: 4.2, unit: "MB" }), "1 is 3.2 MB too low.");
  assert.equal(howFar(5, { answer: 4, unit: "" }), "5 is 1 too high.");
});

test("a line at an end stays there", () => {
  assert.deepEqual([moved(0, -1, 3), moved(0, 1, 3), moved(2, 1, 3), moved(2, -1, 3)], [0, 1, 2, 1]);
});

test("Tab goes to the next stop, Enter keeps the indentation and deepens it after a colon", () => {
  assert.equal(typed("Tab", "", 0), "    ");
  assert.equal(typed("Tab", "a\n  x", 4), "  ");
  assert.equal(typed("Enter", "    x = 1", 9), "\n    ");
  assert.equal(typed("Enter", "for k in y:", 11), "\n    ");
  assert.equal(typed("Enter", "  if a:  # why", 14), "\n      ");
  assert.equal(typed("Enter", "a\nb", 3), "\n");
  assert.equal(typed("x", "", 0), null);
});

test("the score in words", () => {
  assert.equal(score([true, false, true]), "2 of 3 right.");
  assert.equal(score([true, true]), "All 2 right.");
  assert.equal(score([false]), "0 of 1 right.");
  assert.equal(score([true]), "Right.");
});

test("the tally of a lesson counts first guesses", () => {
  assert.equal(tally([]), "Your guesses of this lesson will stand here.");
  assert.equal(
    tally([{ mark: "right" }, { mark: "right in the end" }, { mark: "not right" }]),
    "Your guesses: 1 of 3 right the first time",
  );
});
