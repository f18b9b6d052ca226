import fc from "fast-check";
import { expect, test } from "vitest";
import type { GuidelineQuery } from "../../protocol/guideline-query.ts";
import { compareRecords, type GuidelineRecord } from "../guideline-record.ts";
import { readGuidelines } from "../read-guidelines.ts";
import { createGuidelineMatcher, createWordSearch, listGuidelines, projectPath } from "./match-guidelines.ts";

const records: GuidelineRecord[] = Object.entries({
  "CLAUDE.md": "## Root\nx",
  "packages/api/CLAUDE.md": "## Api\nx",
  "packages/api/.cursor/rules/ts.mdc": "---\nglobs: src/*.ts\n---\n# Nested ts\n",
  ".cursor/rules/ts.mdc": "---\nglobs: *.ts,**/*.tsx\n---\n# Ts\n",
  ".cursor/rules/always.mdc": "---\nglobs: web/**\nalwaysApply: true\n---\n# Always\n",
  ".cursor/rules/agent.mdc": "---\ndescription: d\n---\n# Agent\n",
  ".kiro/steering/a-manual.md": "---\ninclusion: manual\n---\n# Manual\n",
  ".kiro/steering/comma.md": "---\ninclusion: fileMatch\nfileMatchPattern: '*.ts,*.tsx'\n---\n# Comma\n",
  ".kiro/steering/bad.md": "---\ninclusion: fileMatch\nfileMatchPattern: '[a'\n---\n# Bad\n",
}).flatMap(([path, text]) => readGuidelines({ path, text }).records);
const matcher = createGuidelineMatcher(records);
const titles = (path: string) => matcher.match(path).map(({ record }) => record.title);

test("guidelines apply by scope and glob, and those loaded on request come last", () => {
  expect(titles("a.ts")).toEqual(["Always", "Ts", "Root", "Agent", "Manual"]);
  expect(titles("src/a.ts")).toEqual(["Always", "Root", "Agent", "Manual"]);
  expect(titles("src/a.tsx")).toEqual(["Always", "Ts", "Root", "Agent", "Manual"]);
  expect(titles("packages/api/src/a.ts")).toEqual(["Always", "Root", "Nested ts", "Api", "Agent", "Manual"]);
  expect(titles("packages/apis/src/a.ts")).toEqual(["Always", "Root", "Agent", "Manual"]);
});

test("a match has its reason", () => {
  const why = (path: string) =>
    matcher.match(path).map(({ record, reason, glob }) => [record.title, reason, glob]);
  expect(why("packages/api/src/a.tsx")).toEqual([
    ["Always", "always", undefined],
    ["Ts", "pattern", "**/*.tsx"],
    ["Root", "always", undefined],
    ["Api", "nested", undefined],
    ["Agent", "auto", undefined],
    ["Manual", "manual", undefined],
  ]);
});

test("a path outside the project matches nothing", () => {
  for (const path of ["../../etc/passwd", "/etc/passwd", "a/../../x", "C:\\x", "", ".", "a\0b"])
    expect(matcher.match(path)).toEqual([]);
  expect(projectPath("./a//b/")).toBe("a/b");
  expect(projectPath("docs/C:/x")).toBe("docs/C:/x");
});

test("a path that is longer than any file system has matches nothing", () => {
  expect(projectPath("a".repeat(4_096))).toHaveLength(4_096);
  expect(titles("a".repeat(4_097))).toEqual([]);
});

test("guidelines of one folder that declare the same glob apply together, and one without a glob everywhere", () => {
  const [root] = records;
  if (root === undefined) throw new Error("no record");
  const made = [["*.md"], ["*.md", "*.ts"], []].map((globs, position): GuidelineRecord => {
    return { ...root, inclusion: "pattern", globs, position };
  });
  const positions = (path: string) =>
    createGuidelineMatcher(made)
      .match(path)
      .map(({ record }) => record.position);
  expect([positions("a.md"), positions("a.ts"), positions("a.py")]).toEqual([[0, 1, 2], [1, 2], [2]]);
});

test("testing one guideline returns the same as matching all", () => {
  for (const path of ["a.ts", "src/a.tsx", "packages/api/src/a.ts", "../x", "packages/api"]) {
    const all = matcher.match(path);
    const single = records.map((record) => matcher.test(record, path)).filter((match) => match !== undefined);
    expect(new Set(single)).toEqual(new Set(all));
  }
});

test("the compiled matcher returns the same as testing every guideline, in order", () => {
  const names = fc.constantFrom("a", "b", "a.ts", "b.ts");
  const paths = fc.array(names, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));
  const globs = fc.constantFrom("*.ts", "**/*.ts", "a/**", "**/b/*", "{a,b}/*.ts", "b.ts", "**");
  const drafts = fc.record({
    scope: fc.constantFrom("", "a", "a/b"),
    globs: fc.array(globs, { maxLength: 3 }),
    inclusion: fc.constantFrom("always", "pattern", "auto", "manual"),
  });
  const [template] = readGuidelines({ path: "CLAUDE.md", text: "# T\nx\n" }).records;
  fc.assert(
    fc.property(fc.array(drafts, { maxLength: 12 }), paths, (all, path) => {
      if (template === undefined) throw new Error("no template");
      const made = all.map((draft, position) => ({ ...template, ...draft, position }));
      const compiled = createGuidelineMatcher(made);
      const single = made.map((record) => compiled.test(record, path)).filter((match) => match !== undefined);
      const isLast = ({ reason }: { reason: string }) => reason === "auto" || reason === "manual";
      const expected = [...single.filter((match) => !isLast(match)), ...single.filter(isLast)];
      expect(compiled.match(path).map(({ record }) => record.position)).toEqual(
        expected.map(({ record }) => record.position),
      );
    }),
  );
});

const listRecords = Object.entries({
  "CLAUDE.md": "## Style\nUse TABS for indents.\n## Tests\nName them well.",
  "web/CLAUDE.md": "## Web\nx",
  ".cursor/rules/a.mdc": "---\nglobs: *.ts\n---\n# Ts\ntabs\n",
  ".cursor/rules/b.mdc": "---\nglobs:\n---\n# Asked\ntabs\n",
  ".kiro/steering/s.md": "# Steering\nindents with tabs",
})
  .flatMap(([path, text]) => readGuidelines({ path, text }).records)
  .sort(compareRecords);
const listMatcher = createGuidelineMatcher(listRecords);
const list = (query: GuidelineQuery) => listGuidelines(listRecords, query, listMatcher);
const listedTitles = (query: GuidelineQuery) => list(query).guidelines.map((guideline) => guideline.title);

test("without a filter, everything in order of file and position", () => {
  expect(list({})).toMatchObject({
    total_count: 6,
    counts_by_source: { fw_b: 2, steering: 1, fw_c: 3 },
    guidelines: ["Ts", "Asked", "Steering", "Style", "Tests", "Web"].map((title) => ({ title })),
  });
});

test("filters combine, and words match title and content in any case", () => {
  expect(listedTitles({ q: "TABS indents" })).toEqual(["Steering", "Style"]);
  expect(listedTitles({ q: "style tabs" })).toEqual(["Style"]);
  expect(listedTitles({ q: "  " })).toHaveLength(6);
  expect(listedTitles({ q: "(((((%[" })).toEqual([]);
  expect(listedTitles({ q: "tabs", source: "fw_b" })).toEqual(["Ts", "Asked"]);
  expect(listedTitles({ file: "a.ts" })).toEqual(["Ts", "Steering", "Style", "Tests", "Asked"]);
  expect(listedTitles({ file: "web/a.ts", source: "fw_c" })).toEqual(["Style", "Tests", "Web"]);
  expect(listedTitles({ file: "../a.ts" })).toEqual([]);
  expect(listedTitles({ source: "agents" })).toEqual([]);
});

test("pages of any size hold the whole list, and the counts stay those of the match", () => {
  const queries = fc.constantFrom<GuidelineQuery>(
    {},
    { file: "a.ts" },
    { q: "tabs" },
    { file: "x", source: "fw_c" },
  );
  fc.assert(
    fc.property(queries, fc.integer({ min: 1, max: 7 }), (query, limit) => {
      const whole = list(query);
      const paged: string[] = [];
      let cursor: string | undefined;
      do {
        const page = list({ ...query, limit, ...(cursor !== undefined && { cursor }) });
        expect(page.total_count).toBe(whole.total_count);
        expect(page.counts_by_source).toEqual(whole.counts_by_source);
        paged.push(...page.guidelines.map((guideline) => guideline.id));
        cursor = page.next_cursor;
      } while (cursor !== undefined);
      expect(paged).toEqual(whole.guidelines.map((guideline) => guideline.id));
    }),
  );
});

test("a cursor of another query is an invalid request", () => {
  for (const cursor of ["", "zz", "00", "5b5d", "MTA="])
    expect(() => list({ cursor })).toThrow(expect.objectContaining({ code: "invalid_request" }));
});

const plainSearch = (query: string, title: string, content: string): boolean =>
  query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => title.toLowerCase().includes(word) || content.toLowerCase().includes(word));

test("every word must occur, in title or content, in any case", () => {
  const record = { title: "Write Tests", content: "One rule per TEST, größer als null.\nK" };
  expect(createWordSearch("")(record)).toBe(true);
  expect(createWordSearch(" tests  RULE ")(record)).toBe(true);
  expect(createWordSearch("ule est")(record)).toBe(true);
  expect(createWordSearch("GRÖSSER")(record)).toBe(false);
  expect(createWordSearch("GRÖß")(record)).toBe(true);
  expect(createWordSearch("rule missing")(record)).toBe(false);
  expect(createWordSearch("(((( [")(record)).toBe(false);
  expect(createWordSearch("x")({ title: "", content: "" })).toBe(false);
});

test("it finds what a search without signatures finds", () => {
  const text = fc.string({ unit: fc.constantFrom(..."abAB \n.İK\u212aßé"), maxLength: 30 });
  fc.assert(
    fc.property(text, text, text, (query, title, content) => {
      expect(createWordSearch(query)({ title, content })).toBe(plainSearch(query, title, content));
    }),
    { numRuns: 5000 },
  );
});
