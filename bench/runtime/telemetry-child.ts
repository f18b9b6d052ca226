/**
 * Measures what tracing adds to the cost of a turn, in µs of processor time: without an SDK, and with kit's own setup,
 * which sends spans in batches by OTLP to a receiver in another process.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { openTelemetry } from "../../src/app/telemetry/open-telemetry.ts";
import { createOpenTelemetryObserver } from "../../src/otel/create-observer.ts";
import type { KitEvent } from "../../src/protocol/event.ts";
import { noUsage } from "../../src/protocol/read-records.ts";

const turns = 20_000;
const receiver = `require("node:http").createServer((q, s) => { q.resume(); q.on("end", () => { s.setHeader("content-type", "application/json"); s.end("{}"); }); })
  .listen(0, "127.0.0.1", function () { console.log(this.address().port); })`;

function eventsOf(turn: number): readonly KitEvent[] {
  const timestamp = new Date(1_700_000_000_000 + turn).toISOString();
  const common = {
    index: 1,
    timestamp,
    agent: "a",
    instance_id: "1",
    session: "s",
    operation_id: "op_1",
    turn_id: `t${turn}`,
  };
  const model = "openai/gpt-5.1";
  return [
    { ...common, type: "turn_request", model, provider: "openai.responses", purpose: "agent", attempt: 1 },
    {
      ...common,
      type: "turn",
      model,
      usage: { ...noUsage, input: 120, output: 10, total_tokens: 130 },
      finish_reason: "stop",
      purpose: "agent",
      duration_ms: 5,
    },
  ];
}

async function micros(observe: (event: KitEvent) => void, flush: () => Promise<void>): Promise<number> {
  const work = async (count: number): Promise<void> => {
    for (let turn = 0; turn < count; turn += 1) {
      for (const event of eventsOf(turn)) observe(event);
      // Turns come with pauses, so that the queue has time to send.
      if (turn % 200 === 199) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await flush();
  };
  await work(2_000);
  const before = process.cpuUsage();
  await work(turns);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / turns;
}

const nothing = async (): Promise<void> => undefined;
const made = await micros(() => undefined, nothing);
const withoutSdk = (await micros(createOpenTelemetryObserver(), nothing)) - made;
const child = spawn(process.execPath, ["-e", receiver], { stdio: ["ignore", "pipe", "inherit"] });
const [port] = (await once(child.stdout, "data")) as [Buffer];
const lost: string[] = [];
const telemetry = await openTelemetry({
  environment: {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${String(port).trim()}`,
    OTEL_BSP_MAX_QUEUE_SIZE: "100000",
  },
  onProblem: (text) => lost.push(text),
});
const withOtlp = (await micros(telemetry.observer, telemetry.flushSpans)) - made;
await telemetry.close(5_000);
child.kill();
if (lost.length > 0) console.error(lost.join("\n"));
console.log(JSON.stringify({ withoutSdk, withOtlp }));
process.exit(0);
