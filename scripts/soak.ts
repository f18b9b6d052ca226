// Runs a real server under mixed load, samples its memory and files, prints a table, and fails if one of them keeps growing.
//   npm run test:soak                # twelve minutes
//   npm run test:soak -- 90          # seconds
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";
import { createTemporaryRepository } from "../src/testing/temporary-repository.ts";
import { createKitProcess } from "../tests/faults/service/kit-process.ts";
import { startModelServer } from "../tests/faults/service/model-server.ts";

const seconds = Number(process.argv[2] ?? 720);
const sampleMs = Math.max(2_000, (seconds * 1_000) / 30);
/** The share of the samples that belongs to start-up: caches fill, code is compiled. */
const warmUp = 0.4;
/** How many approvals wait at any time; the oldest is decided when a new one comes. */
const approvalsWaiting = 100;
/** How many instances each kind of work uses before it switches to new ones and these are deleted. */
const rotation = 40;
/** The configured size of the event log, in bytes. */
const eventBytes = 16 * 1_048_576;
/**
 * How far the line through the samples may rise from the end of the warm-up to the end. A short run ends while the event
 * log still grows to its configured size; a long run shows that it stays there.
 */
const limits = {
  heap_mb: 12,
  rss_mb: 60,
  descriptors: 20,
  events_mb: seconds < 300 ? eventBytes / 1e6 : 8,
} as const;

const agent = (profile: string): string => `import { createAgent, defineTool } from "kit";

const pay = defineTool({
  name: "keep",
  description: "Writes a number down.",
  input: { type: "object", properties: { number: { type: "integer" } }, required: ["number"] },
  needsApproval: true,
  execute: () => "Written.",
});
const note = defineTool({
  name: "note",
  description: "Writes a number down.",
  input: { type: "object", properties: { number: { type: "integer" } }, required: ["number"] },
  execute: () => "Noted.",
});
export const triggers = { webhook: true };
export default createAgent(() => ({ model: "local/any", instructions: "Work.", specs: false, guidelines: false, ${profile} }));
`;
const workflow = `export async function run(ctx) {
  await ctx.step("first", () => 1);
  await ctx.sleep(50);
  return await ctx.step("second", () => 2);
}
`;

// Runs inside the server, and writes what only the process itself can measure.
const probe = `import { writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");
const delays = monitorEventLoopDelay({ resolution: 10 });
delays.enable();
setInterval(() => {
  const p99 = delays.percentile(99) / 1e6;
  delays.reset();
  collect();
  writeFileSync(process.env.KIT_SOAK_PROBE, JSON.stringify({ heap: process.memoryUsage().heapUsed, p99 }));
}, ${Math.round(sampleMs / 2)}).unref();
`;

interface Sample {
  readonly at_s: number;
  readonly done: number;
  readonly heap_mb: number;
  readonly rss_mb: number;
  readonly descriptors: number;
  readonly loop_p99_ms: number;
  readonly events_mb: number;
  readonly engine_mb: number;
  readonly sessions_mb: number;
}

const model = await startModelServer((below) => Math.floor(Math.random() * below));
await using repository = await createTemporaryRepository({
  "src/agents/worker.ts": agent("tools: [note]"),
  "src/agents/careful.ts": agent("tools: [pay]"),
  "src/workflows/order.ts": workflow,
  "specs/a/spec.md": "# A\n\n## Requirements\n\nThe system shall be.\n",
  "kit.toml": `[providers.local]\nbase_url = "${model.baseUrl}"\n\n[agent]\nidle_seconds = 5\n\n[engine]\nmax_event_bytes = ${eventBytes}\n`,
});
const { root } = repository;
const probeFolder = mkdtempSync(join(tmpdir(), "kit-soak-"));
const probeFile = join(probeFolder, "probe.mjs");
const probed = join(probeFolder, "probe.json");
writeFileSync(probeFile, probe);
const kit = await createKitProcess(root);
await kit.start({ NODE_OPTIONS: `--import=${probeFile}`, KIT_SOAK_PROBE: probed });

const started = performance.now();
const isOver = (): boolean => performance.now() - started > seconds * 1_000;
const failures = new Map<string, number>();
let done = 0;

/** Sends a GET without a body, otherwise a POST; returns the text of the reply. */
async function send(
  path: string,
  body?: unknown,
  { method = body === undefined ? "GET" : "POST", accept = "application/json" } = {},
): Promise<string> {
  const reply = await fetch(`${kit.url}${path}`, {
    method,
    headers: { accept, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`${method} ${path.split("/")[1]}: ${reply.status} ${text.slice(0, 200)}`);
  return text;
}

async function prompt(name: string, number: number): Promise<void> {
  await send(`/agents/worker/${name}`, { message: `#${2 * number}` });
}

async function overSocket(name: string): Promise<void> {
  const socket = new WebSocket(`${kit.url.replace("http", "ws")}/agents/worker/${name}`, "kit");
  await new Promise<void>((resolve, reject) => {
    socket.on("error", reject);
    socket.on("message", (data) => {
      const { type } = JSON.parse(String(data));
      if (type === "ready")
        socket.send(JSON.stringify({ type: "prompt", request_id: "1", message: "hello" }));
      if (type === "result") resolve();
      if (type === "error") reject(new Error(String(data)));
    });
  });
  const closed = once(socket, "close");
  socket.close();
  await closed;
}

async function decideOldest(): Promise<void> {
  const { approvals }: { readonly approvals: readonly { approval_id: string; instance_id: string }[] } =
    JSON.parse(await send("/approvals?limit=1000"));
  for (const { approval_id: id, instance_id } of approvals.slice(
    0,
    Math.max(0, approvals.length - approvalsWaiting),
  ))
    await send(`/agents/careful/${instance_id}/approvals/${id}`, { approved: true });
}

/** Repeats one kind of work; after a while it uses new instances and deletes the old ones. */
async function keepDoing(
  kind: string,
  work: (instance: string, number: number) => Promise<unknown>,
): Promise<void> {
  for (let number = 1; !isOver(); number += 1) {
    const instance = `${kind}-${Math.floor(number / rotation)}`;
    try {
      await work(instance, number);
      done += 1;
      const old = number / rotation - 2;
      if (Number.isInteger(old) && old >= 0 && !["run", "change", "approval"].includes(kind))
        await send(`/agents/worker/${kind}-${old}`, undefined, { method: "DELETE" });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      failures.set(why, (failures.get(why) ?? 0) + 1);
      await delay(100);
    }
    await delay(20);
  }
}

function bytesOf(folder: string, isWanted: (name: string) => boolean): number {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true });
  let bytes = 0;
  for (const entry of names) {
    if (!entry.isFile() || !isWanted(entry.name)) continue;
    bytes += statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0;
  }
  return bytes;
}

function sample(): Sample | undefined {
  let own: { readonly heap: number; readonly p99: number };
  try {
    own = JSON.parse(readFileSync(probed, "utf8"));
  } catch {
    // The file does not exist yet, or is being written.
    return undefined;
  }
  const mb = (bytes: number): number => Math.round((bytes / 1_048_576) * 10) / 10;
  const state = join(root, ".kit");
  return {
    at_s: Math.round((performance.now() - started) / 1_000),
    done,
    heap_mb: mb(own.heap),
    rss_mb: Math.round(kit.memoryMb()),
    descriptors: readdirSync(`/proc/${kit.pid}/fd`).length,
    loop_p99_ms: Math.round(own.p99),
    events_mb: mb(bytesOf(state, (name) => name.startsWith("events.db"))),
    engine_mb: mb(bytesOf(state, (name) => name.startsWith("engine.db"))),
    sessions_mb: mb(bytesOf(state, (name) => name.startsWith("sessions.db"))),
  };
}

/** Returns how far the straight line through the values (least squares) rises from the first time to the last. */
function rise(points: readonly { readonly at: number; readonly value: number }[]): number {
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, one) => sum + one, 0) / values.length;
  const at = mean(points.map((point) => point.at));
  const value = mean(points.map((point) => point.value));
  const over = points.reduce((sum, point) => sum + (point.at - at) ** 2, 0);
  const slope = points.reduce((sum, point) => sum + (point.at - at) * (point.value - value), 0) / over;
  return slope * ((points.at(-1)?.at ?? 0) - (points[0]?.at ?? 0));
}

async function sampleOn(samples: Sample[]): Promise<void> {
  while (!isOver()) {
    await delay(sampleMs);
    const one = sample();
    if (one === undefined) continue;
    if (samples.length === 0)
      console.log(
        Object.keys(one)
          .map((name) => name.padStart(11))
          .join(" "),
      );
    console.log(
      Object.values(one)
        .map((value) => String(value).padStart(11))
        .join(" "),
    );
    samples.push(one);
  }
}

const samples: Sample[] = [];
await Promise.all([
  ...[1, 2].map((lane) => keepDoing(`prompt${lane}`, prompt)),
  keepDoing("stream", (instance) =>
    send(`/agents/worker/${instance}`, { message: "hello" }, { accept: "text/event-stream" }),
  ),
  keepDoing("dispatch", (instance, number) =>
    send(`/agents/worker/${instance}/dispatch`, { input: `#${2 * number}` }),
  ),
  keepDoing("run", () => send("/workflows/order?wait=result", {})),
  keepDoing("socket", overSocket),
  keepDoing("approval", async (_, number) => {
    await send(`/agents/careful/wait-${number}/dispatch`, { input: "#1" });
    await decideOldest();
  }),
  keepDoing("change", async (_, number) => {
    writeFileSync(
      join(root, "specs/a/spec.md"),
      `# A\n\n## Requirements\n\nThe system shall be ${number}.\n`,
    );
    await send("/api/specs");
    await delay(500);
  }),
  sampleOn(samples),
]);

const settled = samples.filter(({ at_s }) => at_s >= seconds * warmUp);
const grown = Object.entries(limits).flatMap(([name, limit]) => {
  const key = name as keyof typeof limits;
  const by = rise(settled.map((one) => ({ at: one.at_s, value: one[key] })));
  console.log(`${name} rose by ${by.toFixed(1)} after the warm-up (limit ${limit})`);
  return by > limit ? [name] : [];
});
const exit = await kit.end("SIGTERM");
await model.close();
rmSync(probeFolder, { recursive: true });
for (const [why, count] of failures) console.error(`${count} failed: ${why}`);
if (exit !== 0) console.error(`The server ended with ${exit}: ${kit.stderr().slice(-2_000)}`);
if (grown.length > 0) console.error(`Grown: ${grown.join(", ")}.`);
process.exitCode = grown.length > 0 || failures.size > 0 || exit !== 0 || settled.length < 5 ? 1 : 0;
