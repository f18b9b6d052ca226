import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { testFolder } from "../../src/testing/test-folder.ts";
import { generate, readCorpus } from "./corpus.ts";

const folder = testFolder(afterAll);

const head = { format: "kit-security-corpus/1", kind: "doors", contract: [], set: "shared", count: 1 };
const one = { id: "do-1", class: "open", tier: "core", why: "because", door: "front" };

test.each([
  ["a key of a case that no test looks at", { ...head, cases: [{ ...one, window: true }] }, /do-1.*window/s],
  ["a key of the head that no test looks at", { ...head, cases: [one], walls: 4 }, /walls/],
  ["another number of cases than it says", { ...head, count: 2, cases: [one] }, /says 2 cases and has 1/],
  ["a case that is there twice", { ...head, count: 2, cases: [one, one] }, /has 1 of 2 ids/],
  ["a tier that is none", { ...head, cases: [{ ...one, tier: "soft" }] }, /do-1.*tier/s],
  ["another kind", { ...head, kind: "walls", cases: [one] }, /kind/],
])("a file with %s is refused", async (_name, corpus, message) => {
  await writeFile(join(folder, "doors.json"), JSON.stringify(corpus));
  const schema = { head: {}, one: { door: z.string() }, folder };
  expect(() => readCorpus("doors", schema)).toThrow(message);
  await writeFile(join(folder, "doors.json"), JSON.stringify({ ...head, cases: [one] }));
  expect(readCorpus("doors", schema).cases).toEqual([one]);
});

test("text is generated as the files specify", () => {
  expect(generate({ concat: ["a", { repeat: "b", times: 2 }, { repeat_index: "<{i}>", times: 2 }] })).toBe(
    "abb<0><1>",
  );
  expect(generate({ repeat_indent: "{i}\n", times: 3, unit: " " })).toBe("0\n 1\n  2\n");
});
