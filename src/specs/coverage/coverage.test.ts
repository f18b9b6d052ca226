import fc from "fast-check";
import { expect, test } from "vitest";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { processorMs } from "../../testing/processor-time.ts";
import { kiroAdapter } from "../adapters/kiro/kiro-adapter.ts";
import { speckitAdapter } from "../adapters/speckit/speckit-adapter.ts";
import { assignIds } from "../model/assemble-blocks.ts";
import { type CriteriaIndex, indexCriteria, toNumberKey } from "./criteria-index.ts";
import { labelFeatures } from "./feature-labels.ts";
import { listCriteria } from "./list-criteria.ts";
import { resolveReferences } from "./resolve-references.ts";
import { createTitleComparison } from "./similar-titles.ts";
import { criteriaOfTask, readTestText, testsNamedBySpecs } from "./test-references.ts";

function blocksOf(files: Readonly<Record<string, string>>): SpecBlock[] {
  const drafts = Object.entries(files).flatMap(([path, text]) =>
    kiroAdapter.parse({ path, text }).drafts.map((draft) => ({ path, draft })),
  );
  const { ids } = assignIds(
    drafts.map(({ path, draft }) => ({ id: draft.id, path, line: draft.span.start_line })),
  );
  return drafts.map(({ path, draft }, index) => {
    const { links: _, mentions, span: __, feature: ___, ...rest } = draft;
    const test_refs = mentions
      .map((mention) => mention.path)
      .filter((mentioned) => mentioned.includes("test"));
    return { ...rest, id: ids[index] ?? "", path, metadata: { ...draft.metadata, test_refs } };
  });
}

const requirements = (...counts: readonly number[]): string =>
  counts
    .map((count, requirement) => {
      const criteria = Array.from(
        { length: count },
        (_, item) => `${item + 1}. WHEN x${item} THEN the system SHALL y`,
      );
      return `### Requirement ${requirement + 1}: R\n\n#### Acceptance Criteria\n\n${criteria.join("\n")}\n`;
    })
    .join("\n");

const shop = {
  ".kiro/specs/auth/requirements.md": requirements(2, 3),
  ".kiro/specs/gift-cards/requirements.md": requirements(2, 1, 1),
};

const index = indexCriteria(listCriteria(blocksOf(shop)));

function namedIn(text: string, path = "src/some.test.ts", among: CriteriaIndex = index): string[] {
  const { references } = readTestText(text);
  const { namedCriteria } = resolveReferences(among, { path, references, namedBy: [] });
  return [
    ...new Set(
      namedCriteria.map(
        ({ criterion, isWhole }) => `${among.criteria[criterion]?.id}${isWhole ? " whole" : ""}`,
      ),
    ),
  ];
}

test("a code of another spelling is uncertain where nothing names its feature, and certain where the file does", () => {
  const { drafts } = speckitAdapter.parse({
    path: "specs/002-docker-setup/spec.md",
    text: "# Docker\n\n## Success Criteria\n\n- **SC-005**: It starts in a minute.\n",
  });
  const blocks = drafts.map(({ id: _, links: __, mentions: ___, span: ____, feature: _____, ...draft }) => ({
    ...draft,
    id: "sc",
    path: "specs/002-docker-setup/spec.md",
  }));
  const index = indexCriteria(listCriteria(blocks));
  const resolve = (path: string, text: string) => {
    const { namedCriteria, uncertain } = resolveReferences(index, {
      path,
      references: readTestText(text).references,
      namedBy: [],
    });
    return [namedCriteria.length, uncertain.length];
  };
  expect(resolve("e2e/badge.spec.ts", "// ROADMAP SC-5\n")).toEqual([0, 1]);
  expect(resolve("e2e/badge.spec.ts", "// SC-005\n")).toEqual([1, 0]);
  expect(resolve("e2e/docker-setup.spec.ts", "// SC-5\n")).toEqual([1, 0]);
  expect(resolve("e2e/badge.spec.ts", "// Feature: docker-setup\n// SC-5\n")).toEqual([1, 0]);
  expect(resolve("e2e/badge.spec.ts", "// docker-setup#SC-5\n")[1]).toBe(0);
});

test("every criterion has a key of feature and number", () => {
  expect(index.criteria.map(({ id, line }) => `${id} ${line}`)).toEqual([
    "auth#1.1 5",
    "auth#1.2 6",
    "auth#2.1 12",
    "auth#2.2 13",
    "auth#2.3 14",
    "gift-cards#1.1 5",
    "gift-cards#1.2 6",
    "gift-cards#2.1 12",
    "gift-cards#3.1 18",
  ]);
});

test("features of the same name are distinguished by the folders above them", () => {
  const paths = [
    "api/.kiro/specs/auth",
    "web/.kiro/specs/auth",
    ".kiro/specs/cart",
    "openspec/specs/pay",
    "openspec/changes/fast/specs/pay",
  ];
  expect(labelFeatures(paths).map(({ label }) => label)).toEqual([
    "api/auth",
    "web/auth",
    "cart",
    "pay",
    "fast/pay",
  ]);
});

test.each([
  ['test("auth#1.2 refuses", …)', ["auth#1.2"]],
  ["// see Gift-Cards#2.1, and (auth#2.3).", ["gift-cards#2.1", "auth#2.3"]],
  ["// .kiro/specs/auth/requirements.md#1.1", ["auth#1.1"]],
  ["// auth#2", ["auth#2.1 whole", "auth#2.2 whole", "auth#2.3 whole"]],
  ["// fw_a-auth-requirements-req1.", ["auth#1.1 whole", "auth#1.2 whole"]],
  ["// fw_a-auth-requirements-req1...", ["auth#1.1 whole", "auth#1.2 whole"]],
  ["// ../../.kiro/specs/auth/requirements.md#1.1, ./.kiro/specs/auth#1.2", ["auth#1.1", "auth#1.2"]],
  ["// issue #1.2, other#1.2, #auth, fw_a-nothing", []],
])("a key names its criterion: %s", (text, ids) => {
  expect(namedIn(text)).toEqual(ids);
});

test.each([
  ["Validates: Requirements 1.1, 2.1", ["auth#1.1", "auth#2.1"]],
  ["**Validates: Requirements 2.1-2.3**", ["auth#2.1", "auth#2.2", "auth#2.3"]],
  ["_Requirements: 1.2_", ["auth#1.2"]],
  ["def test_requirement_1_2_refuses():", ["auth#1.2"]],
  ["AC-2.1 and AC 2.2", ["auth#2.1", "auth#2.2"]],
  ["// Requirement 2", ["auth#2.1 whole", "auth#2.2 whole", "auth#2.3 whole"]],
  ["REQ-1", ["auth#1.1 whole", "auth#1.2 whole"]],
  ["const req = 1; req 404; ac 1; version 1.2; prerequirement 1.1", []],
  ["### Requirement 1", []],
])("a number counts in a file of the feature: %s", (text, ids) => {
  expect(namedIn(text, "src/auth/login.test.ts")).toEqual(ids);
});

test("a number alone belongs to the feature that the lines above it name", () => {
  const text =
    "# Feature: auth\n# Requirement 1.1\n# Feature: Gift Cards, Property 2\n# Requirement 1.1\n# Requirement 2.1";
  expect(namedIn(text)).toEqual(["auth#1.1", "gift-cards#1.1", "gift-cards#2.1"]);
});

test("a number alone belongs to the feature whose spec the file names", () => {
  expect(namedIn("// ../.kiro/specs/gift-cards/design.md\n// Requirement 1.1")).toEqual(["gift-cards#1.1"]);
});

test.each([
  ["has a key of, above or below", "// Requirement 1.1\n// auth#1.2", ["auth#1.1", "auth#1.2"]],
  ["names, above or below", "// Requirement 1.1\n// Feature: auth", ["auth#1.1"]],
  [
    "names with the number, of several that it names",
    "// auth#1.1 gift-cards#1.1\n// Requirement 2.3",
    ["auth#1.1", "gift-cards#1.1", "auth#2.3"],
  ],
  [
    "has a file deep in the folder of",
    "// .kiro/specs/auth/notes/old/a.md\n// Requirement 1.1",
    ["auth#1.1"],
  ],
])("a number alone belongs to the feature that the file %s", (_how, text, ids) => {
  expect(namedIn(text)).toEqual(ids);
});

test("a number alone belongs to the feature whose spec names the file", () => {
  const { references } = readTestText("Requirement 1.1");
  const gifts = index.features.findIndex(({ label }) => label === "gift-cards");
  const file = { path: "src/some.test.ts", references, namedBy: [gifts] };
  expect(resolveReferences(index, file).namedCriteria).toEqual([
    {
      criterion: index.criteria.findIndex(({ id }) => id === "gift-cards#1.1"),
      line: 1,
      evidence: "number",
      isWhole: false,
    },
  ]);
});

test("a plain number belongs to none of several features that the file is equally related to", () => {
  // The path adds nothing to what the file itself says.
  expect(namedIn("// auth#1.1 gift-cards#1.1\n// Requirement 1.2", "src/auth/a.test.ts")).toEqual([
    "auth#1.1",
    "gift-cards#1.1",
  ]);
  expect(namedIn("// .kiro/specs/gift-cards-old/design.md\n// Requirement 1.1")).toEqual([]);
  expect(namedIn("Requirement 2.1", "tests/gift/vouchers.test.ts")).toEqual([]);
});

test("a feature is named in any case, also where its folder has capitals", () => {
  const among = indexCriteria(
    listCriteria(blocksOf({ ".kiro/specs/userAuth/requirements.md": requirements(1) })),
  );
  expect(namedIn("// userAuth#1.1", "a.test.ts", among)).toEqual(["userAuth#1.1"]);
  expect(namedIn("// USERAUTH#1.1", "a.test.ts", among)).toEqual(["userAuth#1.1"]);
});

test("an id names all of its requirement, or the one criterion that its block is", () => {
  const { criteria, features } = listCriteria(blocksOf(shop));
  const single = criteria.map(({ requirement: _, ...criterion }) => criterion);
  const among = indexCriteria({ criteria: single, features });
  const { references } = readTestText("fw_a-gift-cards-requirements-req3");
  const wholeness = (each: CriteriaIndex) =>
    resolveReferences(each, { path: "a.test.ts", references, namedBy: [] }).namedCriteria.map(
      ({ evidence, isWhole }) => [evidence, isWhole],
    );
  expect(wholeness(index)).toEqual([["key", true]]);
  expect(wholeness(among)).toEqual([["key", false]]);
});

test("a number alone counts without a feature only where one feature has it", () => {
  expect(namedIn("Requirement 1.1, Requirement 2.3")).toEqual(["auth#2.3"]);
  expect(namedIn("Requirement 2.3", "src/gift-cards/pay.test.ts")).toEqual([]);
});

test("the longer name wins where a path has the names of two features", () => {
  const two = indexCriteria(
    listCriteria(blocksOf({ ".kiro/specs/cards/requirements.md": requirements(1), ...shop })),
  );
  expect(namedIn("Requirement 1.1", "tests/gift-cards/pay.test.ts", two)).toEqual(["gift-cards#1.1"]);
  expect(namedIn("Requirement 1.1", "tests/auth/cards.test.ts", two)).toEqual([]);
});

test("a key of a known feature that no criterion has is dangling", () => {
  const { references } = readTestText(
    "// auth#9.9 auth#1.1 other#9.9\n// auth#readme auth#chapter-2\n// auth#FR-9, auth#us9.9, auth#FR9\n// Feature: auth\n// Requirement 7.7, FR-009, US7.7, Requirement 1.1\n// Requirement 10.7",
  );
  expect(resolveReferences(index, { path: "a.test.ts", references, namedBy: [] }).dangling).toEqual([
    { line: 1, key: "auth#9.9" },
    { line: 3, key: "auth#FR-9" },
    { line: 3, key: "auth#us9.9" },
    { line: 3, key: "auth#FR9" },
    { line: 5, key: "auth#7.7" },
    { line: 6, key: "auth#10.7" },
  ]);
});

test("numbers are compared by value", () => {
  expect(["1.02", "FR-001", "fr_1", "FR1", "US1.2", "us-1.2"].map(toNumberKey)).toEqual([
    "1.2",
    "fr-1",
    "fr-1",
    "fr-1",
    "us-1.2",
    "us-1.2",
  ]);
});

test("tests that a spec names count for the criterion that names them, or for all of the requirement", () => {
  const blocks = blocksOf({
    ".kiro/specs/auth/requirements.md": `${requirements(2)}3. THE system SHALL z (see \`tests/z.test.ts\`)\n\n### Requirement 2: B\n\nTests: \`tests/b.test.ts\`\n\n#### Acceptance Criteria\n\n1. THE system SHALL a\n2. THE system SHALL b\n`,
    ".kiro/specs/auth/tasks.md":
      "- [x] 1. Test it in `tests/a.test.ts`\n  - _Requirements: 1.1, 2_\n- [ ] 2. Later in `tests/later.test.ts`\n  - _Requirements: 1.2_\n",
  });
  const among = indexCriteria(listCriteria(blocks));
  const found = testsNamedBySpecs(among, blocks).map(
    (one) => `${among.criteria[one.criterion]?.id} ${one.path}${one.whole_requirement ? " whole" : ""}`,
  );
  expect(found).toEqual([
    "auth#1.3 tests/z.test.ts",
    "auth#2.1 tests/b.test.ts whole",
    "auth#2.2 tests/b.test.ts whole",
    "auth#1.1 tests/a.test.ts",
    "auth#2.1 tests/a.test.ts whole",
    "auth#2.2 tests/a.test.ts whole",
  ]);
});

test("titles are read from the tests of several languages", () => {
  const text = [
    'test("charges a card", () => {',
    "  it.each([1])(`twice %i`, () => {})",
    'it.only("says \\"no\\"", f)',
    "def test_missing_key(self):",
    "func TestLogin(t *testing.T) {",
    "    fn test_refund() {",
    "  it 'sends one code' do",
    "  Scenario: A book comes back",
    "fun `should ship free`() {}",
    '@DisplayName("Ships on Monday")',
    "const testing = describeIt(1)",
  ].join("\n");
  const { titles, quotes } = readTestText(`${text}\n  // auth#1.2, auth#9.9  \n`);
  expect(titles.map(({ line, text: title }) => `${line} ${title}`)).toEqual([
    "1 charges a card",
    "2 twice %i",
    '3 says \\"no\\"',
    "4 test_missing_key",
    "5 TestLogin",
    "6 test_refund",
    "7 sends one code",
    "8 A book comes back",
    "9 should ship free",
    "10 Ships on Monday",
  ]);
  expect(quotes).toEqual({ 12: "// auth#1.2, auth#9.9" });
});

test("a title with the rare words of a criterion is suggested, a title with one common word is not", () => {
  const texts = [
    "WHEN the payment is declined THEN the system SHALL place nothing",
    "WHEN the cart is empty THEN the system SHALL refuse the checkout",
    "THE system SHALL print receipts",
  ];
  const criteria = texts.map((text, at) => ({
    id: `a#${at}`,
    feature: 0,
    number: `${at}`,
    spec_id: "a",
    path: "a",
    line: 1,
    text,
  }));
  const comparison = createTitleComparison(criteria, [0, 1, 2]);
  const titles = ["places nothing when the payment is declined", "the cart is there"].map((text, at) => ({
    line: at + 1,
    text,
  }));
  comparison.add({ path: "a.test.ts", titles, features: new Set() });
  expect(comparison.suggestionsFor(0)).toMatchObject([{ path: "a.test.ts", line: 1 }]);
  expect(comparison.suggestionsFor(1)).toEqual([]);
  expect(comparison.suggestionsFor(2)).toEqual([]);
});

test("any text is read without an exception, and references are in line order", () => {
  const pieces = [
    "auth#1.",
    "Requirement ",
    "1.2",
    ", ",
    "\n",
    "\r",
    '"',
    "test(",
    "`",
    "\\",
    "/",
    "Feature: ",
    "é",
    "#",
    "FR-",
    " ",
  ];
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string())), (parts) => {
      const { references, titles } = readTestText(parts.join(""));
      const lines = references.map(({ line }) => line);
      expect(lines).toEqual([...lines].sort((a, b) => a - b));
      for (const { line } of [...references, ...titles]) expect(line).toBeGreaterThan(0);
    }),
  );
});

test.each([
  ["a long word", "a".repeat(300_000)],
  ["open calls", "test(".repeat(60_000)],
  ["open strings", 'test("'.repeat(50_000)],
  ["numbers", `Requirements ${"1.1, ".repeat(60_000)}`],
  ["keywords", "requirement ".repeat(30_000)],
  ["slashes", "a/".repeat(150_000)],
  ["hashes", "a#".repeat(150_000)],
  ["features", "feature: ".repeat(30_000)],
  ["functions", "def test_".repeat(30_000)],
])("%s are read in linear time", (_, text) => {
  const start = processorMs();
  readTestText(text);
  expect(processorMs() - start).toBeLessThan(1500);
});

test("a task means the criteria of its own feature where others have the same name", () => {
  const task = "- [ ] 1. Work\n  - _Requirements: 1.2, 2_\n";
  const blocks = blocksOf({
    ".kiro/specs/auth/requirements.md": requirements(2, 1),
    "web/.kiro/specs/auth/requirements.md": requirements(3, 2),
    "web/.kiro/specs/auth/tasks.md": task,
    ".kiro/specs/gift-cards/requirements.md": requirements(2, 1),
    ".kiro/specs/gift-cards/tasks.md": task,
  });
  const index = indexCriteria(listCriteria(blocks));
  const tasks = blocks.filter(({ spec_type }) => spec_type === "task");
  const ids = tasks.map((block) =>
    criteriaOfTask(index, block).map(({ criterion }) => index.criteria[criterion]?.id),
  );
  expect(tasks.map(({ metadata }) => metadata.criteria)).toEqual([
    ["auth#1.2", "auth#2"],
    ["gift-cards#1.2", "gift-cards#2"],
  ]);
  expect(ids).toEqual([
    ["web/auth#1.2", "web/auth#2.1", "web/auth#2.2"],
    ["gift-cards#1.2", "gift-cards#2.1"],
  ]);
});
