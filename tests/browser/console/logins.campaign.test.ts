/** Tests logins at MCP servers in a real browser, against a server in this process. */
import { expect, test } from "vitest";
import { serveLogins } from "../../../src/server/testing/serve-logins.suite.ts";
import { browserForTests } from "../browser-for-tests.ts";
import { checkWidths, openScreen, violations } from "./open-console.ts";

const browser = browserForTests();

test("a person logs in from the inbox in a new tab, and the inbox is empty afterwards", async () => {
  const served = await serveLogins();
  await served.send("/agents/echo/1", { body: { message: "Hello" } });
  await using opened = await openScreen(browser, { url: served.url, path: "/" });
  const { page } = opened;
  await page.getByText("An MCP server that needs a login").click();
  await page.getByRole("heading", { name: "tracker needs a login" }).waitFor();
  await page.getByRole("button", { name: "Log in" }).click();
  const link = page.getByRole("link", { name: `Continue at ${new URL(served.origin).host}` });
  await link.waitFor();
  await expect.poll(() => violations(page)).toEqual([]);
  const [tab] = await Promise.all([page.context().waitForEvent("page"), link.click()]);
  await tab.getByRole("heading", { name: "Logged in at tracker" }).waitFor();
  expect(new URL(tab.url()).origin).toBe(served.url);
  expect(await tab.evaluate("[document.referrer, opener]")).toEqual(["", null]);
  expect(await violations(tab)).toEqual([]);
  await page.getByText("Nothing waits for you").waitFor();
  expect(opened.faults).toEqual([]);
});

test("a phone shows long hosts whole: their end says whose they are", async () => {
  const served = await serveLogins();
  await served.send("/agents/echo/1", { body: { message: "Hello" } });
  await using opened = await openScreen(browser, { url: served.url, path: "/", width: 390 });
  const { page } = opened;
  const host = `login.bank.example.${"a".repeat(60)}.attacker.example`;
  await page.route(/\/waiting\b|\/logins\//, async (route) => {
    const response = await route.fetch();
    const json = (await response.text()).replaceAll(new URL(served.origin).host, host);
    await route.fulfill({ response, body: json });
  });
  await page.goto(`${served.url}/console/approvals`);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("link", { name: `Continue at ${host}` }).waitFor();
  const hidden = await page.evaluate(`[...document.querySelectorAll("main li, main li *")]
    .filter(({ scrollWidth, clientWidth }) => clientWidth > 1 && scrollWidth > clientWidth)
    .map(({ outerHTML }) => outerHTML.slice(0, 100))`);
  expect(hidden).toEqual([]);
});

test("a login that cannot begin says why, and the page fits each window", async () => {
  const served = await serveLogins(
    {},
    {
      meddle: (path, value) => {
        if (path === "/.well-known/oauth-authorization-server") delete value.registration_endpoint;
        return false;
      },
    },
  );
  await served.send("/agents/echo/1", { body: { message: "Hello" } });
  await using opened = await openScreen(browser, { url: served.url, path: "/console/approvals" });
  const { page } = opened;
  await checkWidths(opened, "/console/approvals");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("alert").getByText("set `oauth.client_id` of this server").waitFor();
});
