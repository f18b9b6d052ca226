import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { ignoreEntryFor } from "../../../src/guidelines/lint/ignore-findings.ts";
import type { Diagnostic } from "../../../src/protocol/diagnostic.ts";
import { serveForTests } from "../../../src/server/testing/serve-for-tests.ts";
import { campaignTest } from "../../../src/testing/campaign.suite.ts";
import { browserForTests } from "../browser-for-tests.ts";
import { checkWidths, type OpenedScreen, openScreen, violations } from "./open-console.ts";

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
  ".kiro/specs/hostile/design.md": `# Design\n\n## Circle\n\nSee [tasks](tasks.md), [out](../../../../etc/passwd), [web](https://example.com/x), [script](javascript:alert(1)).\n\n${"> ".repeat(2_000)}deep\n\n${"]".repeat(15_000)}\n\n${"a*".repeat(5_000)}\n\n${"z".repeat(1_500_000)}\n`,
  ".kiro/specs/hostile/tasks.md":
    "# Tasks\n\n- [ ] 1. Go round, see `design.md`\n  - _Requirements: 1.1, 7.7_\n",
  ".kiro/specs/hostile/requirements.md": `# Requirements\n\n## Requirement 1: ${hostile}\n\n\u202Eevil ${hostile} ${"x".repeat(20_000)}\n\n#### Acceptance Criteria\n\n1. WHEN ${hostile} THEN the system SHALL show it.\n`,
  "src/login.ts": "export const login = 1;\n",
  "src/login.test.ts":
    'test("opens a session (auth#1.1)", () => {});\ntest("refuses (auth#1.2)", () => {});\n',
  "CLAUDE.md": `# Rules\n\n## Money\n\nAmounts are whole cents. ${hostile}\n`,
  ".cursor/rules/style.mdc":
    "---\nglobs: src/**/*.ts\nalwaysApply: false\n---\n\n# Style\n\nNamed exports only.\n",
  ".gitignore": "CLAUDE.local.md\n",
  "CLAUDE.local.md": "# Mine\n\n## Tabs\n\nUse tabs.\n",
  ".cursor/rules/quoted.mdc": '---\nalwaysApply: "true"\n---\n\n# Quoted\n\nTests are sentences.\n',
  "openspec/specs/cart/spec.md": "# Cart\n\n## Requirements\n\n### Requirement: Totals\n\nNo scenario.\n",
};

const results = `<testsuite><testcase classname="src/login.test.ts" name="opens a session (auth#1.1)"/><testcase classname="src/login.test.ts" name="refuses (auth#1.2)"><failure message="expected 401 ${"&lt;b&gt;".repeat(3)}"/></testcase></testsuite>`;

const browser = browserForTests();
const served = serveForTests({ files });
beforeAll(async () => {
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@b.c", ...args], { cwd: served.root });
  git("init", "--quiet");
  git("add", "--all");
  git("commit", "--quiet", "--message=First");
  await served.send("/api/specs/results", { body: { report: results } });
  // A change after the results, which is not committed.
  writeFileSync(join(served.root, "src/login.ts"), "export const login = 2;\n");
}, 60_000);

const open = (path: string, width?: number): Promise<OpenedScreen> =>
  openScreen(browser, { url: served.url, path, width });

test("a criterion without a passing test is one click from Home, with the reason, and its block next to its source", async () => {
  await using opened = await open("/");
  const { page } = opened;
  await page.getByRole("link", { name: "without a passing test" }).click();
  const criterion = (id: string) => page.getByRole("link", { name: id, exact: true });
  await criterion("auth#1.3").waitFor();
  await expect.poll(() => criterion("auth#1.1").count()).toBe(0);
  await page.getByText("expected 401 <b><b><b>").waitFor();
  await page.getByRole("button", { name: /^Stale result/ }).click();
  await criterion("auth#1.1").waitFor();
  await page.getByText("the code changed since").first().waitFor();
  await expect.poll(() => criterion("auth#1.3").count()).toBe(0);
  await criterion("auth#1.2").click();
  await page.getByRole("heading", { name: "Acceptance criteria" }).waitFor();
  const source = page.getByRole("region", { name: "Source of .kiro/specs/auth/requirements.md" });
  await source.locator("[data-marked]").getByText("SHALL refuse").waitFor();
  await page.getByRole("listitem").getByText("WHEN the password is wrong").first().waitFor();
  for (const state of ["passing", "failing", "no test"])
    await expect.poll(() => page.getByText(state, { exact: true }).count(), { message: state }).toBe(1);
  await page.getByRole("button", { name: "Draw" }).click();
  await page.getByTestId("graph").locator(".react-flow__node").first().waitFor();
  await page.getByRole("region", { name: "The graph as a list" }).getByText("implements").waitFor();
  await expect.poll(() => violations(page)).toEqual([]);
  await page.getByRole("link", { name: "auth", exact: true }).click();
  await page.getByRole("treeitem", { name: /^Requirements/ }).waitFor();
  expect(new URL(page.url()).searchParams.get("feature")).toBe(".kiro/specs/auth");
  expect(opened.faults).toEqual([]);
});

test("the tree of specs opens on features with their tested criteria, and is opened by keyboard down to a criterion", async () => {
  await using opened = await open("/console/specs");
  const { page } = opened;
  const tree = page.getByRole("tree", { name: "Specs" });
  const item = (name: RegExp) => page.getByRole("treeitem", { name });
  await item(/^Kiro/).waitFor();
  await item(/^auth.*\d+\/\d+ tested/).waitFor();
  await tree.focus();
  await page.keyboard.press("Home");
  await page.keyboard.type("au");
  await page.keyboard.press("ArrowRight");
  await item(/^Requirements/).waitFor();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await item(/^Requirement 1: Login/).waitFor();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const criterion = item(/^1.1 WHEN a user logs in/);
  await criterion.waitFor();
  await expect.poll(() => criterion.getAttribute("aria-level")).toBe("5");
  await expect.poll(() => violations(page)).toEqual([]);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Requirement 1: Login" }).waitFor();
  expect(new URL(page.url()).searchParams.get("criterion")).toContain("1.1");
  expect(opened.faults).toEqual([]);
});

test("the search of specs has an address, and reports when nothing matches", async () => {
  await using opened = await open("/console/specs?q=sessions");
  await opened.page.getByRole("link", { name: /Open sessions/ }).waitFor();
  await opened.page.getByRole("textbox", { name: "Search specs" }).fill("nothing like it");
  await opened.page.keyboard.press("Enter");
  await opened.page.getByText("No spec matches").waitFor();
  expect(new URL(opened.page.url()).searchParams.get("q")).toBe("nothing like it");
});

test("the impact since a revision is drawn and listed with the reason of each edge, and an option of Git is refused", async () => {
  await using opened = await open("/console/specs/impact");
  const { page } = opened;
  await page.getByRole("button", { name: "Uncommitted changes" }).click();
  await page.getByTestId("graph").locator(".react-flow__node").first().waitFor();
  await page.getByRole("heading", { name: "Affected blocks" }).waitFor();
  const list = page.getByRole("region", { name: "The graph as a list" });
  for (const reason of ["names the file", "implements", "has a criterion that is named in"])
    await list.getByText(reason).first().waitFor();
  await expect.poll(() => violations(page)).toEqual([]);
  expect(opened.faults).toEqual([]);
  await page.getByRole("textbox", { name: /^Since/ }).fill("--output=x");
  await page.keyboard.press("Enter");
  await page
    .getByRole("alert")
    .getByText(/does not start with a dash/)
    .waitFor();
});

test("problems are filtered by severity, rule, framework and file, and lead to their lines", async () => {
  await using opened = await open("/console/specs/problems?path=.kiro/specs/hostile");
  const { page } = opened;
  const location = page.getByRole("link", { name: /hostile\/tasks\.md:\d/ });
  await location.waitFor();
  await page.getByRole("button", { name: /^Errors/ }).click();
  await page.getByText("None of this kind").waitFor();
  await page.getByRole("button", { name: /^Warnings/ }).click();
  await page.getByRole("combobox", { name: "Rule" }).selectOption("dangling-reference");
  await page.getByRole("combobox", { name: "Framework" }).selectOption("Kiro");
  await location.click();
  await page.locator("[data-marked]").getByText("7.7").waitFor();
  expect(new URL(page.url()).pathname).toBe("/console/files");
  expect(opened.faults).toEqual([]);
});

test("problems of OpenSpec are filtered by its name", async () => {
  await using opened = await open("/console/specs/problems");
  const { page } = opened;
  await page.getByRole("combobox", { name: "Framework" }).selectOption("OpenSpec");
  await page.getByRole("link", { name: "openspec/specs/cart/spec.md:1" }).waitFor();
  expect(new URL(page.url()).searchParams.get("framework")).toBe("custom");
});

test("tools are shown side by side with what each reads for a file, and a rule shows what a conversion loses", async () => {
  await using opened = await open("/console/guidelines");
  const { page } = opened;
  const own = page.getByRole("listitem").filter({ hasText: "CLAUDE.local.md" });
  await own.getByText("not in Git").waitFor();
  await page.getByRole("link", { name: "For a file" }).click();
  await page.getByRole("textbox", { name: /^A file/ }).fill("src/login.ts");
  await page.keyboard.press("Enter");
  await page.getByText("matches src/**/*.ts").first().waitFor();
  await expect.poll(() => page.getByRole("heading", { name: "Claude Code" }).count()).toBe(1);
  // Tools without a file of their own in this repository are behind a button.
  expect(await page.getByRole("heading", { name: "Gemini CLI" }).count()).toBe(0);
  await page.getByRole("button", { name: "Show them" }).click();
  await page.getByRole("heading", { name: "Gemini CLI" }).waitFor();
  await page.getByRole("link", { name: "Style" }).first().click();
  await page.getByRole("button", { name: "Claude Code" }).click();
  await page.getByText("cannot be limited").waitFor();
  expect(opened.faults).toEqual([]);
});

test("a finding in the rules shows its column, its fix and its ignore entry, and a rule without findings says so", async () => {
  await using opened = await open("/console/guidelines/lint");
  const { page } = opened;
  const [finding] = (await served.send("/api/guidelines/lint")).body.diagnostics.filter(
    ({ fix }: Diagnostic) => fix !== undefined,
  );
  const { path, line, column, fix } = finding;
  const row = page.getByRole("listitem").filter({ hasText: `${path}:${line}:${column}` });
  await row.getByText(fix.text, { exact: true }).waitFor();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await row.getByRole("button", { name: "Copy ignore entry" }).click();
  await row.getByText("Copied").waitFor();
  expect(await page.evaluate("navigator.clipboard.readText()")).toBe(JSON.stringify(ignoreEntryFor(finding)));
  await expect.poll(() => violations(page)).toEqual([]);
  await page.goto(`${served.url}/console/guidelines/lint?rule=drift`);
  await page.getByText("None of this kind").waitFor();
  expect(opened.faults).toEqual([]);
});

const confirm = (page: Page): Promise<void> =>
  page
    .getByRole("dialog", { name: /^Write \d+ files?\?$/ })
    .getByRole("button", { name: "Write" })
    .click();

test("a sync shows what it writes for the ticked formats, and asks before it writes", async () => {
  await using opened = await open("/console/guidelines/sync?from=fw_c");
  const { page } = opened;
  const box = (name: string) => page.getByRole("checkbox", { name, exact: true });
  // The repository has rules for Cursor, and for no other tool.
  await expect.poll(() => box("Cursor").isChecked()).toBe(true);
  expect(await page.getByRole("checkbox", { checked: true }).count()).toBe(1);
  await box("Cline").check();
  await page.getByText(/^\.clinerules\//).waitFor();
  expect(new URL(page.url()).searchParams.get("to")).toBe("fw_b,cline");
  await box("Cursor").uncheck();
  await expect.poll(() => page.getByText(/^\.cursor\/rules\//).count()).toBe(0);
  await page.getByRole("button", { name: /^Write \d/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/^1 created: \.clinerules\//).waitFor();
  await expect.poll(() => violations(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await expect.poll(() => dialog.count()).toBe(0);
  await box("Cline").uncheck();
  await page.getByText("What should follow it?").waitFor();
  expect(existsSync(join(served.root, ".clinerules"))).toBe(false);
  expect(opened.faults).toEqual([]);
});

test("a sync writes the diff that the page shows, and a file that changes in the meantime is shown again first", async () => {
  await using opened = await open("/console/guidelines/sync");
  const { page } = opened;
  await page.getByRole("button", { name: "Claude Code" }).click();
  const changes = page.getByRole("group", { name: /^Change of / }).first();
  await changes.waitFor();
  const name = ((await changes.getAttribute("aria-label")) ?? "").replace("Change of ", "");
  const target = join(served.root, name);
  expect(existsSync(target)).toBe(false);
  const byHand = "# By hand, meanwhile\n";
  writeFileSync(target, byHand);
  await page.getByRole("button", { name: /^Write \d/ }).click();
  await confirm(page);
  const refusal = page.getByRole("alert").getByText("so nothing was written");
  await refusal.waitFor();
  expect(await refusal.textContent()).toContain(name);
  expect(readFileSync(target, "utf8")).toBe(byHand);
  rmSync(target);
  await page.reload();
  await page.getByRole("button", { name: /^Write \d/ }).click();
  await confirm(page);
  await page
    .getByRole("status")
    .getByText(/^Written: /)
    .waitFor();
  expect(existsSync(target)).toBe(true);
  // The browser itself logs the refusal.
  expect(opened.faults.filter((fault) => !fault.includes("409"))).toEqual([]);
});

test("a conversion is written from its preview, and replaces a person's file only if the user accepts its diff", async () => {
  const target = join(served.root, ".github/instructions/money.instructions.md");
  const { body } = await served.send("/api/guidelines?source=fw_c");
  const { id } = body.guidelines.find(({ title }: { title: string }) => title === "Money");
  await using opened = await open(`/console/guidelines/${id}`);
  const { page } = opened;
  await page.getByRole("button", { name: "GitHub Copilot" }).click();
  const write = page.getByRole("button", { name: /^Write this/ });
  await write.click();
  await page.getByText("Written: .github/instructions/money.instructions.md").waitFor();
  const written = readFileSync(target, "utf8");
  expect(written).toContain("whole cents");
  expect(await page.getByText("unchanged", { exact: true }).count()).toBe(1);

  writeFileSync(target, "# Mine\n");
  await page.reload();
  await page.getByRole("button", { name: "GitHub Copilot" }).click();
  await page
    .getByRole("group", { name: /^Change of/ })
    .getByText("# Mine")
    .waitFor();
  expect(await write.isDisabled()).toBe(true);
  await page.getByLabel(/^Replace what is in/).check();
  writeFileSync(target, "# Mine, again\n");
  await write.click();
  await page.getByRole("alert").getByText("so nothing was written").waitFor();
  expect(readFileSync(target, "utf8")).toBe("# Mine, again\n");
  await page
    .getByRole("group", { name: /^Change of/ })
    .getByText("# Mine, again")
    .waitFor();
  // The file no longer has the text that the user agreed to replace, so the page asks again.
  expect(await write.isDisabled()).toBe(true);
  await page.getByLabel(/^Replace what is in/).check();
  await write.click();
  await page.getByText("Written: .github/instructions/money.instructions.md").waitFor();
  expect(readFileSync(target, "utf8")).toBe(written);
  expect(await violations(page)).toEqual([]);
  expect(opened.faults.filter((fault) => !fault.includes("409"))).toEqual([]);
});

const addresses = [
  "/console/specs",
  "/console/specs/criteria",
  "/console/specs/impact",
  "/console/specs/problems",
  "/console/specs/stale",
  "/console/files?path=.kiro/specs/hostile/design.md",
  "/console/guidelines",
  "/console/guidelines/explain?file=src/login.ts",
  "/console/guidelines/lint",
  "/console/guidelines/sync?from=fw_c",
];

campaignTest("screens show hostile text, fit a phone and a large screen, and are accessible", async () => {
  await using opened = await open("/console/specs", 390);
  const { page } = opened;
  for (const path of addresses) {
    await page.goto(`${served.url}${path}`);
    await page.waitForLoadState("networkidle");
    expect(await page.evaluate(() => "harmed" in globalThis)).toBe(false);
    await checkWidths(opened, path);
  }
});

test.each(["requirements", "design"])("hostile %s are shown as text on their screen", async (name) => {
  const { body } = await served.send(`/api/specs?path=.kiro/specs/hostile/${name}.md`);
  await using opened = await open(`/console/specs/${encodeURIComponent(body.specs[0].id)}`, 390);
  const { page } = opened;
  await page
    .getByText(name === "design" ? "https://example.com/x" : "onerror")
    .first()
    .waitFor();
  expect(await page.evaluate(() => "harmed" in globalThis)).toBe(false);
  await checkWidths(opened, name);
  if (name === "requirements") return;
  // The links of the text lead to files of the repository, or nowhere.
  const links = page.locator(".markdown a");
  await expect
    .poll(() => links.evaluateAll((all) => all.map((link) => link.getAttribute("href"))))
    .toEqual([expect.stringMatching(/^\/console\/files\?path=/)]);
});
