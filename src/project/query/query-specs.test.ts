import fc from "fast-check";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { lifecycleWeights, priorityWeights } from "../../protocol/enums.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { processorMs } from "../../testing/processor-time.ts";
import { repositoryForTests } from "../../testing/repository-for-tests.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import type { Project } from "../project.ts";

const block = (id: string, fields: Readonly<Record<string, unknown>> = {}) => ({
  id,
  framework: "custom",
  spec_type: "requirement",
  title: `Title of ${id}`,
  content: `Content of ${id}.`,
  ...fields,
});

const files = {
  "records/a.json": JSON.stringify([
    block("low", { content: "The checkout takes a card.", priority: "low" }),
    block("critical", { content: "The checkout takes a card.", priority: "critical" }),
    block("legacy", { content: "The checkout takes a card.", priority: "critical", lifecycle: "legacy" }),
    block("gone", { content: "The checkout takes a card.", lifecycle: "obsolete" }),
    block("titled", { title: "Card checkout", content: "Something else." }),
    block("tagged", { content: "Nothing.", tags: ["pay", "pay-later"] }),
    block("tagged-too", { content: "Nothing.", tags: ["pay-later"], summary: "An abstract about zebras" }),
    block("names", { content: "Set user_id in src/order-form.ts to naïve Straße." }),
    block("chinese", { content: "用户登录后可以查看订单。システムは認証画面を表示する。" }),
  ]),
  "records/sub/b.json": JSON.stringify([
    block("deep", { spec_type: "task", content: "The checkout is deep." }),
  ]),
  "records/sub2/c.json": JSON.stringify([block("sibling", { content: "A sibling." })]),
  "CLAUDE.md": "# Rules\n\n## Checkout\n\nAlways test the checkout.\n",
};

let project: Project;

const repository = repositoryForTests(files);
beforeAll(async () => {
  const config = { specs: { custom: [{ include: "records/**/*.json" }] } };
  project = await openProject({ root: repository.root, indexFile: ":memory:", config });
});
afterAll(() => project.close());

const ids = (query: Parameters<Project["specs"]["query"]>[0]): string[] =>
  project.specs.query(query).specs.map(({ id }) => id);

test("without words, blocks come in path, then position order, obsolete ones left out", () => {
  const { specs, total_count, counts_by_framework } = project.specs.query({});
  expect(specs.map(({ id }) => id)).toEqual([
    "fw_c-checkout",
    ...["low", "critical", "legacy", "titled", "tagged", "tagged-too", "names", "chinese", "deep", "sibling"],
  ]);
  expect(total_count).toBe(11);
  expect(counts_by_framework).toEqual({ custom: 10, fw_c: 1 });
  expect(ids({ q: "  " })).toEqual(specs.map(({ id }) => id));
});

test("a search is ranked by relevance, lifecycle and priority", () => {
  expect(ids({ q: "checkout card" })).toEqual(["critical", "titled", "low", "legacy"]);
});

test("blocks of the same text are ordered by lifecycle weight times priority weight", async () => {
  // Two of the same product, 0.5 and 0.2, are left out: their order is not the weights'.
  const order = [
    ["critical", "active"],
    ["high", "active"],
    ["medium", "active"],
    ["high", "deprecated"],
    ["low", "active"],
    ["medium", "deprecated"],
    ["critical", "legacy"],
    ["high", "legacy"],
    ["low", "deprecated"],
    ["medium", "legacy"],
    ["low", "legacy"],
  ];
  const same = order.map(([priority, lifecycle], index) =>
    block(`b${index}`, { title: "Refund", content: "A refund.", priority, lifecycle }),
  );
  await using other = await createTemporaryRepository({ "a.json": JSON.stringify(same.toReversed()) });
  const config = { specs: { custom: [{ include: "a.json" }] } };
  const opened = await openProject({ root: other.root, indexFile: ":memory:", config });
  onTestFinished(() => opened.close());
  expect(opened.specs.query({ q: "refund" }).specs.map(({ id }) => id)).toEqual(same.map(({ id }) => id));
});

test("each lifecycle and priority has its weight", () => {
  expect(lifecycleWeights).toEqual({ active: 1, deprecated: 0.5, legacy: 0.2, obsolete: 0 });
  expect(priorityWeights).toEqual({ critical: 1, high: 0.8, medium: 0.5, low: 0.3 });
});

test("obsolete blocks are found if the query requests them", () => {
  expect(ids({ q: "checkout", lifecycle: "obsolete" })).toEqual(["gone"]);
  expect(ids({ lifecycle: "obsolete" })).toEqual(["gone"]);
});

test("all words must match, in title, summary, content or tags, in any case and with or without accents", () => {
  expect(ids({ q: "CHECKOUT deep" })).toEqual(["deep"]);
  expect(ids({ q: "zebras" })).toEqual(["tagged-too"]);
  expect(ids({ q: "pay" })).toEqual(["tagged", "tagged-too"]);
  expect(ids({ q: "naive strasse" })).toEqual([]);
  expect(ids({ q: "naive straße" })).toEqual(["names"]);
  expect(ids({ q: "user_id" })).toEqual(["names"]);
  expect(ids({ q: "id_user" })).toEqual([]);
  expect(ids({ q: "src/order-form.ts" })).toEqual(["names"]);
  expect(ids({ q: "checkout unheard" })).toEqual([]);
});

test("text without spaces is found by any part of it", () => {
  for (const q of ["登录", "用户登录", "订", "认", "認証", "認証画面", "システム", "面を"]) {
    expect([q, ids({ q })]).toEqual([q, q === "认" ? [] : ["chinese"]]);
  }
  expect(ids({ q: "录登" })).toEqual([]);
});

test("filters combine", () => {
  expect(ids({ framework: "fw_c" })).toEqual(["fw_c-checkout"]);
  expect(ids({ spec_type: "task" })).toEqual(["deep"]);
  expect(ids({ priority: "critical" })).toEqual(["critical", "legacy"]);
  expect(ids({ priority: "critical", lifecycle: "active" })).toEqual(["critical"]);
  expect(ids({ tag: "pay" })).toEqual(["tagged"]);
  expect(ids({ tag: "pay", q: "nothing" })).toEqual(["tagged"]);
  expect(ids({ tag: "later" })).toEqual([]);
  expect(ids({ q: "checkout", framework: "fw_c" })).toEqual(["fw_c-checkout"]);
  expect(project.specs.query({ q: "checkout", framework: "fw_c" }).counts_by_framework).toEqual({ fw_c: 1 });
});

test("a path is a file, a folder or a glob", () => {
  expect(ids({ path: "records/sub/b.json" })).toEqual(["deep"]);
  expect(ids({ path: "records/sub" })).toEqual(["deep"]);
  expect(ids({ path: "./records/sub/" })).toEqual(["deep"]);
  expect(ids({ path: "records/*/*.json" })).toEqual(["deep", "sibling"]);
  expect(ids({ path: "records/*/*.json", q: "checkout" })).toEqual(["deep"]);
  expect(ids({ path: "nowhere" })).toEqual([]);
  expect(project.specs.query({ path: "records/*/*.json" }).total_count).toBe(2);
});

test("a hostile glob takes little time", () => {
  const start = processorMs();
  expect(ids({ path: `${"*a".repeat(400)}b` })).toEqual([]);
  expect(ids({ path: `${"**/".repeat(300)}b` })).toEqual([]);
  expect(processorMs() - start).toBeLessThan(1000);
});

test.each([{}, { q: "checkout" }, { path: "records" }, { tag: "pay-later" }])(
  "pages of %j are the whole, in order, once",
  (query) => {
    const allIds = ids({ ...query, limit: 1000 });
    const pages: string[] = [];
    let cursor: string | undefined;
    do {
      const page = project.specs.query({ ...query, limit: 2, ...(cursor && { cursor }) });
      expect(page.total_count).toBe(allIds.length);
      pages.push(...page.specs.map(({ id }) => id));
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    expect(pages).toEqual(allIds);
  },
);

test("a cursor holds for the query that it came from only", () => {
  const { next_cursor = "" } = project.specs.query({ limit: 2 });
  const invalid = expect.objectContaining({ code: "invalid_request" });
  expect(() => project.specs.query({ limit: 2, cursor: next_cursor, q: "x" })).toThrow(invalid);
  for (const cursor of ["", "x", "bnVsbA", Buffer.from('["x",1]').toString("base64url")]) {
    expect(() => project.specs.query({ cursor })).toThrow(invalid);
    expect(() => project.specs.query({ q: "checkout", cursor })).toThrow(invalid);
  }
});

test.each([0, 1001, 1.5, Number.NaN])("a limit of %d is refused", (limit) => {
  expect(() => project.specs.query({ limit })).toThrow(expect.objectContaining({ code: "invalid_request" }));
});

test("nothing that a user types is syntax", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary", maxLength: 40 }),
    fc
      .array(
        fc.constantFrom(
          '"',
          "'",
          "(",
          ")",
          "*",
          "^",
          ":",
          "-",
          "+",
          "AND",
          "OR",
          "NOT",
          "NEAR(",
          "title:",
          "a",
          "\0",
          "认",
          "{",
          "}",
        ),
        { maxLength: 12 },
      )
      .map((parts) => parts.join(" ")),
  );
  fc.assert(
    fc.property(text, text, (q, other) => {
      const page = project.specs.query({ q, tag: other, limit: 5 });
      expect(page.total_count).toBeGreaterThanOrEqual(0);
      project.specs.query({ q, path: "records" });
      project.specs.query({ path: other.slice(0, 20) });
    }),
    { numRuns: rounds(60, 300) },
  );
  for (const q of ["***", '"', "OR", "NEAR", "-a", "a*", "title:checkout"])
    expect(() => ids({ q })).not.toThrow();
  expect(ids({ q: "***" })).toEqual([]);
});

test("a search for hundreds of words is refused", () => {
  const q = Array.from({ length: 100 }, (_, index) => `w${index}`).join(" ");
  expect(() => project.specs.query({ q })).toThrow(expect.objectContaining({ code: "invalid_request" }));
});

test("words that thousands of blocks hold are counted exactly, and those with them in the title come first", async () => {
  const manySpecs = Array.from({ length: 3500 }, (_, index) =>
    block(`b${String(index).padStart(4, "0")}`, {
      title: index % 1000 === 7 ? "The common thing" : "Other",
      content: `A common text, number ${index}.`,
      priority: index % 2 === 0 ? "high" : "low",
      lifecycle: index % 500 === 0 ? "obsolete" : "active",
    }),
  );
  await using large = await createTemporaryRepository({ "many.json": JSON.stringify(manySpecs) });
  const config = { specs: { custom: [{ include: "many.json" }] } };
  const opened = await openProject({ root: large.root, indexFile: ":memory:", config });
  onTestFinished(() => opened.close());
  const first = opened.specs.query({ q: "common", limit: 6 });
  expect(first.total_count).toBe(3493);
  expect(first.counts_by_framework).toEqual({ custom: 3493 });
  expect(first.specs.map(({ id }) => id)).toEqual(["b0007", "b1007", "b2007", "b3007", "b0002", "b0004"]);
  const seen = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = opened.specs.query({ q: "common", limit: 1000, ...(cursor && { cursor }) });
    for (const { id } of page.specs) seen.add(id);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  expect(seen.size).toBe(3493);
  expect(opened.specs.query({ q: "common", path: "many.json", limit: 1 }).total_count).toBe(3493);
});

test("a block knows where it came from, and is found by its id", () => {
  expect(project.specs.get("fw_c-checkout")).toMatchObject({
    id: "fw_c-checkout",
    path: "CLAUDE.md",
    content: "Always test the checkout.",
    metadata: { source: { start_line: 3, end_line: 5 } },
  });
  expect(project.specs.get("gone")?.lifecycle).toBe("obsolete");
  expect(project.specs.get("nothing")).toBeUndefined();
  expect([...project.specs.all()].map(({ id }) => id)).toContain("gone");
});
