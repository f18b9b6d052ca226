import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readMarkdownPage, toAnchors } from "./markdown-page.ts";

test("headings get the anchors that GitHub gives them", () => {
  expect([...toAnchors(["What is read", "C++ & `kit specs`", "Größe", "What is read"])]).toEqual([
    "what-is-read",
    "c--kit-specs",
    "größe",
    "what-is-read-1",
  ]);
});

test("links and fences are found with their lines", async () => {
  const folder = await mkdtemp(join(tmpdir(), "kit-page-"));
  try {
    const file = join(folder, "page.md");
    await writeFile(file, "# A\n\nSee [b](b.md#c).\n\n```ts\nconst a = 1;\n```\n\n`[no](link.md)`\n");
    const page = await readMarkdownPage(file);
    expect(page.links).toEqual([{ target: "b.md#c", line: 3 }]);
    expect(page.fences).toEqual([{ language: "ts", code: "const a = 1;\n", line: 6 }]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
