import { expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { scanMarkdown } from "../markdown/scan-markdown.ts";
import { mentionsIn } from "./mentions.ts";

function pathsIn(text: string): string[] {
  return mentionsIn(scanMarkdown(text), 1, Number.POSITIVE_INFINITY).map((mention) => mention.path);
}

test("paths in inline code, links and Kiro file references are mentions", () => {
  expect(
    pathsIn("See `src/auth/login.ts` and [the guide](../docs/guide.md), #[[file:api/openapi.yaml]]."),
  ).toEqual(["src/auth/login.ts", "api/openapi.yaml", "../docs/guide.md"]);
});

test("a mention has its line and occurs once per range", () => {
  const scan = scanMarkdown("# A\n\n`a.ts`\n\n`b.ts`, `a.ts`\n\n`c.ts`\n");
  expect(mentionsIn(scan, 2, 5)).toEqual([
    { path: "a.ts", line: 3 },
    { path: "b.ts", line: 5 },
  ]);
});

test("anchors, line numbers and test names after a path are removed", () => {
  expect(
    pathsIn("`a.ts:10` `b.ts:10-20` `c.ts:1:5` `d.py::test_x` [e](e.md#usage) [f](src/f.ts#L1-L3)"),
  ).toEqual(["a.ts", "b.ts", "c.ts", "d.py", "e.md", "src/f.ts"]);
});

test("text that cannot name one file is not a mention", () => {
  const not = [
    "`https://example.com/a.ts`",
    "[x](https://example.com/a.html)",
    "[x](mailto:a@b.de)",
    "[x](#anchor)",
    "`src/**/*.ts`",
    "`src/{a,b}.ts`",
    "`npm run build`",
    "`src/auth/`",
    "`run()`",
    "`1.2.3`",
    "`v2.0`",
    "`userId`",
    "`@scope/name`",
    "`--flag`",
    "`<Component />`",
    "``",
    "`..`",
    "`a = b.c`",
  ];
  for (const text of not) expect(pathsIn(text), text).toEqual([]);
});

test("names that frameworks and tools really use are accepted", () => {
  const paths = [
    "app/(auth)/page.tsx",
    "app/[id]/route.ts",
    "routes/$user.tsx",
    ".env.local",
    "Makefile",
    "bin/kit",
  ];
  for (const path of paths) expect(pathsIn(`\`${path}\``)).toEqual([path]);
  expect(pathsIn('[a](docs/My%20File.md) [b](<docs/other file.md>) [c](app/(auth)/x.ts "title")')).toEqual([
    "docs/My File.md",
    "docs/other file.md",
    "app/(auth)/x.ts",
  ]);
});

test("fences, comments, front matter and links inside code spans name no file", () => {
  expect(pathsIn("---\na: `x.ts`\n---\n```\n`a.ts`\n```\n<!-- `b.ts` -->\n\n`[x](c.ts)`\n")).toEqual([]);
});

test("hostile lines take linear time", () => {
  const lines = [
    "`".repeat(200_000),
    "`a``b".repeat(50_000),
    "[](".repeat(100_000),
    "]((".repeat(100_000),
    "#[[file:".repeat(40_000),
  ];
  const start = processorMs();
  for (const line of lines) pathsIn(line);
  pathsIn("x\n".repeat(200_000));
  expect(processorMs() - start).toBeLessThan(15_000);
});
