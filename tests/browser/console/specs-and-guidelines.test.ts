import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ServedService, serveService } from "../../../src/server/testing/serve-service.ts";
import { openBrowser } from "../open-browser.ts";
import { type OpenedScreen, openScreen, violations } from "./open-console.ts";

const hostile = `<img src=x onerror="window.harmed = true"><script>window.harmed = true</script>`;

const files: Readonly<Record<string, string>> = {
  ".kiro/specs/auth/requirements.md": `# Requirements

## Requirement 1: Login

**User Story:** As a user, I want to log in.

#### Acceptance Criteria

1. WHEN a user logs in THEN the system SHALL open a session.
2. WHEN the password is wrong THEN the system SHALL refuse.
3. WHEN a user logs out THEN the system SHALL close the session.
`,
  ".kiro/specs/auth/design.md": "# Design\n\n## Sessions\n\nSee `src/login.ts` and requirement 1.\n",
  ".kiro/specs/auth/tasks.md":
    "# Tasks\n\n- [x] 1. Open sessions in `src/login.ts`\n  - _Requirements: 1.1_\n",
  ".kiro/specs/hostile/requirements.md": `# Requirements\n\n## Requirement 1: ${hostile}\n\n\u202Eevil ${hostile} ${"x".repeat(20_000)}\n\n#### Acceptance Criteria\n\n1. WHEN ${hostile} THEN the system SHALL show it.\n`,
  "src/login.ts": "export const login = 1;\n",
  "src/login.test.ts":
    'test("opens a session (auth#1.1)", () => {});\ntest("refuses (auth#1.2)", () => {});\n',
  "CLAUDE.md": `# Rules\n\n## Money\n\nAmounts are whole cents. ${hostile}\n`,
  ".cursor/rules/style.mdc":
    "---\nglobs: src/**/*.ts\nalwaysApply: false\n---\n\n# Style\n\nNamed exports only.\n",
};

const results = `<testsuite><testcase classname="src/login.test.ts" name="opens a session (auth#1.1)"/><testcase classname="src/login.test.ts" name="refuses (auth#1.2)"><failure message="expected 401 ${"&lt;b&gt;".repeat(3)}"/></testcase></testsuite>`;

let served: ServedService;
let browser: Browser;
beforeAll(async () => {
  served = await serveService({ files });
  await served.send("/api/specs/results", { body: { report: results } });
  browser = await openBrowser();
}, 60_000);
afterAll(async () => {
  await browser.close();
  await served.close();
});

const open = (path: string, width?: number): Promise<OpenedScreen> =>
  openScreen(browser, { url: served.url, path, ...(width === undefined ? {} : { width }) });

test("a criterion without a passing test is found from the list of specs", async () => {
  await using opened = await open("/console/specs");
  const { page } = opened;
  await page.getByRole("heading", { name: ".kiro/specs/auth/requirements.md" }).waitFor();
  await page.getByRole("link", { name: "Criteria" }).click();
  await page.getByRole("button", { name: /^Failing/ }).click();
  await page.getByText("auth#1.2", { exact: true }).waitFor();
  expect(await page.getByText("auth#1.1", { exact: true }).count()).toBe(0);
  await page.getByText("expected 401 <b><b><b>").waitFor();
  await page.getByText("auth#1.2", { exact: true }).click();
  // The block: its text, its source at its lines, its criteria with their tests.
  await page.getByRole("heading", { name: "Acceptance criteria" }).waitFor();
  const source = page.getByRole("region", { name: "Source of .kiro/specs/auth/requirements.md" });
  await source.getByText("SHALL refuse").waitFor();
  expect(await page.getByText("passing", { exact: true }).count()).toBe(1);
  expect(await page.getByText("failing", { exact: true }).count()).toBe(1);
  expect(await page.getByText("no test", { exact: true }).count()).toBe(1);
  await page.getByRole("button", { name: "Draw" }).click();
  await page.getByTestId("graph").locator(".react-flow__node").first().waitFor();
  expect(opened.faults).toEqual([]);
});

test("the search of specs has an address, and says when nothing matches", async () => {
  await using opened = await open("/console/specs?q=sessions");
  await opened.page.getByRole("link", { name: /Open sessions/ }).waitFor();
  await opened.page.getByRole("textbox", { name: "Search specs" }).fill("nothing like it");
  await opened.page.keyboard.press("Enter");
  await opened.page.getByText("No spec matches").waitFor();
  expect(new URL(opened.page.url()).searchParams.get("q")).toBe("nothing like it");
});

test("a change of a file is drawn with the specs and tests that it affects", async () => {
  await using opened = await open("/console/specs/impact?files=src/login.ts");
  await opened.page.getByTestId("graph").locator(".react-flow__node").first().waitFor();
  await opened.page.getByRole("heading", { name: "Affected blocks" }).waitFor();
  expect(opened.faults).toEqual([]);
});

test("tools are side by side with what each reads for a file, and a rule shows what a conversion loses", async () => {
  await using opened = await open("/console/guidelines");
  const { page } = opened;
  await page.getByRole("link", { name: "For a file" }).click();
  await page.getByRole("textbox", { name: /^A file/ }).fill("src/login.ts");
  await page.keyboard.press("Enter");
  await page.getByText("matches src/**/*.ts").first().waitFor();
  expect(await page.getByRole("heading", { name: "Claude Code" }).count()).toBe(1);
  await page.getByRole("link", { name: "Style" }).first().click();
  await page.getByRole("button", { name: "Claude Code" }).click();
  await page.getByText("cannot be limited").waitFor();
  expect(opened.faults).toEqual([]);
});

test("a sync is a diff before it is written", async () => {
  await using opened = await open("/console/guidelines/sync");
  const { page } = opened;
  await page.getByRole("button", { name: "Claude Code" }).click();
  await page
    .getByText("create", { exact: true })
    .first()
    .waitFor()
    .catch(() => undefined);
  const changes = page.getByRole("region", { name: /^Changes of / }).first();
  await changes.waitFor();
  const write = page.getByRole("button", { name: /^Write \d/ });
  expect(existsSync(join(served.root, ".cursor/rules/claude.mdc"))).toBe(false);
  await write.click();
  await page
    .getByRole("status")
    .getByText(/^Written: /)
    .waitFor();
  expect(opened.faults).toEqual([]);
});

const addresses = [
  "/console/specs",
  "/console/specs/criteria",
  "/console/specs/impact",
  "/console/specs/problems",
  "/console/guidelines",
  "/console/guidelines/explain?file=src/login.ts",
  "/console/guidelines/lint",
  "/console/guidelines/sync?from=fw_c",
];

test.each(addresses)("%s holds hostile text, on a phone too, and is accessible", async (path) => {
  await using opened = await open(path, 390);
  const { page } = opened;
  await page.waitForLoadState("networkidle");
  expect(await page.evaluate(() => "harmed" in globalThis)).toBe(false);
  const isWide = await page.evaluate("document.documentElement.scrollWidth > innerWidth + 1");
  expect(isWide, "wider than the screen").toBe(false);
  expect(await violations(page)).toEqual([]);
  expect(opened.faults).toEqual([]);
});

test("a hostile spec is text on its own screen", async () => {
  const { body } = await served.send("/api/specs?path=.kiro/specs/hostile");
  await using opened = await open(`/console/specs/${encodeURIComponent(body.specs[0].id)}`, 390);
  await opened.page.getByText("onerror").first().waitFor();
  expect(await opened.page.evaluate(() => "harmed" in globalThis)).toBe(false);
  expect(await opened.page.evaluate("document.documentElement.scrollWidth > innerWidth + 1")).toBe(false);
  expect(await violations(opened.page)).toEqual([]);
});
