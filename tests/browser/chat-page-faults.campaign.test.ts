/** Tests a page with `useChat` in a browser while its server is killed, refuses it, or has several readers. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { serveForTests } from "../../src/server/testing/serve-for-tests.ts";
import { serviceFiles } from "../../src/server/testing/service-files.ts";
import { createTemporaryRepository } from "../../src/testing/temporary-repository.ts";
import { browserOrSkip } from "./browser-for-tests.ts";
import { answers, type ChatFront, longText, openChatFront, sendText, shows } from "./chat-page/open-front.ts";

let front: ChatFront;
let isAllowed = true;
const browser = browserOrSkip();

const served = serveForTests({ access: { auth: () => isAllowed } });
beforeAll(async () => {
  front = await openChatFront(served.url);
}, 120_000);
afterAll(() => front.close());
beforeEach(() => front.serveFrom(served.url));

test("a second tab follows the same answer, and both have each word once", async () => {
  const page = await front.open(browser());
  await sendText(page, longText);
  await shows(page, "w5 ");
  const second = await browser().newPage();
  await second.goto(page.url());
  await shows(second, "w10 ");
  for (const tab of [page, second]) {
    await expect.poll(() => tab.textContent("#status"), { timeout: 20_000 }).toBe("ready");
    expect(await answers(tab)).toEqual([longText]);
    expect(await tab.locator(".user").allTextContents()).toEqual([longText]);
    expect(await tab.locator("#error").count()).toBe(0);
  }
  await page.close();
  await second.close();
});

test("a page that loses its key in the middle of an answer says so, and has all of it once it is let in again", async () => {
  const page = await front.open(browser());
  await sendText(page, longText);
  await shows(page, "w5 ");
  isAllowed = false;
  try {
    front.cut();
    await expect.poll(() => page.textContent("#error"), { timeout: 20_000 }).toContain("API key");
    expect(await page.textContent("#status")).toBe("error");
    expect(await answers(page)).toHaveLength(1);
  } finally {
    isAllowed = true;
  }
  await page.reload();
  await shows(page, longText);
  expect(await answers(page)).toEqual([longText]);
  expect(await page.locator("#error").count()).toBe(0);
  await page.close();
});

test("a page goes on after its server is killed in the middle of an answer, and has each message once", async () => {
  await using project = await createTemporaryRepository(serviceFiles);
  const start = async (): Promise<ChildProcess> => {
    const child = fork(join(import.meta.dirname, "chat-page/serve-echo.ts"), [project.root], {
      stdio: "inherit",
    });
    const [url] = await once(child, "message");
    front.serveFrom(url);
    return child;
  };
  const kill = async (child: ChildProcess): Promise<void> => {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  const first = await start();
  const page = await front.open(browser());
  await sendText(page, "before");
  await shows(page, "before");
  await sendText(page, longText);
  await shows(page, "w15 ");
  await kill(first);
  const second = await start();
  await expect.poll(() => page.textContent("#status"), { timeout: 40_000 }).toBe("ready");
  expect(await answers(page)).toEqual(["before", longText]);
  await page.reload();
  await shows(page, longText);
  expect(await answers(page)).toEqual(["before", longText]);
  expect(await page.locator(".user").allTextContents()).toEqual(["before", longText]);
  expect(await page.locator("#error").count()).toBe(0);
  await page.close();
  await kill(second);
});
