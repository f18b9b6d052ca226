/** Tests traces and forks in a real browser, against a server in this process. */
import { beforeAll, expect, test } from "vitest";
import { serveForTests } from "../../../src/server/testing/serve-for-tests.ts";
import { campaignTest } from "../../../src/testing/campaign.suite.ts";
import { browserForTests } from "../browser-for-tests.ts";
import { checkWidths, type OpenedScreen, openScreen, violations } from "./open-console.ts";

const hostile = `<img src=x onerror="window.harmed = true"><script>window.harmed = true</script> \u202egnp`;

const browser = browserForTests();
let refuses: string | undefined;
const served = serveForTests({
  files: {
    "CLAUDE.md": null,
    "AGENTS.md": `# Rules\n\nAmounts are whole cents. ${hostile}\n`,
    "src/agents/brief.ts": `export const triggers = { webhook: true };\nexport default { kind: "kit.agent", describe: async () => ({ compaction: { contextWindowTokens: 102, reserveTokens: 100, keepRecentTokens: 1 } }) };\n`,
  },
  authorize: ({ action }) => action !== refuses,
});
beforeAll(async () => {
  for (const message of ["First.", `Second. ${hostile}`])
    for (const path of ["/agents/echo/told", "/agents/brief/long"])
      await served.send(path, { body: { message } });
}, 60_000);

const open = (path: string, width?: number): Promise<OpenedScreen> =>
  openScreen(browser, { url: served.url, path, width });

test("a turn opens its exact prompt, answer, tools and settings", async () => {
  await using opened = await open("/console/agents/echo/told/trace");
  const { page } = opened;
  await page.getByText("AGENTS.md:1").waitFor();
  await page.getByRole("button", { name: /^Prompt/ }).click();
  await page
    .getByRole("region", { name: "message 1, system" })
    .getByText("Amounts are whole cents.")
    .waitFor();
  await page.getByRole("region", { name: "message 3, assistant" }).getByText("First.").waitFor();
  await page.getByRole("button", { name: "Answer" }).click();
  await page.getByText("It ended with: stop.").waitFor();
  await page.getByRole("button", { name: /^Tools/ }).click();
  await page.getByText("read", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Settings" }).click();
  expect(await page.evaluate(() => "harmed" in globalThis)).toBe(false);
  expect(opened.faults).toEqual([]);
});

test("a turn of a compaction opens its prompt and answer", async () => {
  await using opened = await open("/console/agents/brief/long/trace");
  const { page } = opened;
  await page
    .getByRole("button", { name: /, summary/ })
    .first()
    .click();
  const message = page.getByRole("region", { name: "message 2, user" });
  await message.getByText("Summarize the conversation above").waitFor();
  await page.getByRole("button", { name: "Answer" }).click();
  await page.getByRole("region", { name: "assistant" }).getByText("[user] First.").waitFor();
  await page.getByRole("button", { name: /^In the model's context/ }).click();
  await page.getByText("the model was shown the conversation, and no rules").waitFor();
  expect(opened.faults).toEqual([]);
});

test("a turn is forked without a rule, with the keyboard alone, and compared with its origin", async () => {
  await using opened = await open("/console/agents/echo/told/trace");
  const { page } = opened;
  await page.getByRole("button", { name: "Fork", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByLabel("Name of the new session").focus();
  await page.keyboard.type("free");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await page.getByRole("button", { name: "Fork and compare" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("fork of default").waitFor();
  await page.getByText("Both answers are identical.").waitFor();
  await page.getByText("left only").waitFor();
  await page.getByText("AGENTS.md:1").waitFor();
  expect(new URL(page.url()).pathname).toBe("/console/agents/echo/told/compare");
  await expect.poll(() => violations(page)).toEqual([]);
  expect(opened.faults).toEqual([]);
});

test("a caller without the right to leave out rules sees the refusal, and nothing is forked", async () => {
  await served.send("/agents/echo/kept", { body: { message: "First." } });
  refuses = "agent.omit_rules";
  try {
    await using opened = await open("/console/agents/echo/kept/trace");
    const { page } = opened;
    await page.getByRole("button", { name: "Fork", exact: true }).click();
    await page.getByRole("checkbox").first().check();
    await page.getByRole("button", { name: "Fork and compare" }).click();
    await page
      .getByRole("alert")
      .getByText(/does not allow|may not/i)
      .waitFor();
  } finally {
    refuses = undefined;
  }
});

test("a caller without the right to read an agent sees the refusal instead of its trace", async () => {
  refuses = "agent.read";
  try {
    await using opened = await open("/console/agents/echo/told/trace");
    await opened.page.getByText("You are not allowed to see this").waitFor();
  } finally {
    refuses = undefined;
  }
});

campaignTest("a trace and a comparison fit a phone and a wide screen, and are accessible", async () => {
  const [one, other] = (await served.send("/agents/echo/told/operations")).body.operations;
  const paths = [
    "/console/agents/echo/told/trace",
    `/console/agents/echo/told/compare?left=${other.operation_id}&right=${one.operation_id}`,
    "/console/agents/echo/told/compare",
  ];
  for (const path of paths) {
    await using opened = await open(path, 390);
    await opened.page.waitForLoadState("networkidle");
    await checkWidths(opened, path);
  }
});
