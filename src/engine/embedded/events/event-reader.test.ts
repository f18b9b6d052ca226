import { expect, test } from "vitest";
import { createManualClock } from "../../../testing/manual-clock.ts";
import type { StoredEventLog } from "../../shared/events/event-log.ts";
import { openEventLog } from "./event-log.ts";

const stream = "agent/reviewer/pr-7";
const lease = { fence: 1, signal: new AbortController().signal };

/** Appends events in batches of 60; a stream keeps about 100. */
async function fill(events: number): Promise<StoredEventLog> {
  const clock = createManualClock();
  const log = openEventLog({ clock, lease, retention: { maxEvents: 100 } });
  const common = { timestamp: "2026-11-22T10:00:00.000Z", instance_id: "pr-7", operation_id: "op_1" };
  for (let index = 1; index <= events; index += 1) {
    log.append(stream, {
      ...common,
      agent: "reviewer",
      index,
      type: "log",
      level: "info",
      message: `${index}`,
    });
    if (index % 60 === 0) await clock.advance(200);
  }
  await log.flush();
  return log;
}

test("a reader of removed events gets a gap, and then the remaining events", async () => {
  const log = await fill(600);
  const [first] = await log.read(stream, { limit: 1 });
  const firstIndex = first?.index ?? 0;
  expect(firstIndex).toBeGreaterThan(100);
  const gap = { type: "gap", missing_from: 6, missing_to: firstIndex - 1, index: firstIndex - 1 };
  expect((await log.read(stream, { after: 5, limit: 2 })).map(({ index }) => index)).toEqual([
    firstIndex - 1,
    firstIndex,
  ]);
  expect((await log.read(stream, { after: 5, limit: 1 }))[0]).toMatchObject({ ...gap, agent: "reviewer" });
  expect((await log.read(stream, { after: 5, types: ["log"], limit: 1 }))[0]).toMatchObject({
    index: firstIndex,
  });
  const reader = log.subscribe(stream, { after: 5 })[Symbol.asyncIterator]();
  expect((await reader.next()).value).toMatchObject(gap);
  expect((await reader.next()).value).toMatchObject({ type: "log", index: firstIndex });
  // A reader that had the removed events, or starts at the beginning, gets no gap.
  expect((await log.read(stream, { after: firstIndex - 1, limit: 1 }))[0]).toMatchObject({
    type: "log",
    index: firstIndex,
  });
  expect(first?.type).toBe("log");
  await reader.return?.();
  await log.close();
});
