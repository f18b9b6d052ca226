import { expect, test } from "vitest";
import { mentionCandidates, resolveMentions } from "./mentions.ts";

test("a path is looked for from the folder of the file upwards to the root", () => {
  expect(mentionCandidates("packages/api/CLAUDE.md", "src/a.ts")).toEqual([
    "packages/api/src/a.ts",
    "packages/src/a.ts",
    "src/a.ts",
  ]);
});

test("relative and absolute paths mean one file, and none outside the root", () => {
  expect(mentionCandidates("docs/specs/a.md", "../b.md")).toEqual(["docs/b.md"]);
  expect(mentionCandidates("docs/a.md", "./b/./c.md")).toEqual(["docs/b/c.md"]);
  expect(mentionCandidates("docs/a.md", "/b.md")).toEqual(["b.md"]);
  expect(mentionCandidates("docs/a.md", "../../b.md")).toEqual([]);
});

test("mentions of files that exist are sorted into code and tests", () => {
  const files = new Set(["src/a.ts", "src/a.test.ts", "packages/api/src/a.ts", "docs/a.md"]);
  const mention = (path: string, role?: "code" | "test") => ({
    path,
    line: 1,
    ...(role === undefined ? {} : { role }),
  });
  const resolved = resolveMentions(
    "docs/a.md",
    [
      mention("src/a.ts"),
      mention("./src/a.ts"),
      mention("src/a.test.ts"),
      mention("gone.ts"),
      mention("a.md"),
    ],
    (path) => files.has(path),
  );
  expect(resolved).toEqual({ code_refs: ["src/a.ts"], test_refs: ["src/a.test.ts"] });
  expect(
    resolveMentions("docs/a.md", [mention("src/a.ts", "test")], (path) => files.has(path)).test_refs,
  ).toEqual(["src/a.ts"]);
});
