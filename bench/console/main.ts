/**
 * Measures the console in a real browser against a real `kit start`: first view, a delta on screen, frames while streaming, a session of
 * many events, many specs. `npm run bench:console`; `-- --short` takes a tenth of the events and specs.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { CDPSession, Page } from "playwright-core";
import { createTemporaryRepository } from "../../src/testing/temporary-repository.ts";
import { demoFiles } from "../../tests/browser/console/demo-project.ts";
import { openBrowser } from "../../tests/browser/open-browser.ts";
import { createKitProcess } from "../../tests/faults/service/kit-process.ts";

const isShort = process.argv.includes("--short");
const eventCount = isShort ? 1_000 : 10_000;
const specCount = isShort ? 10_000 : 100_000;

await using repository = await createTemporaryRepository(demoFiles);
const perFile = 100;
for (let file = 0; file < specCount / perFile; file += 1) {
  const path = join(repository.root, `.kiro/specs/feature-${file}/requirements.md`);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, requirements(perFile));
}
const kit = await createKitProcess(repository.root);
await kit.start();
const browser = await openBrowser();
try {
  const figures: [string, string, string][] = [];
  const add = (name: string, value: string, target: string): void => {
    figures.push([name, value, target]);
    console.log(`${name.padEnd(48)} ${value.padEnd(28)} ${target}`);
  };
  add("first view of Home, to its first content", ms(await firstView("/")), "1,000 ms");
  await send("/agents/mender/bench", { message: "Please mend the total." });
  add("first view of a conversation", ms(await firstView("/console/agents/mender/bench")), "1,000 ms");
  const stream = await whileStreaming();
  add(
    "a delta's arrival to the next frame, p50 / p99",
    `${ms(stream.delay50)} / ${ms(stream.delay99)}`,
    "16.7 ms",
  );
  add("frames per second while streaming", stream.fps.toFixed(1), "60");
  const long = await longSession();
  add(`a session of ${long.events.toLocaleString("en")} events, opened`, ms(long.opened), "1,000 ms");
  add("its trace, opened", ms(long.trace), "1,000 ms");
  const specs = await manySpecs();
  add(`${specCount.toLocaleString("en")} specs, opened`, ms(specs.opened), "1,000 ms");
  add("frames per second while scrolling them", specs.fps.toFixed(1), "60");
} finally {
  await browser.close();
  await kit.end("SIGKILL");
}

function ms(value: number): string {
  return `${value.toFixed(value < 100 ? 1 : 0)} ms`;
}

async function send(path: string, body: unknown): Promise<void> {
  const reply = await fetch(`${kit.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!reply.ok) throw new Error(await reply.text());
}

async function newPage(): Promise<{ page: Page; session: CDPSession } & AsyncDisposable> {
  const context = await browser.newContext({ locale: "en-US", viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  return { page, session, [Symbol.asyncDispose]: () => context.close() };
}

/** From the request to the first heading of the screen and its content, in a fresh context: nothing is in its cache. */
async function firstView(path: string): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    await using opened = await newPage();
    const started = performance.now();
    await opened.page.goto(`${kit.url}${path}`, { waitUntil: "commit" });
    await opened.page.locator("main h2, main [role=region]").first().waitFor();
    times.push(performance.now() - started);
  }
  return median(times);
}

/** The browser's own trace says when frames were drawn; marks of the page say when a delta has come. */
async function whileStreaming(): Promise<{ delay50: number; delay99: number; fps: number }> {
  await using opened = await newPage();
  const { page, session } = opened;
  await page.goto(`${kit.url}/console/agents/mender/streamed`);
  await page.getByLabel("Message to mender").waitFor();
  await page.evaluate(`{
    globalThis.arrivals = [];
    globalThis.frames = [];
    const frame = (at) => { frames.push(at); requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
    const read = ReadableStreamDefaultReader.prototype.read;
    ReadableStreamDefaultReader.prototype.read = async function (...given) {
      const result = await read.apply(this, given);
      if (!result.done) arrivals.push(performance.now());
      return result;
    };
    globalThis.frames = [];
    new MutationObserver(() => { const at = performance.now(); requestAnimationFrame(() => setTimeout(() => frames.push([at, performance.now()]))); })
      .observe(document.getElementById("main"), { subtree: true, childList: true, characterData: true });
  }`);
  await page.getByLabel("Message to mender").fill("count");
  const trace = await traceFrames(session, async () => {
    await page.keyboard.press("Enter");
    await page.getByText("w399").waitFor({ timeout: 60_000 });
  });
  const { arrivals, frames } = (await page.evaluate("({ arrivals, frames })")) as {
    readonly arrivals: readonly number[];
    readonly frames: readonly (readonly [number, number])[];
  };
  const delays = arrivals.flatMap((at) => {
    const next = frames.find(([changed]) => changed >= at);
    return next === undefined ? [] : [next[1] - at];
  });
  return { delay50: quantile(delays, 0.5), delay99: quantile(delays, 0.99), fps: trace.fps };
}

interface TraceEvent {
  readonly name: string;
  readonly ts: number;
}

/** Frames that the compositor drew, by the browser's tracing. Without a display it draws as fast as it is asked to. */
async function traceFrames(
  session: CDPSession,
  work: () => Promise<void>,
): Promise<{ readonly fps: number }> {
  const events: TraceEvent[] = [];
  session.on("Tracing.dataCollected", ({ value }) => {
    for (const event of value as unknown as TraceEvent[])
      if (event.name === "DrawFrame" || event.name === "Display::DrawAndSwap") events.push(event);
  });
  await session.send("Tracing.start", {
    transferMode: "ReportEvents",
    traceConfig: {
      includedCategories: ["devtools.timeline", "disabled-by-default-devtools.timeline.frame", "cc", "viz"],
    },
  });
  const started = performance.now();
  await work();
  const seconds = (performance.now() - started) / 1_000;
  const complete = new Promise<void>((resolve) => session.once("Tracing.tracingComplete", () => resolve()));
  await session.send("Tracing.end");
  await complete;
  const frames = events.filter(({ name }) => name === "DrawFrame").length;
  return { fps: (frames > 0 ? frames : events.length) / seconds };
}

async function longSession(): Promise<{ events: number; opened: number; trace: number }> {
  // A prompt of the demo has some 40 events once its deltas are joined.
  for (let prompt = 0; prompt < eventCount / 40; prompt += 1)
    await send("/agents/mender/long", { message: `Please mend the total of order ${prompt}.` });
  await using opened = await newPage();
  const { page } = opened;
  const start = performance.now();
  await page.goto(`${kit.url}/console/agents/mender/long`, { waitUntil: "commit" });
  await page.getByText("once per line").last().waitFor();
  const openedMs = performance.now() - start;
  const again = performance.now();
  await page.goto(`${kit.url}/console/agents/mender/long/trace`, { waitUntil: "commit" });
  await page.getByRole("button", { name: /edit/ }).first().waitFor();
  const reply = await fetch(`${kit.url}/agents/mender/long/operations?limit=1`);
  const { operations } = (await reply.json()) as { operations: { last_index?: number }[] };
  return { events: operations[0]?.last_index ?? 0, opened: openedMs, trace: performance.now() - again };
}

async function manySpecs(): Promise<{ opened: number; fps: number }> {
  for (;;) {
    const reply = await fetch(`${kit.url}/api/specs?limit=1`);
    const page = (await reply.json()) as { total_count: number; indexing?: unknown };
    if (page.indexing === undefined && page.total_count >= specCount) break;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  await using opened = await newPage();
  const { page, session } = opened;
  const start = performance.now();
  await page.goto(`${kit.url}/console/specs`, { waitUntil: "commit" });
  await page.getByText("Requirement 1").first().waitFor();
  const openedMs = performance.now() - start;
  await page.mouse.move(800, 500);
  const { fps } = await traceFrames(session, async () => {
    for (let step = 0; step < 60; step += 1) {
      await page.mouse.wheel(0, 400);
      await new Promise((resolve) => setTimeout(resolve, 16));
    }
  });
  return { opened: openedMs, fps };
}

function requirements(count: number): string {
  const blocks = Array.from(
    { length: count },
    (_, at) =>
      `### Requirement ${at + 1}: Totals ${at + 1}\n\n**User Story:** As a customer, I want right totals.\n\n#### Acceptance Criteria\n\n1. WHEN a cart has lines THEN the shop SHALL add their cents\n`,
  );
  return `# Requirements\n\n${blocks.join("\n")}`;
}

function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
