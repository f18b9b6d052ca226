import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import type { KitEvent } from "../../../protocol/event.ts";
import { rounds } from "../../../testing/campaign.suite.ts";
import { createManualClock } from "../../../testing/manual-clock.ts";
import { eventContext, textDelta } from "../../../testing/sample-records.ts";
import { testFolder } from "../../../testing/test-folder.ts";
import { openEventLog } from "./event-log.ts";

const root = testFolder(afterAll);
const stream = "agent/reviewer/pr-7";

function openLog(folder: string, fence: number) {
  const clock = createManualClock();
  const lease = { fence, signal: new AbortController().signal };
  return { folder, clock, log: openEventLog({ folder, clock, lease }) };
}

test("the deltas of a finished turn are one event in one row, however many flushes it took", async () => {
  const { folder, clock, log } = openLog(mkdtempSync(join(root, "log-")), 1);
  const live = log.subscribe(stream)[Symbol.asyncIterator]();
  const text = Array.from({ length: 400 }, (_, before) => `word ${before + 1} `);
  for (let index = 1; index <= 400; index += 1) {
    log.append(stream, textDelta(index));
    // A live reader gets each delta at once.
    expect((await live.next()).value).toEqual(textDelta(index));
    if (index % 10 === 0) await clock.advance(90);
  }
  expect(await log.read(stream, { limit: 1_000 })).toHaveLength(400);
  log.append(stream, { ...textDelta(401), type: "turn_end", tool_calls: 0 } as KitEvent);
  await clock.advance(1_000);
  expect(await log.read(stream)).toMatchObject([{ index: 400, text: text.join("") }, { index: 401 }]);
  expect(await log.read(stream, { after: 123, limit: 1 })).toMatchObject([
    { text: text.slice(123).join("") },
  ]);
  expect((await log.counts([stream])).get(stream)).toBe(2);
  const file = new DatabaseSync(join(folder, "events.db"), { readOnly: true });
  expect(file.prepare("SELECT count(*) AS n, sum(length(data)) AS length FROM batches").get()).toEqual({
    n: 2,
    length: expect.closeTo(text.join("").length + 1_500, -3),
  });
  file.close();
  await log.close();
});

test("readers get each text exactly once, whatever turns emit and whenever it is written", async () => {
  const property = fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 8 }), async (turns) => {
    await checkTurns(mkdtempSync(join(root, "log-")), turns);
  });
  await fc.assert(property, { numRuns: rounds(10, 40) });
});

/** The deltas of a turn, each with the action that follows it. */
const turn = fc.array(
  fc.record({
    type: fc.constantFrom("text_delta" as const, "text_delta" as const, "reasoning_delta" as const),
    text: fc.oneof(fc.string({ unit: "binary", maxLength: 6 }), fc.constantFrom("", "\ud83d", "\ude00")),
    next: fc.constantFrom("nothing", "nothing", "nothing", "flush", "settle", "other", "read", "reopen"),
  }),
  { maxLength: 40 },
);

/** Writes turns while one reader follows; then reads on from every index. */
async function checkTurns(
  folder: string,
  turns: readonly (typeof turn extends fc.Arbitrary<infer Value> ? Value : never)[],
): Promise<void> {
  let fence = 1;
  let open = openLog(folder, fence);
  const made: KitEvent[] = [];
  const received: KitEvent[] = [];
  const append = (body: Partial<KitEvent>): void => {
    const event = { ...eventContext(made.length + 1), turn_id: "turn_1", ...body } as KitEvent;
    made.push(event);
    open.log.append(stream, event);
  };
  for (const [number, deltas] of turns.entries()) {
    const turn_id = `turn_${number}`;
    append({ type: "turn_request", turn_id });
    for (const { type, text, next } of deltas) {
      append({ type, text, turn_id });
      if (next === "flush") await open.log.flush();
      if (next === "settle") await open.clock.advance(200);
      if (next === "other") append({ type: "text_delta", text: "of another", operation_id: "op_2" });
      if (next === "read")
        received.push(...(await open.log.read(stream, { after: received.at(-1)?.index ?? 0 })));
      if (next === "reopen") {
        await open.log.close();
        fence += 1;
        open = openLog(folder, fence);
      }
    }
    append({ type: "turn_end", turn_id });
  }
  await open.clock.advance(400);
  for (let after = 0; after <= made.length; after += 1) {
    const rest = await open.log.read(stream, { after, limit: 1_000 });
    expect(wordsOf(rest)).toEqual(wordsOf(made.slice(after)));
  }
  received.push(...(await open.log.read(stream, { after: received.at(-1)?.index ?? 0, limit: 1_000 })));
  expect(wordsOf(received)).toEqual(wordsOf(made));
  await open.log.close();
}

/** The content of events, independent of how deltas are split. */
function wordsOf(events: readonly KitEvent[]): readonly string[] {
  const words: string[] = [];
  let before = "";
  for (const event of events) {
    const source = "text" in event ? `${event.type} ${event.operation_id} ${event.turn_id}: ` : "";
    if (source === "" || source !== before)
      words.push(source === "" ? `${event.type} ${event.index}` : source);
    if ("text" in event) words.push(`${words.pop()}${event.text}`);
    before = source;
  }
  return words;
}
