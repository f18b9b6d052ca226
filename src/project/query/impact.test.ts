import { afterAll, beforeAll, expect, test } from "vitest";
import { repositoryForTests } from "../../testing/repository-for-tests.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import type { Project } from "../project.ts";

const requirements = [
  "# Requirements Document",
  ...["Login", "Logout"].map((title, index) =>
    [
      `### Requirement ${index + 1}: ${title}`,
      "**User Story:** As a user, I want it, so that it is there",
      "#### Acceptance Criteria",
      "1. WHEN I ask THEN THE system SHALL answer",
    ].join("\n\n"),
  ),
].join("\n\n");
const tasks = [
  "# Implementation Plan",
  "- [ ] 1. Write the login in `src/login.ts`",
  "  - _Requirements: 1.1_",
  "- [ ] 2. Test the logout in `tests/logout.test.ts`",
  "  - _Requirements: 2.1_",
  "- [ ] 3. Clean up after `src/index.ts`",
].join("\n");
const design =
  "# Design\n\n## Overview\n\nAll about it.\n\n## Files\n\nSee [the code](../../../src/login.ts).\n";

const files = {
  ".kiro/specs/auth/requirements.md": requirements,
  ".kiro/specs/auth/design.md": design,
  ".kiro/specs/auth/tasks.md": tasks,
  "packages/api/.kiro/specs/auth/tasks.md": "# Plan\n\n- [ ] 1. Read `src/index.ts` and `README.md`\n",
  "packages/api/src/index.ts": "",
  "src/login.ts": "",
  "src/index.ts": "",
  "tests/logout.test.ts": "",
  "tests/unnamed.test.ts": "",
};

let project: Project;
const repository = repositoryForTests(files);
beforeAll(async () => {
  project = await openProject({ root: repository.root, indexFile: ":memory:" });
});
afterAll(() => project.close());

const idOf = (path: string, title: string): string => {
  for (const spec of project.specs.all())
    if (spec.path === path && spec.title.includes(title)) return spec.id;
  throw new Error(`${path} has no ${title}.`);
};
const task = (n: number): string =>
  idOf(".kiro/specs/auth/tasks.md", ["login", "logout", "Clean"][n - 1] ?? "");
const requirement = (n: number): string => `fw_a-auth-requirements-req${n}`;
const scores = (request: Parameters<Project["specs"]["impact"]>[0]) =>
  Object.fromEntries(project.specs.impact(request).affected.map(({ id, score }) => [id, score]));

test("a changed code file affects the blocks that name it, and on from there", () => {
  const impact = project.specs.impact({ files: ["src/login.ts"] });
  const direct = impact.affected.filter(({ path }) => path.length === 1);
  expect(direct.map(({ id }) => id).sort()).toEqual(
    [idOf(".kiro/specs/auth/design.md", "Files"), task(1)].sort(),
  );
  expect(impact.affected.find(({ id }) => id === requirement(1))).toEqual({
    id: requirement(1),
    score: 0.72,
    path: [
      { from: "src/login.ts", to: task(1), kind: "code_ref" },
      { from: task(1), to: requirement(1), kind: "implements" },
    ],
  });
  expect(impact.files).toContain("src/login.ts");
});

test("a path in a document of a package is the package's file, if it exists there", () => {
  expect(Object.keys(scores({ files: ["packages/api/src/index.ts"], depth: 1 }))).toEqual([
    idOf("packages/api/.kiro/specs/auth/tasks.md", "README"),
  ]);
  expect(Object.keys(scores({ files: ["src/index.ts"], depth: 1 }))).toEqual([task(3)]);
});

test("a changed requirement affects the tasks that implement it, and names their tests", () => {
  const impact = project.specs.impact({ ids: [requirement(2)], depth: 1 });
  expect(impact.affected[0]).toEqual({
    id: task(2),
    score: 0.8,
    path: [{ from: requirement(2), to: task(2), kind: "implements" }],
  });
  expect(impact.tests).toEqual(["tests/logout.test.ts"]);
  expect(impact.affected.map(({ id }) => id)).not.toContain(requirement(2));
});

test("a changed document affects its blocks fully, and the other documents of the feature a little", () => {
  const impact = scores({ files: ["./.kiro/specs/auth/design.md"], expand_features: true });
  expect(impact[idOf(".kiro/specs/auth/design.md", "Overview")]).toBe(1);
  expect(impact[requirement(1)]).toBe(0.3);
  expect(Object.values(impact).every((score) => score > 0 && score <= 1)).toBe(true);
});

test("a deleted file still affects the blocks that name it", async () => {
  await using other = await createTemporaryRepository({
    "CLAUDE.md": "## Build\n\nRun `scripts/build.ts` first.\n",
  });
  const opened = await openProject({ root: other.root, indexFile: ":memory:" });
  expect(opened.specs.impact({ files: ["scripts/build.ts"] }).affected.map(({ id }) => id)).toEqual([
    "fw_c-build",
  ]);
  expect(opened.specs.impact({ files: ["other/scripts/build.ts"] }).affected).toEqual([]);
  await opened.close();
});

test("an unknown id and a wrong depth are refused", () => {
  expect(() => project.specs.impact({ ids: ["nope"] })).toThrow(
    expect.objectContaining({ code: "spec_not_found" }),
  );
  for (const depth of [0, 6, 1.5]) {
    expect(() => project.specs.impact({ files: [], depth })).toThrow(
      expect.objectContaining({ code: "invalid_request" }),
    );
  }
});

test("a file that nothing names affects nothing", () => {
  expect(project.specs.impact({ files: ["nowhere.ts", "../outside.ts", ""] })).toEqual({
    affected: [],
    total_count: 0,
    same_feature: [],
    obsolete_count: 0,
    tests: [],
    files: [],
  });
});

test("blocks that only share the feature are counted, and listed on demand", () => {
  const request = { files: [".kiro/specs/auth/design.md"], depth: 2 };
  const folded = project.specs.impact(request);
  expect(folded.affected.length).toBeGreaterThan(0);
  expect(folded.affected.every(({ path }) => path.at(-1)?.kind !== "same_feature")).toBe(true);
  const expanded = project.specs.impact({ ...request, expand_features: true });
  expect(folded.same_feature).toEqual([{ feature: ".kiro/specs/auth", specs: 5 }]);
  expect(expanded.same_feature).toEqual([]);
  const listed = expanded.affected.filter(({ path }) => path.at(-1)?.kind === "same_feature");
  expect(listed).toHaveLength(5);
});

test("the tests to run are those of the requested blocks, and changed tests that no block names", () => {
  const impact = project.specs.impact({ ids: [task(2)], depth: 1 });
  expect(impact.tests).toEqual(["tests/logout.test.ts"]);
  expect(impact.files).toContain(".kiro/specs/auth/tasks.md");
  expect(project.specs.impact({ files: ["tests/unnamed.test.ts", "tests/gone.test.ts"] }).tests).toEqual([
    "tests/unnamed.test.ts",
  ]);
});

test("obsolete blocks are left out, and paths do not pass through them, unless requested", async () => {
  const archived = "openspec/changes/archive/2026-01-01-old/tasks.md";
  await using other = await createTemporaryRepository({
    [archived]: "## 1. A\n- [x] 1.1 Write `src/a.ts` and `src/a.test.ts`\n- [x] 1.2 Write more\n",
    "CLAUDE.md": "## Build\n\nSee `src/a.ts`.\n",
    "src/a.ts": "",
    "src/a.test.ts": "",
  });
  const opened = await openProject({ root: other.root, indexFile: ":memory:" });
  const current = opened.specs.impact({ files: ["src/a.ts"] });
  expect(current.affected.map(({ id }) => id)).toEqual(["fw_c-build"]);
  expect(current).toMatchObject({ total_count: 1, obsolete_count: 1, tests: [] });
  const all = opened.specs.impact({ files: ["src/a.ts"], include_obsolete: true });
  expect(all).toMatchObject({ total_count: 2, obsolete_count: 0, tests: ["src/a.test.ts"] });
  const [about] = all.affected.filter(({ id }) => id !== "fw_c-build");
  // The count leaves out blocks of the same feature, and a block that is asked about is not among the affected.
  expect(opened.specs.impact({ files: ["src/a.ts"], ids: [about?.id ?? ""] }).obsolete_count).toBe(0);
  await opened.close();
});

test("impact has pages, and the error of an invalid page names the field", () => {
  const request = { files: [".kiro/specs/auth/requirements.md", "src/login.ts"] };
  const allEdges = project.specs.impact(request);
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = project.specs.impact({ ...request, limit: 2, ...(cursor !== undefined && { cursor }) });
    expect(page.total_count).toBe(allEdges.total_count);
    expect(page.tests).toEqual(allEdges.tests);
    ids.push(...page.affected.map(({ id }) => id));
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  expect(ids).toEqual(allEdges.affected.map(({ id }) => id));
  const [first] = [project.specs.impact({ ...request, limit: 1 })];
  for (const wrong of [
    { limit: 0 },
    { limit: 1001 },
    { cursor: "x" },
    { cursor: first?.next_cursor ?? "", depth: 1 },
  ]) {
    expect(() => project.specs.impact({ ...request, ...wrong })).toThrow(
      expect.objectContaining({ code: "invalid_request" }),
    );
  }
});

test("the graph has every block, the files they name, and the edges that are written down", () => {
  const { nodes, edges } = project.specs.graph();
  expect(nodes.filter(({ kind }) => kind === "spec").length).toBe([...project.specs.all()].length);
  expect(nodes).toContainEqual({ id: "tests/logout.test.ts", kind: "test", title: "tests/logout.test.ts" });
  expect(edges).toContainEqual({ from: task(1), to: requirement(1), kind: "implements" });
  expect(edges).toContainEqual({ from: task(1), to: "src/login.ts", kind: "code_ref" });
});

test("blocks carry what they name: related blocks, code and tests", () => {
  expect(project.specs.get(task(2))?.metadata).toMatchObject({
    related_specs: [requirement(2)],
    test_refs: ["tests/logout.test.ts"],
  });
  expect(project.specs.get(task(1))?.metadata.code_refs).toEqual(["src/login.ts"]);
});
