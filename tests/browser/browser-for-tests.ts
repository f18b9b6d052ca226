import type { Browser } from "playwright-core";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { forTests } from "../../src/testing/for-tests.ts";
import { openBrowser } from "./open-browser.ts";

/** A browser for the tests of the file. */
export function browserForTests(): Pick<Browser, "newContext" | "newPage" | "close"> {
  return forTests(
    async () => {
      const browser = await openBrowser();
      return {
        newContext: browser.newContext.bind(browser),
        newPage: browser.newPage.bind(browser),
        close: browser.close.bind(browser),
      };
    },
    ({ close }) => close(),
  );
}

/** Returns the browser of the tests of the file, which are skipped with the reason where none starts. */
export function browserOrSkip(): () => Browser {
  let browser: Browser | undefined;
  let reason = "";
  beforeAll(async () => {
    try {
      browser = await openBrowser();
    } catch (error) {
      reason = String(error).split("\n", 1)[0] ?? "";
    }
  }, 120_000);
  afterAll(() => browser?.close());
  beforeEach((context) => {
    if (browser === undefined) context.skip(`No browser starts here: ${reason}`);
  });
  return () => {
    if (browser === undefined) throw new Error(`No browser starts here: ${reason}`);
    return browser;
  };
}
