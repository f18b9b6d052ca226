import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** A screen of the console in a browser of its own. */
export interface OpenedScreen extends AsyncDisposable {
  readonly page: Page;
  /** Broken rules of the page's policy, errors of scripts, and requests to other origins. */
  readonly faults: readonly string[];
}

/** Opens an address of a server at a width. */
export async function openScreen(
  browser: Browser,
  {
    url,
    path,
    width = 1_280,
  }: { readonly url: string; readonly path: string; readonly width?: number | undefined },
): Promise<OpenedScreen> {
  const context = await browser.newContext({ viewport: { width, height: 800 }, locale: "en-US" });
  context.setDefaultTimeout(45_000);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (request) => {
    if (!/^(?:data|blob):/.test(request.url()) && !request.url().startsWith(url)) faults.push(request.url());
  });
  await page.goto(`${url}${path}`);
  return { page, faults, [Symbol.asyncDispose]: () => context.close() };
}

/** The rules of accessibility that the page breaks. */
export async function violations(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe);
  return await page.evaluate(async () => {
    const { axe: own } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    return (await own.run()).violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)}`);
  });
}

/** Fails where a screen, at the width of a phone or at a large one, is too wide, breaks a rule of accessibility, or has a fault. */
export async function checkWidths({ page, faults }: OpenedScreen, path: string): Promise<void> {
  for (const width of [390, 2_560]) {
    await page.setViewportSize({ width, height: 800 });
    // A virtual list and a graph draw themselves again a moment after the width has changed.
    const found = async () => [path, width, await isTooWide(page), await violations(page)];
    await expect.poll(found).toEqual([path, width, false, []]);
  }
  expect(faults).toEqual([]);
}

/** Whether something is drawn beside the screen. */
export async function isTooWide(page: Page): Promise<boolean> {
  return (await page.evaluate("document.documentElement.scrollWidth > innerWidth + 1")) === true;
}
