import fc from "fast-check";
import { expect, test } from "vitest";
import type { GuidelineQuery } from "../../protocol/guideline-query.ts";
import { compareRecords } from "../guideline-record.ts";
import { readGuidelines } from "../read-guidelines.ts";
import { createGuidelineMatcher, createWordSearch, listGuidelines } from "./match-guidelines.ts";

const records = Object.entries({
  "CLAUDE.md": "## Style\nUse TABS for indents.\n## Tests\nName them well.",
  "web/CLAUDE.md": "## Web\nx",
  ".cursor/rules/a.mdc": "---\nglobs: *.ts\n---\n# Ts\ntabs\n",
  ".cursor/rules/b.mdc": "---\nglobs:\n---\n# Asked\ntabs\n",
  ".kiro/steering/s.md": "# Steering\nindents with tabs",
})
  .flatMap(([path, text]) => readGuidelines({ path, text }).records)
  .sort(compareRecords);
const matcher = createGuidelineMatcher(records);
const list = (query: GuidelineQuery) => listGuidelines(records, query, matcher);
const titles = (query: GuidelineQuery) => list(query).guidelines.map((guideline) => guideline.title);

test("without a filter, everything in order of file and position", () => {
  expect(list({})).toMatchObject({
    total_count: 6,
    counts_by_source: { fw_b: 2, steering: 1, fw_c: 3 },
    guidelines: ["Ts", "Asked", "Steering", "Style", "Tests", "Web"].map((title) => ({ title })),
  });
});

test("filters combine, and words match title and content in any case", () => {
  expect(titles({ q: "TABS indents" })).toEqual(["Steering", "Style"]);
  expect(titles({ q: "style tabs" })).toEqual(["Style"]);
  expect(titles({ q: "  " })).toHaveLength(6);
  expect(titles({ q: "(((((%[" })).toEqual([]);
  expect(titles({ q: "tabs", source: "fw_b" })).toEqual(["Ts", "Asked"]);
  expect(titles({ file: "a.ts" })).toEqual(["Ts", "Steering", "Style", "Tests", "Asked"]);
  expect(titles({ file: "web/a.ts", source: "fw_c" })).toEqual(["Style", "Tests", "Web"]);
  expect(titles({ file: "../a.ts" })).toEqual([]);
  expect(titles({ source: "agents" })).toEqual([]);
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
