import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** A screen of the console in its own browser. */
export interface OpenedScreen extends AsyncDisposable {
  readonly page: Page;
  /** Violations of the page's content policy, errors of scripts, and requests to other origins. */
  readonly faults: readonly string[];
}

/** Opens an address of a server in a window of a given width. */
export async function openScreen(
  browser: Pick<Browser, "newContext">,
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

/** Returns the accessibility rules that the page breaks. */
export async function violations(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe);
  return await page.evaluate(async () => {
    const { axe: own } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    return (await own.run()).violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)}`);
  });
}

/** Fails if a screen, at the width of a phone or of a large monitor, is too wide, breaks an accessibility rule, or has a fault. */
export async function checkWidths({ page, faults }: OpenedScreen, path: string): Promise<void> {
  for (const width of [390, 2_560]) {
    await page.setViewportSize({ width, height: 800 });
    // A virtual list and a graph render again a moment after the width has changed.
    const findFaults = async () => [path, width, await isTooWide(page), await violations(page)];
    await expect.poll(findFaults).toEqual([path, width, false, []]);
  }
  expect(faults).toEqual([]);
}

/** Whether the page extends beyond the screen. */
export async function isTooWide(page: Page): Promise<boolean> {
  return (await page.evaluate("document.documentElement.scrollWidth > innerWidth + 1")) === true;
}
