/** Tests the console as people use it: with a real browser, a real `kit start`, and a model that follows a script. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { browserOrSkip } from "../browser-for-tests.ts";
import { type Demo, startDemo } from "./demo-project.ts";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
declare global {
  // The global of axe's script, and the one that hostile text would set.
  var axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
  var hacked: unknown;
}

let demo: Demo;
const browser = browserOrSkip();
let context: BrowserContext;
let page: Page;
let faults: string[];

beforeAll(async () => {
  demo = await startDemo();
});
afterAll(() => demo[Symbol.asyncDispose]());
beforeEach(() => newPage());
afterEach(() => context?.close());

async function newPage(width = 1280): Promise<void> {
  await context?.close();
  context = await browser().newContext({
    locale: "en-US",
    viewport: { width, height: 800 },
    bypassCSP: false,
  });
  context.setDefaultTimeout(45_000);
  page = await context.newPage();
  faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith("http://127.0.0.1:") && !request.url().startsWith("data:"))
      faults.push(request.url());
  });
}

const open = (path: string) => page.goto(`${demo.kit.url}${path}`);
const print = async (text: string): Promise<void> => {
  await page.getByLabel("Message to mender").fill(text);
  await page.keyboard.press("Enter");
};
const conversation = () => page.getByRole("region", { name: "Conversation" });

describe("an agent", () => {
  test("answers in the page: reasoning, calls with their changes, Markdown, and how it ended", async () => {
    await open("/console/agents/mender/mend");
    await page.getByText("Nothing was said to mender here yet").waitFor();
    await print("Please mend the total.");
    await page.getByText("tokens").waitFor();
    await page
      .getByRole("group", { name: "Change of total.ts" })
      .getByText("removed: return Math.round(sum);")
      .waitFor();
    await expect.poll(() => conversation().locator("td").allTextContents()).toContain("5997");
    await expect.poll(() => conversation().locator("strong").textContent()).toBe("once per line");
    await page.getByRole("button", { name: "Thought" }).click();
    await page.getByText("the sum is rounded twice").waitFor();
    expect(faults).toEqual([]);
  });

  test("is stopped, and the page shows that", async () => {
    await open("/console/agents/mender/stop");
    await print("count");
    await page.getByText("w5 ").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Stopped", { exact: true }).waitFor();
  });

  test("continues after a reload in the middle, with each word once", async () => {
    await open("/console/agents/mender/reload");
    await print("count");
    await page.getByText("w20 ").waitFor();
    await page.reload();
    await page.getByText("w399").waitFor();
    expect(await wordsOf()).toEqual(Array.from({ length: 400 }, (_, at) => `w${at}`));
  });

  test("cannot run, load or imitate anything with its text", async () => {
    await open("/console/agents/mender/hostile");
    await print("hostile");
    await page.getByText("<script>globalThis.hacked").waitFor();
    await page.getByText("access [U+202E]resu[U+202C] granted").waitFor();
    await page.getByText("Done").waitFor();
    expect(await page.evaluate(() => globalThis.hacked)).toBeUndefined();
    await expect.poll(() => conversation().locator("script, iframe, img").count()).toBe(0);
    await expect.poll(() => conversation().locator('a[href^="javascript"]').count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test("writes a line of a megabyte, and the page still responds", async () => {
    await open("/console/agents/mender/long");
    await print("long line");
    await page.getByText("Done").waitFor();
    await print("Please mend the total.");
    await page.getByText("once per line").waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  });
});

async function wordsOf(): Promise<readonly string[]> {
  const text = await conversation().locator(".markdown").last().textContent();
  return text?.trim().split(/\s+/) ?? [];
}

test("an approval is announced in the tab's title and in the inbox, and is decided with the keyboard alone", async () => {
  await demo.send("/agents/mender/refund-1/dispatch", { input: "refund" });
  await open("/console/approvals");
  await page.getByText('"cents": 5997').waitFor();
  await expect.poll(() => page.title()).toMatch(/^\(1\) Waiting for you/);
  await page.getByLabel("Reason").focus();
  await page.keyboard.type("paid already");
  // Moves to "Deny".
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText("Nothing waits for you").waitFor();
  await open("/console/agents/mender/refund-1");
  await page.getByText("once per line").waitFor();
  await page
    .getByRole("button", { name: /refund/ })
    .first()
    .click();
  await page.getByText("paid already").first().waitFor();
});

test("a failed run shows why and where, and is run again with another payload", async () => {
  await demo.send("/workflows/broken", {});
  await open("/console/runs?status=failed");
  await page.getByText('The step "price list" failed.').first().click();
  await page.getByText("src/workflows/broken.ts:2").waitFor();
  await page.getByRole("button", { name: "Run again" }).click();
  await page.getByLabel("Payload (JSON)").fill("{oops");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("This is not JSON").waitFor();
  await page.getByLabel("Payload (JSON)").fill('{"orders": 4}');
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText('"orders": 4').waitFor();
});

test("a waiting run gets its signal, and continues", async () => {
  const { run_id } = (await demo.send("/workflows/release", {})) as { run_id: string };
  await open(`/console/runs/${run_id}`);
  await page.getByRole("button", { name: "Send the signal" }).click();
  await page.getByLabel("Payload (JSON)").fill('{"version": "2.0"}');
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText('"released": "2.0"').waitFor();
});

test("a trace shows the turns of an operation, and which rules were in the model's context", async () => {
  await demo.send("/agents/mender/traced", { message: "Mend it." });
  await open("/console/agents/mender/traced/trace");
  await page.getByText("In the model's context").waitFor();
  await page.getByText("AGENTS.md:1").waitFor();
  await page.getByRole("button", { name: /edit/ }).click();
  await page.getByText('"return sum;"').waitFor();
});

test("every screen fits 390 px and has no violation that axe finds, in light and dark mode", async () => {
  await demo.send("/agents/mender/looked-at", { message: "Mend it." });
  const paths = [
    "/",
    "/console/agents",
    "/console/agents/mender",
    "/console/agents/mender/looked-at",
    "/console/agents/mender/looked-at/trace",
    "/console/approvals",
    "/console/runs",
    "/console/dispatches",
    "/console/server",
    "/console/nowhere",
  ];
  for (const width of [1280, 390]) {
    await newPage(width);
    for (const path of paths) {
      await open(path);
      await page.locator("h1").waitFor();
      await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
      await page.emulateMedia({ colorScheme: width === 390 ? "dark" : "light" });
      await page.evaluate(axeSource);
      const violations = () =>
        page.evaluate(async () =>
          (await globalThis.axe.run()).violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`),
        );
      const scrollWidth = () => page.evaluate("document.documentElement.scrollWidth");
      // A list renders again a moment after its entries have arrived.
      await expect
        .poll(async () => [path, await violations(), await scrollWidth()])
        .toEqual([path, [], width]);
    }
  }
  expect(faults).toEqual([]);
});

test("a server with keys requires one, and a closed page forgets it unless the user chooses to keep it", async () => {
  await using locked = await startDemo({ KIT_API_KEYS: "open-sesame", KIT_CONSOLE: "read" });
  await page.goto(`${locked.kit.url}/console/agents`);
  await page.getByLabel("API key").fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("The server does not know this key.").waitFor();
  await page.getByLabel("API key").fill("open-sesame");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "mender" }).click();
  // With a read-only console, the page offers no action that changes something.
  await page.getByText("Read-only").waitFor();
  await expect.poll(() => page.getByRole("button", { name: "New conversation" }).count()).toBe(0);
  await page.reload();
  await page.getByLabel("API key").fill("open-sesame");
  await page.getByLabel("Keep the key").check();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "mender" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "mender" }).waitFor();
  expect(await page.evaluate(() => localStorage.length)).toBe(0);
});

// This test is the last, because the next server waits until the lease of the killed one has expired.
test("an answer continues after the server was killed in the middle, with each word once", async () => {
  await open("/console/agents/mender/killed");
  await print("count");
  await page.getByText("w20 ").waitFor();
  await demo.kit.end("SIGKILL");
  await demo.kit.start();
  await page.getByText("w399").waitFor();
  expect(await wordsOf()).toEqual(Array.from({ length: 400 }, (_, at) => `w${at}`));
});
