import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { KitClient } from "../../client/index.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";

const requirement = (count: number): string =>
  `# Requirements\n\n## Requirement 1: Login\n\n#### Acceptance Criteria\n\n${Array.from({ length: count }, (_, at) => `${at + 1}. WHEN x${at} THEN the system SHALL y.`).join("\n")}\n`;

const files: Readonly<Record<string, string>> = {
  ".kiro/specs/auth/requirements.md": requirement(3),
  ".kiro/specs/auth/design.md": "# Design\n\n## Sessions\n\nSee `src/login.ts`.\n",
  ".kiro/specs/auth/tasks.md":
    "# Tasks\n\n- [x] 1. Open sessions in `src/login.ts`, tested in `src/login.test.ts`\n  - _Requirements: 1.1_\n- [ ] 2. Slip\n  - _Requirements: 9.9_\n",
  ".kiro/specs/pay/requirements.md": requirement(1),
  ".kiro/specs/pay/tasks.md": "# Tasks\n\n- [ ] 1. Slip\n  - _Requirements: 8.8_\n",
  "CLAUDE.md": "# Rules\n\n## Money\n\nAmounts are whole cents.\n",
  "src/login.ts": "export const login = 1;\n",
  "src/login.test.ts": 'test("opens (auth#1.1)", () => {});\n',
  "src/other.test.ts": 'test("refuses (auth#1.2)", () => {});\n',
};

let client: KitClient;
const served = serveForTests({ files });
beforeAll(() => {
  client = new KitClient({ baseUrl: served.url });
});

const issue = async (path: string, body?: unknown): Promise<unknown> => {
  const reply = await served.send(path, { body });
  return [reply.status, reply.body.error?.meta?.issues?.[0]?.path ?? reply.body.error?.message];
};

test("features are listed by framework and path, with the numbers of their blocks, in pages and by search", async () => {
  const first = await client.specs.features({ limit: 2 });
  expect(first.features).toMatchObject([
    {
      framework: "fw_a",
      feature: ".kiro/specs/auth",
      name: "auth",
      counts_by_type: { requirement: 1, task: 2 },
    },
    { framework: "fw_a", feature: ".kiro/specs/pay", name: "pay", blocks: 2 },
  ]);
  expect(first).toMatchObject({ total_count: 3, counts_by_framework: { fw_c: 1 } });
  const second = await client.specs.features({ limit: 2, cursor: first.next_cursor });
  expect(second.features.map(({ feature }) => feature)).toEqual(["CLAUDE.md"]);
  expect((await client.specs.features({ q: "PAY" })).features.map(({ name }) => name)).toEqual(["pay"]);
  expect((await client.specs.features({ feature: "CLAUDE.md" })).total_count).toBe(1);
  expect((await served.send("/api/specs/features?framework=claude")).body.total_count).toBe(1);
  expect(await issue("/api/specs/features?cursor=x")).toEqual([400, "query.cursor"]);
  expect(await issue("/api/specs/features?framework=nope")).toEqual([400, "query.framework"]);
});

test("the outline of a feature has its blocks without their texts, in pages and by type", async () => {
  const query = { framework: "fw_a", feature: ".kiro/specs/auth", limit: 2 } as const;
  const seen = [];
  let cursor: string | undefined;
  do {
    const page = await client.specs.outline({ ...query, cursor });
    expect(page.total_count).toBe(4);
    seen.push(...page.blocks);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  expect(seen).toMatchObject([
    { spec_type: "design", path: ".kiro/specs/auth/design.md", line: 3 },
    { spec_type: "requirement", criteria: 3 },
    { spec_type: "task", status: "done", criteria: 0 },
    { spec_type: "task", status: "open" },
  ]);
  expect(seen[0]).not.toHaveProperty("content");
  expect(await client.specs.get(seen[1]?.id ?? "")).toMatchObject({ title: seen[1]?.title });
  expect((await client.specs.outline({ ...query, spec_type: "requirement" })).total_count).toBe(1);
  expect(await client.specs.outline({ ...query, feature: "no/such" })).toEqual({
    blocks: [],
    total_count: 0,
  });
  const other = await client.specs.outline({ ...query, limit: 1 });
  const path = `/api/specs/outline?framework=fw_a&feature=CLAUDE.md&cursor=${other.next_cursor}`;
  expect(await issue(path)).toEqual([400, "query.cursor"]);
  expect(await issue("/api/specs/outline?framework=fw_a")).toEqual([400, "query.feature"]);
});

test("diagnostics are listed completely, or filtered and in pages, with counts of all", async () => {
  const all = await client.specs.diagnostics();
  expect(all.map(({ rule }) => rule)).toEqual(["dangling-reference", "dangling-reference"]);
  const first = await client.specs.diagnosticPage({ limit: 1, severity: "warning", framework: "fw_a" });
  expect(first).toMatchObject({
    diagnostics: [all[0]],
    total_count: 2,
    counts_by_severity: { error: 0, warning: 2 },
    counts_by_rule: { "dangling-reference": 2 },
    counts_by_framework: { fw_a: 2 },
  });
  const cursor = first.next_cursor;
  const second = await client.specs.diagnosticPage({
    limit: 1,
    severity: "warning",
    framework: "fw_a",
    cursor,
  });
  expect(second.diagnostics).toEqual([all[1]]);
  const counted = async (query: string): Promise<number> =>
    (await served.send(`/api/specs/diagnostics?${query}`)).body.total_count;
  expect(await counted("severity=error")).toBe(0);
  expect(await counted("framework=claude")).toBe(0);
  expect(await counted("path=.kiro/specs/pay")).toBe(1);
  expect(await counted("path=.kiro/specs/pa")).toBe(0);
  expect(await counted(`id=${all[0]?.id}&rule=dangling-reference`)).toBe(1);
  expect(await issue("/api/specs/diagnostics?rule=nope")).toEqual([400, "query.rule"]);
  expect(await issue(`/api/specs/diagnostics?limit=1&cursor=${cursor}`)).toEqual([400, "query.cursor"]);
});

test("further pages of criteria come from the state that the first page showed, and the criteria of a block can be listed", async () => {
  const first = await client.specs.coverage({ limit: 1 });
  writeFileSync(join(served.root, "src/other.test.ts"), "");
  const next = await client.specs.coverage({ limit: 1, cursor: first.next_cursor });
  expect(next.criteria).toMatchObject([{ id: "auth#1.2", state: "never_run" }]);
  expect((await client.specs.coverage({ show: "uncovered" })).criteria[0]?.id).toBe("auth#1.2");
  const spec = first.criteria[0]?.spec_id;
  expect((await client.specs.coverage({ spec })).criteria.map(({ number }) => number)).toEqual([
    "1.1",
    "1.2",
    "1.3",
  ]);
  expect((await client.specs.coverage({ spec, show: "not_passing" })).total_count).toBe(3);
  expect((await client.specs.coverage({ spec: "nope" })).criteria).toEqual([]);
  writeFileSync(join(served.root, "src/other.test.ts"), files["src/other.test.ts"] ?? "");
  const ofFile = async (file: string) =>
    (await client.specs.coverage({ file })).criteria.map(({ number }) => number);
  expect([await ofFile("src/other.test.ts"), await ofFile("src/nope.test.ts")]).toEqual([["1.2"], []]);
});

test("an impact is shown with requirements, designs, tasks, tests and files, each edge with its source line", async () => {
  const { graph } = await client.specs.impact({ files: ["src/login.ts"], graph: true });
  const titles = new Map(graph?.nodes.map(({ id, kind }) => [id, `${kind} ${id.split("-").at(-1)}`]));
  expect(graph?.nodes.find(({ changed }) => changed)).toMatchObject({ id: "src/login.ts", kind: "file" });
  const edges = graph?.edges
    .map(({ from, to, kind }) => `${titles.get(from)} ${kind} ${titles.get(to)}`)
    .sort();
  expect(edges).toEqual([
    "design sessions code_ref file src/login.ts",
    "requirement req1 covered_by test src/login.test.ts",
    "requirement req1 covered_by test src/other.test.ts",
    "task 1 code_ref file src/login.ts",
    "task 1 implements requirement req1",
    "task 1 test_ref test src/login.test.ts",
  ]);
  expect(graph?.omitted).toBe(0);
  expect(await client.specs.impact({ files: ["src/login.ts"] })).not.toHaveProperty("graph");
});

test("an impact since a revision starts from the changed files, and a revision is never an option of Git", async () => {
  const git = (...args: readonly string[]): void => {
    execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@b.c", ...args], {
      cwd: served.root,
      stdio: "ignore",
    });
  };
  expect(await issue("/api/specs/impact", { since: "HEAD" })).toMatchObject([
    503,
    expect.stringContaining("Git"),
  ]);
  git("init", "--quiet");
  git("add", "--all");
  git("commit", "--quiet", "--message=First");
  expect(await client.specs.impact({ since: "HEAD" })).toMatchObject({ changed_files: [], total_count: 0 });
  writeFileSync(join(served.root, "src/login.ts"), "export const login = 2;\n");
  mkdirSync(dirname(join(served.root, "src/new/a.ts")), { recursive: true });
  writeFileSync(join(served.root, "src/new/a.ts"), "");
  const impact = await client.specs.impact({ since: "HEAD", graph: true });
  expect(impact.changed_files).toEqual(["src/login.ts", "src/new/a.ts"]);
  expect(impact.affected.map(({ id }) => id)).toContain("fw_a-auth-design-sessions");
  expect(impact.graph?.nodes.filter(({ changed }) => changed).map(({ id }) => id)).toEqual(["src/login.ts"]);
  for (const since of [
    "--output=/tmp/harm",
    "-p",
    "nowhere",
    "HEAD\u0000",
    "HEAD..main",
    "HEAD; ls",
    "$(id)",
    "@{u}",
  ])
    expect(await issue("/api/specs/impact", { since }), since).toEqual([400, "body.since"]);
  for (const since of ["", 3, "x".repeat(300)])
    expect(await issue("/api/specs/impact", { since })).toEqual([400, "body.since"]);
});
