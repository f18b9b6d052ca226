import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { afterAll, expect, test } from "vitest";
import { systemClock } from "../../../base/clock.ts";
import { testFolder } from "../../../testing/test-folder.ts";
import type { StoredEventLog } from "../../shared/events/event-log.ts";
import { openEventLog } from "./event-log.ts";

const root = testFolder(afterAll);
const stream = "agent/reviewer/1";
const script = new URL("testing/serve-process.ts", import.meta.url).pathname;

function startWriter(folder: string, fence: number): ChildProcessByStdio<null, Readable, null> {
  return spawn(process.execPath, [script, folder, String(fence), stream], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

function openLog(folder: string, fence: number): StoredEventLog {
  return openEventLog({
    folder,
    clock: systemClock,
    lease: { fence, signal: new AbortController().signal },
  });
}

/** Lets a process write until it has printed `lines` lines, kills it, and returns the last printed index. */
async function killAfter(child: ReturnType<typeof startWriter>, lines: number): Promise<number> {
  let reported = 0;
  let seen = 0;
  for await (const line of createInterface(child.stdout)) {
    reported = Number(line);
    seen += 1;
    if (seen === lines) child.kill("SIGKILL");
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  return reported;
}

async function readAll(log: StoredEventLog): Promise<readonly number[]> {
  const indexes: number[] = [];
  for (;;) {
    const page = await log.read(stream, { after: indexes.at(-1) ?? 0, limit: 1_000 });
    if (page.length === 0) return indexes;
    indexes.push(...page.map(({ index }) => index));
  }
}

test("the events of a killed writer are readable without a hole, and none of its indexes is used again", async () => {
  const folder = mkdtempSync(join(root, "log-"));
  let before = 0;
  for (const [round, lines] of [1, 40, 2, 300].entries()) {
    const reported = await killAfter(startWriter(folder, round * 2 + 1), lines);
    expect(reported).toBeGreaterThan(before);
    const log = openLog(folder, round * 2 + 2);
    const indexes = await readAll(log);
    // The events of one process have no hole: only the last ones are lost.
    const newIndexes = indexes.filter((index) => index > before);
    expect(newIndexes).toEqual(newIndexes.map((_, offset) => (newIndexes[0] ?? 0) + offset));
    before = await log.last(stream);
    expect(before).toBeGreaterThanOrEqual(reported);
    await log.close();
  }
});

test("readers in another process follow a writer, each from its own index", async () => {
  const folder = mkdtempSync(join(root, "log-"));
  const child = startWriter(folder, 1);
  const killed = killAfter(child, Number.POSITIVE_INFINITY);
  const log = openLog(folder, 0);
  const read = async (after: number, expected: number): Promise<readonly number[]> => {
    const indexes: number[] = [];
    for await (const { index } of log.subscribe(stream, { after })) {
      indexes.push(index);
      if (indexes.length === expected) break;
    }
    return indexes;
  };
  const starts = [0, 1, 777, 5_000];
  const all = await Promise.all(starts.map((after) => read(after, 3_000)));
  child.kill("SIGKILL");
  await killed;
  await log.close();
  for (const [number, indexes] of all.entries()) {
    const after = starts[number] ?? 0;
    expect(indexes).toEqual(Array.from({ length: 3_000 }, (_, offset) => after + 1 + offset));
  }
});
