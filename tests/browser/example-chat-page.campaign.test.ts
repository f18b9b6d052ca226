/** Tests the example of a chat page in a browser, and the examples of other clients against the same agent. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/files.ts";
import { openBrowser } from "./open-browser.ts";

const examples = join(repositoryRoot, "examples");
const served = spawn(process.execPath, ["main.ts", "0"], {
  cwd: join(examples, "chat-page"),
  stdio: ["ignore", "pipe", "inherit"],
});
let url = "";
let browser: Browser | undefined;
let reason = "";
const faults: string[] = [];

beforeAll(async () => {
  for await (const line of createInterface(served.stdout)) {
    url = /The chat page: (\S+)\//.exec(line)?.[1] ?? "";
    if (url !== "") break;
  }
  try {
    browser = await openBrowser();
  } catch (error) {
    reason = String(error).split("\n", 1)[0] ?? "";
  }
}, 120_000);
afterAll(async () => {
  await browser?.close();
  if (served.exitCode === null && served.kill()) await once(served, "exit");
});
beforeEach(() => {
  faults.length = 0;
});

async function openPage(address = url): Promise<Page> {
  const page = await (browser as Browser).newPage();
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  await page.goto(address);
  await page.waitForSelector(".composer");
  return page;
}

const sendMessage = async (page: Page, text: string): Promise<void> => {
  await page.fill(".composer textarea", text);
  await page.press(".composer textarea", "Enter");
};
const newest = (page: Page, text: string): Promise<void> =>
  expect
    .poll(() =>
      page
        .locator(".assistant")
        .last()
        .textContent()
        .catch(() => ""),
    )
    .toContain(text);
const isReady = (page: Page): Promise<void> => expect.poll(() => page.textContent(".status")).toBe("ready");

test("the page shows calls, asks for approval, runs its own tool, and edits and repeats messages", async (context) => {
  if (browser === undefined) context.skip(`No browser starts here: ${reason}`);
  const page = await openPage();
  await page.click("text=Where is order 4711?");
  await newest(page, "I found it: one brass reading lamp");
  await isReady(page);
  await sendMessage(page, "Refund order 4711");
  await page.waitForSelector(".decision");
  await page.reload();
  await page.click("text=Deny");
  await newest(page, "Then I leave it as it is.");
  await isReady(page);
  await page.locator(".again").click();
  await page.click("text=Approve");
  await newest(page, "Done. Paid 49.00 EUR back for order 4711.");
  await isReady(page);
  await sendMessage(page, "What time is it here?");
  await newest(page, "Your browser says it is");
  expect(await page.locator(".call[data-state=output-available]").count()).toBe(3);
  await isReady(page);
  await page.locator(".edit").first().click();
  await page.fill(".editing textarea", "Where is order 4712?");
  await page.click(".editing .primary");
  await newest(page, "I found it: two paper shades");
  await isReady(page);
  await page.reload();
  await newest(page, "I found it: two paper shades");
  expect(await page.locator(".user").allTextContents()).toEqual(["Where is order 4712?Edit"]);
  expect(faults).toEqual([]);
  await page.close();
});

test("a question of a tool is a form, and is answered or declined", async (context) => {
  if (browser === undefined) context.skip(`No browser starts here: ${reason}`);
  const page = await openPage();
  for (const isDeclined of [false, true]) {
    await sendMessage(page, "Wrap order 4711 as a gift");
    await page.waitForSelector(".question form");
    if (isDeclined) await page.click("text=Decline");
    else {
      await page.reload();
      await page.fill(".question [name=text]", "For Ada");
      await page.selectOption(".question [name=paper]", "brown");
      await page.check(".question [name=express]");
      await page.click(".question .primary");
    }
    await newest(page, isDeclined ? "Then I leave it" : "brown paper with “For Ada”, and sent it today");
    await isReady(page);
  }
  await page.reload();
  await newest(page, "Then I leave it as it is.");
  const states = await page
    .locator(".question")
    .evaluateAll((all) => all.map((each) => each.getAttribute("data-state")));
  expect(states).toEqual(["answered", "declined"]);
  expect(faults).toEqual([]);
  await page.close();
});

test("an answer goes on over a reload and in a second tab, and stops in both", async (context) => {
  if (browser === undefined) context.skip(`No browser starts here: ${reason}`);
  const page = await openPage();
  await sendMessage(page, "Tell me a long story");
  await newest(page, "The second one");
  const second = await openPage(page.url());
  await page.reload();
  for (const tab of [page, second]) await newest(tab, "The third one");
  await second.click(".stop");
  await isReady(page);
  await isReady(second);
  expect(await page.locator(".assistant").allTextContents()).toEqual(
    await second.locator(".assistant").allTextContents(),
  );
  await sendMessage(second, "Which lamps are there?");
  await newest(second, "I am a script");
  expect(faults).toEqual([]);
  await page.close();
  await second.close();
});

test("programs with the packages openai and @ag-ui/client use the same agent", async () => {
  for (const [name, end] of [
    ["openai", /resp_\w+: completed/],
    ["ag-ui", /\d messages in the thread/],
  ] as const) {
    const { stdout } = await promisify(execFile)(process.execPath, [join(examples, name, "main.ts"), url]);
    expect(stdout).toContain("I am a script");
    expect(stdout).toMatch(end);
  }
});
