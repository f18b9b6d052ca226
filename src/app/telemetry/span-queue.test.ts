import { type ReadableSpan, type SpanExporter, TracerProvider } from "@opentelemetry/sdk-trace";
import { expect, test } from "vitest";
import { SpanQueue } from "./span-queue.ts";

type Answer = { readonly code: number; readonly error?: Error };

function begin(
  answer: (spans: readonly ReadableSpan[]) => Answer,
  limits: Partial<ConstructorParameters<typeof SpanQueue>[0]> = {},
) {
  const sent: ReadableSpan[][] = [];
  const lost: [number, string][] = [];
  const exporter: SpanExporter = {
    export(spans, done) {
      const reply = answer(spans);
      if (reply.code === 0) sent.push(spans);
      done(reply);
    },
    shutdown: async () => undefined,
  };
  const queue = new SpanQueue({
    exporter,
    spans: 100,
    batch: 10,
    delayMs: 5,
    onLost: (spans, why) => lost.push([spans, why]),
    ...limits,
  });
  const tracer = new TracerProvider({ spanProcessors: [queue] }).getTracer("test");
  const end = (count: number): void => {
    for (let at = 0; at < count; at += 1) tracer.startSpan(`span ${at}`).end();
  };
  return { queue, sent, lost, end, total: () => sent.reduce((sum, batch) => sum + batch.length, 0) };
}

const fine: Answer = { code: 0 };
const away: Answer = { code: 1, error: Object.assign(new Error("connect"), { code: "ECONNREFUSED" }) };

test("a burst is sent whole, in batches", async () => {
  const { queue, sent, lost, end, total } = begin(() => fine);
  end(95);
  await queue.forceFlush();
  expect(total()).toBe(95);
  expect(sent.every((batch) => batch.length <= 10)).toBe(true);
  expect(lost).toEqual([]);
});

test("spans without room are counted, and reported once", async () => {
  const { queue, lost, end, total } = begin(() => fine);
  end(130);
  await queue.shutdown();
  expect(total()).toBe(100);
  expect(lost).toEqual([[30, "more than 100 waited to be sent"]]);
});

test("spans wait for an unavailable receiver, and are sent when it is back", async () => {
  let isAway = true;
  const { queue, lost, end, total } = begin(() => (isAway ? away : fine));
  end(25);
  await queue.forceFlush();
  expect(total()).toBe(0);
  isAway = false;
  await queue.forceFlush();
  expect(total()).toBe(25);
  expect(lost).toEqual([]);
});

const unreachable = "the receiver could not be reached before the end";
test.each<[string, () => Answer, string]>([
  [
    "that a receiver refuses are not sent again, and are reported with the status",
    () => ({ code: 1, error: Object.assign(new Error("secret of the receiver"), { code: 401 }) }),
    "the receiver answered with status 401",
  ],
  ["that are left at a close without a receiver are reported as lost", () => away, unreachable],
  [
    "of an exporter that throws do not disturb the queue",
    () => {
      throw new Error("broken");
    },
    unreachable,
  ],
])("spans %s", async (_, answer, why) => {
  const { queue, lost, end } = begin(answer);
  end(5);
  await queue.shutdown();
  expect(lost).toEqual([[5, why]]);
});

test("spans that are not sampled are not sent", async () => {
  const { queue, total } = begin(() => fine);
  queue.onEnd({ spanContext: () => ({ traceId: "", spanId: "", traceFlags: 0 }) } as unknown as ReadableSpan);
  await queue.forceFlush();
  expect(total()).toBe(0);
});
