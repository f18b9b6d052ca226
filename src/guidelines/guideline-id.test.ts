import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { assignGuidelineIds, guidelineId } from "./guideline-record.ts";
import { readGuidelines } from "./read-guidelines.ts";

const sha = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 16);

test("an id is the hash of file and title, and of a count from the second on", () => {
  const { records } = readGuidelines({
    path: "a/CLAUDE.md",
    text: "## Größe\n## Größe\n## Other\n## Größe\n",
  });
  expect(records.map((record) => record.id)).toEqual([
    sha("a/CLAUDE.md:Größe"),
    sha("a/CLAUDE.md:Größe:2"),
    sha("a/CLAUDE.md:Other"),
    sha("a/CLAUDE.md:Größe:3"),
  ]);
  expect(records.map((record) => record.position)).toEqual([0, 1, 2, 3]);
});

test("a title that spells a counted one does not take its id twice", () => {
  const { records } = readGuidelines({ path: "CLAUDE.md", text: "## A\n## A:2\n## A\n" });
  expect(records.map((record) => record.id)).toEqual([
    guidelineId("CLAUDE.md", "A"),
    guidelineId("CLAUDE.md", "A:2"),
    guidelineId("CLAUDE.md", "A", 3),
  ]);
  expect(assignGuidelineIds("CLAUDE.md", records).map((record) => record.id)).toEqual(
    records.map((record) => record.id),
  );
});
