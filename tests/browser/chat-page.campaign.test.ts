/** Tests a page with `useChat` of the AI SDK in a browser, in StrictMode, against a server whose connections break. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { serveForTests } from "../../src/server/testing/serve-for-tests.ts";
import { browserOrSkip } from "./browser-for-tests.ts";
import { answers, type ChatFront, longText, openChatFront, sendText, shows } from "./chat-page/open-front.ts";

let front: ChatFront;
const browser = browserOrSkip();

const served = serveForTests();
beforeAll(async () => {
  front = await openChatFront(served.url);
}, 120_000);
afterAll(() => front.close());

const openChat = (agent?: string): Promise<Page> => front.open(browser(), agent);
const newest = async (agent = "echo") =>
  (await served.send(`/agents/${agent}/page/operations?session=c${front.chats}&limit=1`)).body.operations[0];

test("a page that is reloaded and cut off while it is answered shows each word once", async () => {
  const page = await openChat();
  await sendText(page, longText);
  await shows(page, "w5 ");
  await page.reload();
  await shows(page, "w15 ");
  for (const word of ["w20 ", "w30 "]) {
    await shows(page, word);
    front.cut();
  }
  await expect.poll(() => page.textContent("#status"), { timeout: 20_000 }).toBe("ready");
  expect(await answers(page)).toEqual([longText]);
  expect(await page.locator(".user").count()).toBe(1);
  expect(await page.locator("#error").count()).toBe(0);
  await page.close();
});

test("an approval waits over a reload; a denied call never runs", async () => {
  const page = await openChat("careful");
  await sendText(page, "pay 5");
  await page.waitForSelector(".approve");
  await page.reload();
  await page.click(".approve");
  await shows(page, "It is done.");
  await sendText(page, "pay 6");
  await page.click(".deny");
  await expect.poll(async () => (await newest("careful")).status).toBe("completed");
  const { body } = await served.send(`/agents/careful/page/ui/c${front.chats}/messages`);
  const states = body.messages.flatMap(({ parts }: { parts: { state?: string; type: string }[] }) =>
    parts.filter(({ type }) => type === "tool-pay").map(({ state }) => state),
  );
  expect(states).toEqual(["output-available", "output-denied"]);
  await page.close();
});

test("leaving the page stops nothing, and the stop after a reload stops the agent", async () => {
  const page = await openChat();
  await sendText(page, "slow");
  await shows(page, "3 ");
  await page.click("#leave");
  await page.waitForSelector("#status", { state: "detached" });
  expect((await newest()).status).toBe("working");
  await page.reload();
  await shows(page, "8 ");
  await page.click("#stop");
  await expect.poll(async () => (await newest()).status).toBe("aborted");
  await sendText(page, "the next");
  await shows(page, "the next");
  await page.close();
});

test("a call of the page's tool is answered after a reload, and messages are edited and asked again", async () => {
  const page = await openChat();
  await sendText(page, "call locate {}");
  await page.waitForSelector(".locate");
  await page.reload();
  await page.click(".locate");
  await shows(page, "OsloIt is done.");
  // The model uses the id of its call again.
  await sendText(page, "call locate {}");
  await page.click(".locate");
  await expect.poll(() => answers(page)).toEqual(["OsloIt is done.", "OsloIt is done."]);
  await sendText(page, "second");
  await shows(page, "second");
  const { operation_id } = await newest();
  await page.click("#again");
  await expect.poll(async () => (await newest()).rewound_before).toBe(operation_id);
  await expect.poll(() => page.textContent("#status"), { timeout: 20_000 }).toBe("ready");
  expect(await answers(page)).toEqual(["OsloIt is done.", "OsloIt is done.", "second"]);
  await page.click("#edit");
  await expect.poll(() => answers(page), { timeout: 20_000 }).toEqual(["edited words"]);
  await page.reload();
  await shows(page, "edited words");
  expect(await page.locator(".user").allTextContents()).toEqual(["edited words"]);
  expect(await page.locator("#error").count()).toBe(0);
  await page.close();
});
