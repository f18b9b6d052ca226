/** Tests the lists of work and the inbox in a real browser: search, filters, counts, pages, and changes of many at once. */
import { beforeAll, expect, test } from "vitest";
import { serveForTests } from "../../../src/server/testing/serve-for-tests.ts";
import { browserForTests } from "../browser-for-tests.ts";
import { openScreen, violations } from "./open-console.ts";

const files: Readonly<Record<string, string>> = {
  "src/workflows/deploy.ts": `export async function run(ctx) {
  await ctx.step("migrate", () => { throw new TypeError("The table orders is locked"); });
}
`,
  "src/workflows/release.ts": `export const run = async (ctx) => ({
  given: await ctx.waitFor("go ahead", { schema: {
    type: "object", properties: { approved: { type: "boolean" } }, required: ["approved"],
  } }),
});
`,
};
const runs = 120;

const browser = browserForTests();
const served = serveForTests({ files });
beforeAll(async () => {
  for (let number = 0; number < runs; number += 1)
    await served.send("/workflows/deploy", { body: { region: number === 7 ? "the seventh" : "eu" } });
  await served.send("/workflows/deploy?wait=result", { body: { region: "last" } });
  await served.send("/workflows/release", { body: { version: "2.0" } });
}, 120_000);

const open = (path: string, width?: number) => openScreen(browser, { url: served.url, path, width });

test("runs are counted, searched, loaded as one scrolls, and retried all at once after a question", async () => {
  await using opened = await open("/console/runs?status=failed");
  const { page } = opened;
  await page.getByText(`${runs + 1} runs`, { exact: true }).waitFor();
  const rows = page.getByRole("group", { name: "Runs" });
  await rows.evaluate((one) => one.scrollTo(0, 1_000_000));
  await expect.poll(() => rows.evaluate((one) => one.scrollHeight)).toBeGreaterThan(runs * 50);
  await page.getByLabel("Search runs").fill("the seventh");
  await page.keyboard.press("Enter");
  await page.getByText("1 run", { exact: true }).waitFor();
  await rows.getByText(/region: the seventh/).waitFor();
  await expect.poll(() => violations(page)).toEqual([]);
  await page.getByRole("button", { name: "Retry 1 failed runs" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Retry", exact: true }).click();
  await page.getByText("1 retried").waitFor();
  expect(opened.faults).toEqual([]);
});

test("a run that asks yes or no is in the inbox and in the badge, and two buttons answer it", async () => {
  await using opened = await open("/");
  const { page } = opened;
  await page.getByRole("link", { name: /Waiting for you 1/ }).click();
  await page.getByText("1 decision waits").waitFor();
  await expect.poll(() => violations(page)).toEqual([]);
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("Nothing waits for you").waitFor();
  await expect
    .poll(async () => (await served.send("/runs?workflow=release")).body.runs[0].result)
    .toEqual({ given: { approved: true } });
  expect(opened.faults).toEqual([]);
});
