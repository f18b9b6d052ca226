import { expect, test } from "vitest";
import { openProject } from "../../project/open-project.ts";
import { processorMs } from "../../testing/processor-time.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { scanMarkdown } from "../markdown/scan-markdown.ts";
import { isFixturePath, isTestPath, mentionCandidates, mentionsIn, resolveMentions } from "./mentions.ts";

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

test.each([
  "src/auth/login.test.ts",
  "src/auth/login.spec.tsx",
  "tests/auth.py",
  "tests/unit/test_auth.py",
  "pkg/auth/login_test.go",
  "spec/models/user_spec.rb",
  "src/test/java/LoginTest.java",
  "Auth/LoginTests.cs",
  "src/__tests__/login.js",
  "crates/auth/src/tests.rs",
  "e2e/login.ts",
  "web/login.cy.ts",
  "features/returns.feature",
  "test.mjs",
])("%s is a test", (path) => {
  expect(isTestPath(path)).toBe(true);
});

test.each([
  "src/auth/login.ts",
  "specs/001-login/spec.md",
  "tests/fixtures/data.json",
  "tests/README.md",
  "src/contest.ts",
  "src/latest.py",
  "src/attestation/verify.go",
  "src/Manifest.java",
  "src/inspect.rb",
  ".test",
  "tests",
  "src/unit.ts",
])("%s is not a test", (path) => {
  expect(isTestPath(path)).toBe(false);
});

test.each([
  ["tests/fixtures/a/.kiro/specs/x/tasks.md", "kiro", true],
  ["src/__fixtures__/CLAUDE.md", "claude", true],
  ["pkg/testdata/openspec/specs/a/spec.md", "openspec", true],
  ["tests/e2e/project/.kiro/specs/x/tasks.md", "kiro", true],
  ["test/examples/specs/001-a/spec.md", "speckit", true],
  ["tests/CLAUDE.md", "claude", false],
  ["examples/shop/.kiro/specs/x/tasks.md", "kiro", false],
  [".kiro/specs/fixtures.md/tasks.md", "kiro", false],
  ["specs/001-fixtures/spec.md", "speckit", false],
])("%s of %s: %s", (path, adapter, expected) => {
  expect(isFixturePath(path, adapter)).toBe(expected);
});

test("fixtures of tests are no specs unless the configuration names them", async () => {
  const fixture = "tests/fixtures/.kiro/specs/x/tasks.md";
  await using repository = await createTemporaryRepository({
    [fixture]: "- [ ] 1. A\n",
    ".kiro/specs/x/tasks.md": "- [ ] 1. A\n",
  });
  const pathsWith = async (specs: object): Promise<readonly string[]> => {
    const project = await openProject({ root: repository.root, indexFile: ":memory:", config: { specs } });
    try {
      return [...project.specs.all()].map(({ path }) => path);
    } finally {
      await project.close();
    }
  };
  expect(await pathsWith({})).toEqual([".kiro/specs/x/tasks.md"]);
  expect(await pathsWith({ include: ["**"] })).toEqual([".kiro/specs/x/tasks.md", fixture]);
  expect(await pathsWith({ custom: [{ include: "tests/fixtures/*.json" }] })).toHaveLength(1);
});
