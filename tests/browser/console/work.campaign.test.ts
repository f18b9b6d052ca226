/** Tests approvals and runs in a real browser, against a server in this process. */
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { serveForTests } from "../../../src/server/testing/serve-for-tests.ts";
import { webhookSecrets } from "../../../src/server/testing/service-files.ts";
import { campaignTest } from "../../../src/testing/campaign.suite.ts";
import { browserForTests } from "../browser-for-tests.ts";
import { checkWidths, isTooWide, type OpenedScreen, openScreen, violations } from "./open-console.ts";

const hostile = `<img src=x onerror="window.harmed = true"> \u202egnp`;

const files: Readonly<Record<string, string>> = {
  "kit.toml": '# Ours\n[agent.approvals]\ntools = ["pay"]\n',
  "src/agents/clerk.ts": `const pay = {
  name: "pay",
  description: "Pays an amount.",
  input: { type: "object", properties: { cents: { type: "integer" } } },
  execute: ({ cents }) => "Paid " + cents,
};
export const triggers = { webhook: true };
export default { kind: "kit.agent", describe: async () => ({ tools: [pay] }) };
`,
  "CLAUDE.md": "# Rules\n\n## Money\n\nAmounts are whole cents.\n",
  "ledger.md": "one\ntwo\nthree\n",
  "src/agents/payer.ts": `const pay = {
  name: "pay",
  description: "Pays an amount.",
  input: { type: "object", properties: {
    cents: { type: "integer", minimum: 1, description: ${JSON.stringify(hostile)} },
    currency: { enum: ["EUR", "USD"] },
    tags: { type: "array", items: { type: "string" } },
    to: { type: "object", properties: { name: { type: "string" } } },
    extra: { oneOf: [{ type: "string" }, { type: "integer" }] },
  }, required: ["cents"] },
  needsApproval: true,
  editableArguments: true,
  touches: () => ["ledger.md"],
  execute: (args) => "Paid " + JSON.stringify(args),
};
export const triggers = { webhook: true };
export default { kind: "kit.agent", describe: async () => ({ tools: [pay] }) };
`,
  "src/workflows/ordered.ts": `export const payload = {
  type: "object",
  properties: { orders: { type: "integer" }, kind: { enum: ["all", "open"] }, deep: { type: "boolean" } },
  required: ["orders"],
};
export const schedule = { cron: "0 3 * * *", payload: { orders: 1 } };
export async function run(ctx) {
  await ctx.step("read ${hostile.replace(/"/g, "'").replace(/`/g, "")}", () => ({ orders: ctx.payload.orders }));
  await ctx.sleep(1);
  const { version } = await ctx.waitFor("go ahead", { schema: {
    type: "object", properties: { version: { type: "string" } }, required: ["version"],
  } });
  return { released: version, ...ctx.payload };
}
`,
};

const browser = browserForTests();
let refuses: string | undefined;
const served = serveForTests({ files, authorize: ({ action }) => action !== refuses });
beforeAll(async () => {
  await served.send("/webhooks/github", { body: { zen: "x" } });
}, 60_000);

const open = (path: string, width?: number): Promise<OpenedScreen> =>
  openScreen(browser, { url: served.url, path, width });

test("a call is approved with other arguments, next to the rules for the file that it touches", async () => {
  const { body } = await served.send("/agents/payer/a/dispatch", { body: { input: "pay 5" } });
  await using opened = await open("/console/approvals");
  const { page } = opened;
  await page.getByText("ledger.md").waitFor();
  await page.getByRole("link", { name: "Money" }).waitFor();
  await page.getByRole("button", { name: "Change the arguments" }).click();
  await page.getByLabel("cents").fill("7");
  await page.getByLabel("currency").selectOption("USD");
  await page.getByRole("button", { name: "Add tags" }).click();
  await page.getByRole("textbox", { name: "tags 1" }).fill("late");
  await page.getByLabel("name", { exact: true }).fill("Ada");
  await page.getByLabel("extra").fill("3");
  await expect.poll(() => violations(page)).toEqual([]);
  await page.getByRole("button", { name: "Approve with these" }).click();
  await page.getByText("Nothing waits for you").waitFor();
  await served.service.engine.awaitDispatch(body.dispatch_id);
  const { messages } = (await served.send("/agents/payer/a/history")).body;
  const { text } = messages.find(({ role }: { role: string }) => role === "tool").content[0].content[0];
  expect(text).toContain('Paid {"cents":7,"currency":"USD","tags":["late"],"to":{"name":"Ada"},"extra":3}');
  expect(await page.evaluate(() => "harmed" in globalThis)).toBe(false);
  expect(opened.faults).toEqual([]);
});

test("a call is always allowed by a rule that is shown first; if no rule can allow it, the page does not offer one", async () => {
  const { body } = await served.send("/agents/clerk/a/dispatch", { body: { input: "pay 5" } });
  await using opened = await open("/console/approvals", 390);
  const { page } = opened;
  await page.getByRole("button", { name: "Always allow…" }).click();
  await page.getByRole("group", { name: "The rule" }).getByText('args = "{\\"cents\\":5}"').waitFor();
  await page.getByLabel("Every call of pay, whatever its arguments, by the agent clerk").check();
  await expect.poll(() => page.getByRole("group", { name: "The rule" }).textContent()).not.toContain("args");
  await expect.poll(async () => [await violations(page), await isTooWide(page)]).toEqual([[], false]);
  await page.getByRole("button", { name: "Write the rule and approve" }).click();
  await page.getByText("Nothing waits for you").waitFor();
  await served.service.engine.awaitDispatch(body.dispatch_id);
  expect(readFileSync(join(served.root, "kit.toml"), "utf8")).toBe(
    `${files["kit.toml"]}\n[[agent.approvals.allow]]\ntool = "pay"\nagent = "clerk"\n`,
  );
  expect((await served.send("/agents/clerk/b", { body: { message: "pay 6" } })).body.result.text).toBe(
    "It is done.",
  );
  const other = (await served.send("/agents/payer/c/dispatch", { body: { input: "pay 5" } })).body;
  await page.getByRole("button", { name: "Deny" }).waitFor();
  expect(await page.getByRole("button", { name: "Always allow…" }).count()).toBe(0);
  await page.getByRole("button", { name: "Deny" }).click();
  await served.service.engine.awaitDispatch(other.dispatch_id);
  expect(opened.faults).toEqual([]);
});

test("a dispatch whose call waits for a decision says so in the list and on its page, until a person decides", async () => {
  const { body } = await served.send("/agents/payer/waiting/dispatch", { body: { input: "pay 8" } });
  await using opened = await open("/console/dispatches?q=waiting");
  const { page } = opened;
  const row = page.getByRole("link", { name: /pay 8/ });
  await row.getByText("waiting for you").waitFor();
  await row.click();
  await page.getByText("waiting for you", { exact: true }).waitFor();
  await page.goto(`${served.url}/console/approvals`);
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await served.service.engine.awaitDispatch(body.dispatch_id);
  await page.goto(`${served.url}/console/dispatches?q=waiting`);
  await row.getByText("completed").waitFor();
  expect(opened.faults).toEqual([]);
});

test("a caller without the right to read an agent sees none of its calls", async () => {
  await served.send("/agents/payer/b/dispatch", { body: { input: "pay 6" } });
  refuses = "agent.read";
  try {
    await using opened = await open("/console/approvals");
    await opened.page.getByText("Nothing waits for you").waitFor();
  } finally {
    refuses = undefined;
  }
});

test("a run is started with a form, shows its journal, and gets its signal from a form", async () => {
  await using opened = await open("/console/schedules");
  const { page } = opened;
  await page.getByText("0 3 * * *").waitFor();
  await page.getByRole("button", { name: "Run now" }).click();
  await page.getByLabel("orders").fill("12");
  await page.getByLabel("kind").selectOption("open");
  await page.getByLabel("deep").check();
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByRole("button", { name: "Send the signal" }).click();
  await page.getByLabel("version").fill("2.0");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText('"released": "2.0"').waitFor();
  const journal = page.getByRole("list").filter({ hasText: "sleep" });
  await journal.getByText("read <img").click();
  await journal.getByText('"orders": 12').waitFor();
  await journal.getByText("go ahead").waitFor();
  await expect.poll(() => violations(page)).toEqual([]);
  expect(await page.evaluate(() => "harmed" in globalThis)).toBe(false);
  expect(opened.faults).toEqual([]);
});

test("deliveries are listed with the reasons of refusals, and with links to the work that they started and back", async () => {
  const { service } = served;
  const cause = { type: "webhook", webhook: "github", delivery_id: "gone" } as const;
  const { run_id } = await service.engine.startRun({ workflow: "ordered", payload: { orders: 1 }, cause });
  const body = JSON.stringify({ zen: "y" });
  const signature = createHmac("sha256", webhookSecrets.github).update(body).digest("hex");
  await fetch(`${served.url}/webhooks/github`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-hub-signature-256": `sha256=${signature}` },
    body,
  });
  await using opened = await open("/console/deliveries");
  const { page } = opened;
  await page.getByText("invalid_signature").waitFor();
  await page.getByRole("link", { name: /^dispatch_/ }).click();
  await page.getByRole("link", { name: "a delivery of github" }).click();
  await page.getByRole("link", { name: /^dispatch_/ }).waitFor();
  await expect.poll(() => page.getByText("invalid_signature").count()).toBe(0);
  await page.goto(`${served.url}/console/runs/${run_id}`);
  await page.getByRole("link", { name: "a delivery of github" }).click();
  await page.getByText("The record of this delivery was deleted").waitFor();
  await page.getByRole("link", { name: "All deliveries" }).click();
  await page.getByLabel("Outcome").selectOption("accepted");
  await page.getByRole("link", { name: /^dispatch_/ }).waitFor();
  expect(await page.getByText("invalid_signature").count()).toBe(0);
  await page.getByLabel("Outcome").selectOption("failed");
  await page.getByText("No delivery matches").waitFor();
  await page.getByLabel("Outcome").selectOption("refused");
  await page.getByText("invalid_signature").waitFor();
  expect(await violations(page)).toEqual([]);
  expect(opened.faults).toEqual([]);
});

const addresses = [
  "/console/approvals",
  "/console/schedules",
  "/console/deliveries",
  "/console/runs",
  "/console/dispatches",
  "/console/cluster",
  "/console/server",
  "/",
];

campaignTest("the screens of work fit a phone and a wide screen, and are accessible", async () => {
  const [run] = (await served.send("/runs")).body.runs;
  const paths = [`/console/runs/${run.run_id}`, ...addresses];
  for (const path of paths) {
    await using opened = await open(path, 390);
    await opened.page.locator("h1").waitFor();
    await opened.page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
    await checkWidths(opened, path);
  }
});
