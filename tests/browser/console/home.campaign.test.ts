/** Tests Home and the lists of work in a real browser: what waits, what failed, what the repository lacks, and where it is mended. */
import { beforeAll, expect, test } from "vitest";
import { serveForTests } from "../../../src/server/testing/serve-for-tests.ts";
import { browserForTests } from "../browser-for-tests.ts";
import { openScreen, violations } from "./open-console.ts";

const files: Readonly<Record<string, string>> = {
  "CLAUDE.md": "# Rules\n\n## Money\n\nAmounts are whole cents.\n",
  ".kiro/specs/cart/requirements.md":
    "# Requirements\n\n### Requirement 1: Totals\n\n#### Acceptance Criteria\n\n1. **WHEN** a cart has lines THEN the shop SHALL add their `cents`\n",
  ".kiro/specs/cart/tasks.md": "# Tasks\n\n- [ ] 1. Round once\n  - _Requirements: 2.4_\n",
  "src/workflows/deploy.ts": `export async function run(ctx) {
  await ctx.step("migrate", () => { throw new TypeError("The table orders is locked"); });
}
`,
  "src/workflows/release.ts": `export const run = async (ctx) => { await ctx.waitFor("go ahead"); };
`,
  "src/workflows/resting.ts": `export const run = async (ctx) => { await ctx.sleep(172_800_000); };
`,
};

const browser = browserForTests();
let failedRun = "";
const served = serveForTests({ files });
beforeAll(async () => {
  await served.send("/agents/echo/broken", { body: { message: "fail" } });
  for (const workflow of ["release", "resting"]) await served.send(`/workflows/${workflow}`, { body: {} });
  await served.send("/workflows/deploy?wait=result", { body: { region: "eu" } });
  failedRun = (await served.send("/runs?workflow=deploy")).body.runs[0].run_id;
}, 120_000);

const open = (path: string, width?: number) => openScreen(browser, { url: served.url, path, width });

test("Home answers a path with its rules, and leads to what waits, what failed and what the repository lacks", async () => {
  await using opened = await open("/");
  const { page } = opened;
  await page.getByLabel("A file, such as").fill("src/cart/total.ts");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "Money" }).waitFor();
  await page.getByText("1 rule applies").waitFor();
  expect(await page.getByRole("link", { name: "CLAUDE.md:3" }).getAttribute("href")).toMatch(/line=.*3/);
  const waiting = page.locator("section").filter({ hasText: "Waiting for you" });
  await waiting.getByRole("link", { name: /release.*go ahead/ }).waitFor();
  const failed = page
    .locator("section")
    .filter({ has: page.getByRole("heading", { name: "Failed", exact: true }) });
  await failed.getByRole("link", { name: "1 run", exact: true }).waitFor();
  await failed.getByText("The table orders is locked").waitFor();
  // The words of the provider, not kit's sentence about it.
  await failed.getByText("the provider is down", { exact: true }).waitFor();
  await failed.getByText(`…${failedRun.slice(-6)} · region: eu`).waitFor();
  // The criterion by name, without the marks of Markdown; the number of problems and the screen's agree.
  await page
    .getByRole("link", { name: "WHEN a cart has lines THEN the shop SHALL add their cents" })
    .waitFor();
  const lines = page.getByRole("listitem").filter({ hasText: "Problems of specs" });
  await expect.poll(() => lines.textContent()).toContain("1 warning");
  expect(await page.locator("main").textContent()).not.toMatch(/kit [a-z]/);
  await expect.poll(() => violations(page)).toEqual([]);
  await lines.getByRole("link").click();
  await page.getByText("1 problem", { exact: true }).waitFor();
  expect(opened.faults).toEqual([]);
});

test("nothing on Home moves on a phone while its parts arrive one after the other", async () => {
  const context = await browser.newContext({ viewport: { width: 390, height: 800 } });
  const page = await context.newPage();
  await page.addInitScript(`globalThis.shifted = 0; new PerformanceObserver((list) => {
    for (const { value } of list.getEntries()) shifted += value;
  }).observe({ type: "layout-shift", buffered: true });`);
  // The answers about the repository come first, those about work after them.
  await page.route(/\/(?:runs|sessions|dispatches)\?|\/waiting/, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await route.continue();
  });
  await page.goto(served.url);
  await page.getByRole("heading", { name: "Conversations" }).waitFor();
  await page.getByRole("heading", { name: "The repository" }).waitFor();
  expect(await page.evaluate("shifted")).toBeLessThan(0.1);
  await context.close();
});

test("rows of runs say what tells them apart; the page of a failed one says why once, with a link to the line", async () => {
  await using opened = await open("/console/runs", 390);
  const { page } = opened;
  await page.getByText(/sleeps until .*, in 2 days/).waitFor();
  await page.getByText("waits for go ahead").waitFor();
  await page.getByRole("link", { name: /deploy.*region: eu/ }).click();
  await page.getByRole("link", { name: "src/workflows/deploy.ts:2" }).waitFor();
  await page.getByText("migrate", { exact: true }).waitFor();
  expect(await page.getByText("The table orders is locked").count()).toBe(1);
  await page.getByRole("link", { name: "src/workflows/deploy.ts:2" }).click();
  await page.getByText('ctx.step("migrate"').waitFor();
  expect(opened.faults).toEqual([]);
});

test("a workflow is chosen from those that there are, and a required choice is not sent empty", async () => {
  await using opened = await open("/console/runs");
  const { page } = opened;
  await page.getByRole("button", { name: "Run a workflow" }).click();
  const dialog = page.getByRole("dialog", { name: "Run a workflow" });
  expect(await dialog.getByLabel("Workflow").locator("option").allTextContents()).not.toContain("all");
});
