/**
 * Measures the console in a real browser against a real `kit start`: first view, a delta on screen, frames while streaming and scrolling, a session of
 * many events, many specs. `npm run bench:console`; `-- --short` uses a tenth of the events and specs. Without a graphics card the browser
 * renders on the processor, so each figure of rendering is shown with that of a plain page at the same time.
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

/** Records in the page when a delta arrives, and when its frame has been painted: a message event follows the paint. */
const watchDeltas = `{
  globalThis.arrivals = [];
  globalThis.drawn = [];
  const channel = new MessageChannel();
  let changed;
  channel.port1.onmessage = () => { drawn.push([changed, performance.now()]); changed = undefined; };
  const observer = new MutationObserver(() => {
    if (changed === undefined) { changed = performance.now(); channel.port2.postMessage(0); }
  });
  observer.observe(document.querySelector("#main") ?? document.body, { subtree: true, childList: true, characterData: true });
}`;

await using repository = await createTemporaryRepository(demoFiles);
const perFile = 100;
for (let file = 0; file < specCount / perFile; file += 1) {
  const path = join(repository.root, `.kiro/specs/feature-${file}/requirements.md`);
  await mkdir(dirname(path), { recursive: true });
  // Long enough to be scrolled through.
  await writeFile(path, requirements(file === 0 ? 1_000 : perFile));
}
const kit = await createKitProcess(repository.root);
await kit.start();
const browser = await openBrowser();
let streamed = 0;
try {
  const add = (name: string, ...columns: readonly string[]): void =>
    console.log(`${name.padEnd(48)} ${columns.map((text) => text.padEnd(14)).join(" ")}`);
  add("", "console", "plain page", "target");
  add("first view of Home, to its first content", ms(await firstView("/")), "", "1,000 ms");
  await send("/agents/mender/bench", { message: "Please mend the total." });
  add("first view of a conversation", ms(await firstView("/console/agents/mender/bench")), "", "1,000 ms");
  const floors = [await plainStreaming()];
  const streams = [await whileStreaming(), await whileStreaming(), await whileStreaming()];
  floors.push(await plainStreaming());
  const medians = (name: keyof Stream): [number, number] => [
    median(streams.map((one) => one[name])),
    median(floors.map((one) => one[name])),
  ];
  add("a delta's arrival to its frame drawn, p50", ...pair(medians("delay50"), ms), "16.7 ms");
  add("the same, p99", ...pair(medians("delay99"), ms), "");
  add("frames per second while streaming", ...pair(medians("fps"), fps), "60");
  const long = await longSession();
  add(`a session of ${long.events.toLocaleString("en")} events, opened`, ms(long.opened), "", "1,000 ms");
  add("frames per second while scrolling it", ...pair([long.fps, long.floor], fps), "60");
  add("its trace, opened", ms(long.trace), "", "1,000 ms");
  const specs = await manySpecs();
  add(`${specCount.toLocaleString("en")} specs, opened`, ms(specs.opened), "", "1,000 ms");
  add("frames per second while scrolling them", ...pair([specs.fps, specs.floor], fps), "60");
} finally {
  await browser.close();
  await kit.end("SIGKILL");
}

function pair([value, floor]: readonly [number, number], write: (value: number) => string): [string, string] {
  return [write(value), write(floor)];
}

function fps(value: number): string {
  return value.toFixed(1);
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

/** Measures the time from the request to the first heading and content of the screen, in a fresh context with an empty cache. */
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

interface Stream {
  readonly delay50: number;
  readonly delay99: number;
  readonly fps: number;
}

/** Measures words that arrive every 15 ms through a real event stream, on the console's page. */
async function whileStreaming(): Promise<Stream> {
  await using opened = await newPage();
  const { page, session } = opened;
  await page.goto(`${kit.url}/console/agents/mender/streamed-${streamed++}`);
  await page.getByLabel("Message to mender").waitFor();
  await page.evaluate(`${watchDeltas}; {
    const read = ReadableStreamDefaultReader.prototype.read;
    ReadableStreamDefaultReader.prototype.read = async function (...given) {
      const result = await read.apply(this, given);
      if (!result.done && new TextDecoder().decode(result.value).includes("text_delta")) arrivals.push(performance.now());
      return result;
    };
  }`);
  await page.getByLabel("Message to mender").fill("count");
  const fps = await traceFrames(session, async () => {
    await page.keyboard.press("Enter");
    await page.getByText("w399").waitFor({ timeout: 60_000 });
  });
  return { ...(await delaysOf(page)), fps };
}

/** Measures the machine's limit: a plain page adds the same words to a text at the same pace. */
async function plainStreaming(): Promise<Stream> {
  await using opened = await newPage();
  const { page, session } = opened;
  await page.setContent("<p></p>");
  await page.evaluate(watchDeltas);
  const fps = await traceFrames(session, async () => {
    await page.evaluate(`new Promise((resolve) => {
      let count = 0;
      const add = () => {
        arrivals.push(performance.now());
        const word = "w" + count++ + " ";
        requestAnimationFrame(() => document.querySelector("p").append(word));
        if (count === 400) resolve(); else setTimeout(add, 15);
      };
      add();
    })`);
  });
  return { ...(await delaysOf(page)), fps };
}

async function delaysOf(page: Page): Promise<Omit<Stream, "fps">> {
  const { arrivals, drawn } = (await page.evaluate("({ arrivals, drawn })")) as {
    readonly arrivals: readonly number[];
    readonly drawn: readonly (readonly [number, number])[];
  };
  const delays = arrivals.flatMap((at) => {
    const next = drawn.find(([changed]) => changed >= at);
    return next === undefined ? [] : [next[1] - at];
  });
  return { delay50: quantile(delays, 0.5), delay99: quantile(delays, 0.99) };
}

interface TraceEvent {
  readonly name: string;
  readonly ts: number;
}

/** Returns the frames per second between the first and the last painted frame, from the browser's trace. */
async function traceFrames(session: CDPSession, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  const take = ({ value }: { readonly value: readonly unknown[] }): void => {
    for (const { name, ts } of value as readonly TraceEvent[]) if (name === "DrawFrame") times.push(ts);
  };
  session.on("Tracing.dataCollected", take);
  await session.send("Tracing.start", {
    transferMode: "ReportEvents",
    traceConfig: { includedCategories: ["devtools.timeline", "disabled-by-default-devtools.timeline.frame"] },
  });
  await work();
  const complete = new Promise<void>((resolve) => session.once("Tracing.tracingComplete", () => resolve()));
  await session.send("Tracing.end");
  await complete;
  session.off("Tracing.dataCollected", take);
  const [first = 0, last = 0] = [Math.min(...times), Math.max(...times)];
  return ((times.length - 1) * 1_000_000) / (last - first);
}

/** Scrolls by the browser's own gesture, at the speed of a fast wheel. Single wheel events would measure how fast they are sent. */
async function scrollingFps({ page, session }: { page: Page; session: CDPSession }): Promise<number> {
  await page.mouse.move(800, 500);
  return await traceFrames(session, () =>
    session.send("Input.synthesizeScrollGesture", {
      x: 800,
      y: 500,
      yDistance: -9_000,
      speed: 3_000,
      gestureSourceType: "mouse",
    }),
  );
}

/** Measures the frames of a page with as many plain rows and no script. */
async function plainScrolling(rows: number): Promise<number> {
  await using opened = await newPage();
  const row = '<li style="height:36px;border-bottom:1px solid #ddd">Requirement</li>';
  await opened.page.setContent(
    `<ul style="position:fixed;inset:0;margin:0;overflow-y:auto">${row.repeat(rows)}</ul>`,
  );
  return await scrollingFps(opened);
}

/** Measures the frames of a scrolling page, and of a plain page with as many rows before and after it. */
async function besidePlain(
  opened: Parameters<typeof scrollingFps>[0],
  rows: number,
): Promise<{ readonly fps: number; readonly floor: number }> {
  const floors = [await plainScrolling(rows)];
  const own = [await scrollingFps(opened), await scrollingFps(opened), await scrollingFps(opened)];
  floors.push(await plainScrolling(rows));
  return { fps: median(own), floor: median(floors) };
}

async function longSession() {
  // A prompt of the demo has some 40 events once its deltas are joined.
  for (let prompt = 0; prompt < eventCount / 40; prompt += 1)
    await send("/agents/mender/long", { message: `Please mend the total of order ${prompt}.` });
  await using opened = await newPage();
  const { page } = opened;
  const start = performance.now();
  await page.goto(`${kit.url}/console/agents/mender/long`, { waitUntil: "commit" });
  await page.getByText("once per line").last().waitFor();
  const openedMs = performance.now() - start;
  // Upwards, like a user who scrolls back.
  await page.getByLabel("Conversation").evaluate((box) => {
    box.scrollTop = 0;
  });
  const frames = await besidePlain(opened, 300);
  const again = performance.now();
  await page.goto(`${kit.url}/console/agents/mender/long/trace`, { waitUntil: "commit" });
  await page.getByRole("button", { name: /edit/ }).first().waitFor();
  const tracedMs = performance.now() - again;
  const reply = await fetch(`${kit.url}/agents/mender/long/operations?limit=1`);
  const { operations } = (await reply.json()) as { operations: { last_index?: number }[] };
  return { events: operations[0]?.last_index ?? 0, opened: openedMs, ...frames, trace: tracedMs };
}

async function manySpecs() {
  for (;;) {
    const reply = await fetch(`${kit.url}/api/specs?limit=1`);
    const page = (await reply.json()) as { total_count: number; indexing?: unknown };
    if (page.indexing === undefined && page.total_count >= specCount) break;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  await using opened = await newPage();
  const { page } = opened;
  const start = performance.now();
  await page.goto(`${kit.url}/console/specs`, { waitUntil: "commit" });
  await page.getByRole("treeitem", { name: /^feature-0/ }).waitFor();
  const openedMs = performance.now() - start;
  // The rows of one feature, whose pages load while scrolling.
  const feature = encodeURIComponent(".kiro/specs/feature-0");
  await page.goto(`${kit.url}/console/specs?framework=fw_a&feature=${feature}`);
  await page.getByRole("treeitem", { name: /^Requirement 20/ }).waitFor();
  return { opened: openedMs, ...(await besidePlain(opened, 1_000)) };
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
