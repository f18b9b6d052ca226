import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { CoverageReport } from "../../protocol/coverage.ts";
import { requirementsFile } from "../../testing/requirements-file.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import { type CoverageOptions, pageCoverage, specCoverage } from "./coverage.ts";

const requirements = requirementsFile("Log in", [
  "WHEN the password is right THEN the system SHALL open a session",
  "WHEN the password is wrong three times THEN the system SHALL lock the account",
  "THE system SHALL log every attempt, see `tests/audit.test.ts`",
]);

const files = {
  ".kiro/specs/auth/requirements.md": requirements,
  "specs/001-gift-cards/spec.md":
    "# Feature Specification: Gift cards\n\n### User Story 1 - Buy (Priority: P1)\n\nA customer buys.\n\n**Acceptance Scenarios**:\n\n1. **Given** a cart, **When** it is paid, **Then** a code is sent\n\n## Requirements\n\n- **FR-001**: System MUST accept cards of 5 to 200 euros\n- **FR-002**: System MUST send one code\n",
  "openspec/specs/shipping/spec.md":
    "# Shipping\n\n## Purpose\n\nWhat it costs to send an order, and how the parcels are counted.\n\n## Requirements\n\n### Requirement: Free shipping\n\nThe system SHALL ship for free from 50 euros on.\n\n#### Scenario: A large order\n\n- **WHEN** the cart costs 50 euros\n- **THEN** shipping costs nothing\n",
  "tests/login.test.ts":
    'test("auth#1.1 opens a session", () => {});\n\ntest("locks an account after the wrong password", () => {});\n',
  "tests/audit.test.ts": "",
  "tests/gift_cards/test_amounts.py": 'def test_fr_001_amounts():\n    """FR-001, US1.1 and FR-009"""\n',
  "src/login.ts": "// auth#1.2 is not a test\n",
};

async function reportOn(
  extra: Readonly<Record<string, string>> = {},
  options: CoverageOptions = {},
): Promise<CoverageReport> {
  await using folder = await createTemporaryRepository({ ...files, ...extra });
  await symlink("/etc/hostname", join(folder.root, "tests/outside.test.ts"));
  const project = await openProject({ root: folder.root, indexFile: ":memory:" });
  try {
    return await specCoverage(project, options);
  } finally {
    await project.close();
  }
}

test("criteria of every framework are matched with the tests that name them", async () => {
  const report = await reportOn();
  const rows = report.criteria.map(({ id, tests }) => [
    id,
    ...tests.map(({ path, line, evidence }) => `${evidence} ${path}:${line}`),
  ]);
  expect(rows).toEqual([
    ["auth#1.1", "key tests/login.test.ts:1"],
    ["auth#1.2"],
    ["auth#1.3", "path tests/audit.test.ts:1"],
    [expect.stringMatching(/^shipping#/)],
    ["001-gift-cards#US1.1", "number tests/gift_cards/test_amounts.py:2"],
    [
      "001-gift-cards#FR-001",
      "number tests/gift_cards/test_amounts.py:1",
      "number tests/gift_cards/test_amounts.py:2",
    ],
    ["001-gift-cards#FR-002"],
  ]);
  expect(report.totals).toEqual({
    criteria: 7,
    covered: 4,
    covered_by_requirement: 0,
    passing: 0,
    failing: 0,
    never_run: 4,
    partly_run: 0,
    stale: 0,
    uncovered: 3,
    suggested: 1,
  });
  expect(
    report.by_feature.map(({ feature, path, criteria, covered }) => [feature, path, criteria, covered]),
  ).toEqual([
    ["auth", ".kiro/specs/auth", 3, 2],
    ["shipping", "openspec/specs/shipping", 1, 0],
    ["001-gift-cards", "specs/001-gift-cards", 3, 2],
  ]);
});

test("similar words suggest and do not count, and the evidence is quoted", async () => {
  const report = await reportOn();
  const [first, second] = report.criteria;
  expect(first?.tests[0]?.quote).toBe('test("auth#1.1 opens a session", () => {});');
  expect(second).toMatchObject({
    tests: [],
    suggestions: [
      { path: "tests/login.test.ts", line: 3, quote: "locks an account after the wrong password" },
    ],
  });
});

test("an unreadable test file and an unknown key are reported", async () => {
  const report = await reportOn({ "tests/typo.test.ts": "\n// auth#1.9\n" });
  expect(report.diagnostics).toEqual([
    {
      severity: "warning",
      rule: "unreadable-file",
      message: "It is a link that leads out of the project, so it is not read.",
      path: "tests/outside.test.ts",
    },
    {
      severity: "warning",
      rule: "dangling-reference",
      code: "criterion_unknown",
      message: "No spec has the criterion auth#1.9.",
      path: "tests/typo.test.ts",
      line: 2,
    },
  ]);
});

test("a report can be limited to features by name, and an unknown name is refused", async () => {
  const report = await reportOn({}, { features: ["gift-cards"] });
  expect(report.totals.criteria).toBe(3);
  expect(report.by_feature).toHaveLength(1);
  await expect(reportOn({}, { features: ["gift-card"] })).rejects.toMatchObject({
    code: "invalid_request",
    hint: "Did you mean gift-cards?",
  });
});

test("an abort ends the scan", async () => {
  const reason = new Error("enough");
  await expect(reportOn({}, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
});

test("a report has pages, of all criteria or of those without a test", async () => {
  const report = await reportOn();
  const uncovered = report.criteria.filter(({ tests }) => tests.length === 0);
  const first = pageCoverage(report, { show: "uncovered", limit: 1 });
  expect(first).toMatchObject({
    criteria: [uncovered[0]],
    total_count: uncovered.length,
    totals: report.totals,
  });
  const next = { show: "uncovered", limit: 1000, cursor: first.next_cursor ?? "" } as const;
  expect(pageCoverage(report, next).criteria).toEqual(uncovered.slice(1));
  expect(pageCoverage(report, next).next_cursor).toBeUndefined();
  expect(() => pageCoverage(report, { ...next, show: "all" })).toThrow(/not a cursor of this query/);
});

test("without criteria no test is read", async () => {
  await using folder = await createTemporaryRepository({
    "CLAUDE.md": "## Text\n\nfine\n",
    "tests/a.test.ts": "// auth#1.1\n",
  });
  const project = await openProject({ root: folder.root, indexFile: ":memory:" });
  const phases: string[] = [];
  // A folder that has gone: reading any test would be told as a diagnostic, or fail.
  const report = await specCoverage(
    { ...project, root: join(folder.root, "gone") },
    { onProgress: ({ phase }) => phases.push(phase) },
  );
  expect(report).toMatchObject({ criteria: [], test_files: 1, diagnostics: [] });
  expect(phases).toEqual([]);
  await project.close();
});
