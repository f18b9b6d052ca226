/** Tests the frame of the console in a real browser: the first paint, titles, keys, sign-in and the sizes of links. */
import type { Page } from "playwright-core";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { serveForTest, serveForTests } from "../../../src/server/testing/serve-for-tests.ts";
import { isCampaign } from "../../../src/testing/campaign.suite.ts";
import { browserForTests } from "../browser-for-tests.ts";
import { openScreen, violations } from "./open-console.ts";

const files: Readonly<Record<string, string>> = {
  "CLAUDE.md": "# Rules\n\n## Money\n\nAmounts are whole cents.\n",
  ".kiro/specs/cart/requirements.md":
    "# Requirements\n\n### Requirement 1: Totals\n\n#### Acceptance Criteria\n\n1. WHEN a cart has lines THEN the shop SHALL add their cents\n",
  "src/workflows/nightly.ts": "export const run = async () => 1;\n",
};
const screens = [
  "/",
  "/console/approvals",
  "/console/agents",
  "/console/runs",
  "/console/schedules",
  "/console/deliveries",
  "/console/dispatches",
  "/console/specs",
  "/console/specs/criteria",
  "/console/specs/impact",
  "/console/specs/problems",
  "/console/specs/stale",
  "/console/guidelines",
  "/console/guidelines/explain",
  "/console/guidelines/lint",
  "/console/guidelines/sync",
  "/console/cluster",
  "/console/server",
];

const browser = browserForTests();
const served = serveForTests({ files });
beforeAll(async () => {
  await served.send("/workflows/nightly", { body: {} });
}, 60_000);

const open = (path: string, width?: number) => openScreen(browser, { url: served.url, path, width });
const heading = (page: Page, name: string) => page.getByRole("heading", { name, level: 1 }).waitFor();

test("the frame of the page is drawn before its script and its styles have arrived", async () => {
  const page = await browser.newPage({ viewport: { width: 1_280, height: 800 } });
  try {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route(/\/assets\//, async (route) => {
      await released;
      await route.continue();
    });
    await page.goto(`${served.url}/`, { waitUntil: "commit" });
    await expect
      .poll(() => page.evaluate("performance.getEntriesByName('first-contentful-paint').length"))
      .toBe(1);
    const frame = page.locator(".frame");
    expect(await frame.locator("> div").evaluateAll((parts) => parts.length)).toBe(3);
    const before = await frame.locator("> div").nth(1).boundingBox();
    release();
    await heading(page, "Home");
    expect(await frame.count()).toBe(0);
    // The header of the screen takes the place of the frame's.
    expect(await page.locator("main header").boundingBox()).toMatchObject({ x: before?.x, y: before?.y });
  } finally {
    await page.close();
  }
});

test("Home loads one script and one stylesheet", async () => {
  const page = await browser.newPage();
  onTestFinished(() => page.close());
  const loaded: string[] = [];
  page.on("request", (request) => loaded.push(new URL(request.url()).pathname));
  await page.goto(`${served.url}/`);
  await page.getByText("workflows", { exact: true }).waitFor();
  expect(loaded.filter((path) => /\.(?:js|css)$/.test(path))).toHaveLength(2);
  expect(loaded.length).toBeLessThan(20);
});

test("keys open screens, the search field, the finder and the list of keys; in a field they are letters", async () => {
  await using opened = await open("/");
  const { page } = opened;
  await heading(page, "Home");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).getByText("Guidelines").waitFor();
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await heading(page, "Specs");
  await page.keyboard.press("/");
  await page.keyboard.type("g a ?");
  expect(await page.getByLabel("Search specs").inputValue()).toBe("g a ?");
  expect(page.url()).toContain("/console/specs");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Find a screen" }).fill("src/app.ts");
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press("Enter");
  await heading(page, "What applies to a file");
  expect(page.url()).toContain("file=src%2Fapp.ts");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("run");
  await page.keyboard.press("Enter");
  await heading(page, "Runs");
  expect(opened.faults).toEqual([]);
});

test("a missing screen has a way home, and the menu of a narrow window leads to every screen", async () => {
  await using opened = await open("/console/nothing-here", 390);
  const { page } = opened;
  await page.getByRole("link", { name: "Home" }).click();
  await heading(page, "Home");
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("dialog", { name: "Menu" }).getByRole("link", { name: "Guidelines" }).click();
  await heading(page, "Guidelines");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Menu" }).click();
  await page.mouse.click(370, 400);
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

test("on every screen the title has the same place, and a finger can hit the links and buttons", async () => {
  await using opened = await open("/", 390);
  const { page } = opened;
  const positions = new Set<string>();
  for (const path of screens.filter((_, index) => isCampaign || index % 3 === 0)) {
    await page.goto(`${served.url}${path}`);
    const title = page.getByRole("heading", { level: 1 });
    await title.waitFor();
    // Screens below others begin with the names of those.
    const box = await page.getByRole("navigation", { name: "Where you are" }).boundingBox();
    positions.add(`${box?.x} ${await title.evaluate((one) => one.getBoundingClientRect().top)}`);
    await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
    const small = await page
      .locator("main :is(a, button, select, summary):visible")
      .evaluateAll((all) =>
        all
          .filter((one) => one.getBoundingClientRect().height < 24)
          .map((one) => `${one.textContent} ${one.getBoundingClientRect().height}`),
      );
    expect([path, small]).toEqual([path, []]);
  }
  expect([...positions]).toHaveLength(1);
});

test("the field of the key has the focus", async () => {
  const locked = await serveForTest({ files, access: { apiKeys: ["key-of-the-console"] } });
  await using opened = await openScreen(browser, { url: locked.url, path: "/" });
  await opened.page.getByRole("heading", { name: "Sign in" }).waitFor();
  await opened.page.keyboard.type("key-of-the-console");
  await opened.page.keyboard.press("Enter");
  await heading(opened.page, "Home");
});
