import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readArchive, writeArchive } from "./archive.ts";

const name = fc
  .string({ minLength: 1, maxLength: 60, unit: "grapheme" })
  .map((text) => text.replace(/[/\0]/g, "_"));
const path = fc
  .array(name, { minLength: 1, maxLength: 4 })
  .map((names) => names.map((each) => (each === "." || each === ".." ? "x" : each)).join("/"));
const file = fc.record({
  path,
  content: fc.uint8Array({ maxLength: 1_500 }).map((bytes) => Buffer.from(bytes)),
  executable: fc.boolean(),
});

test("reading an archive returns the files that were written, whatever their names", () => {
  fc.assert(
    fc.property(fc.uniqueArray(file, { selector: (one) => one.path, maxLength: 5 }), (files) => {
      expect(readArchive(writeArchive(files))).toEqual(files);
    }),
  );
});

test("GNU tar can read the archive, also with long names", () => {
  const long = `${"a folder ü/".repeat(20)}deep.txt`;
  const archive = writeArchive([
    { path: long, content: Buffer.from("deep") },
    { path: "link", content: Buffer.from(long), isLink: true },
  ]);
  const listed = execFileSync("tar", ["-tv", "--quoting-style=literal", "-f", "-"], {
    input: archive,
  }).toString();
  expect(listed).toContain(`./${long}\n`);
  expect(listed).toContain(`./link -> ${long}`);
});

test("reading a truncated or invalid archive returns the complete files", () => {
  const archive = writeArchive([
    { path: "a", content: Buffer.from("a") },
    { path: "b", content: Buffer.alloc(2_000) },
  ]);
  expect(readArchive(archive.subarray(0, 2_100)).map(({ path: found }) => found)).toEqual(["a"]);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 3_000 }), (bytes) => void readArchive(Buffer.from(bytes))),
  );
});
