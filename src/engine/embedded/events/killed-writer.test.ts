import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect, test } from "vitest";
import { systemClock } from "../../../base/clock.ts";
import { createEventLog, type EmbeddedEventLog } from "./create-event-log.ts";

const folder = mkdtempSync(join(tmpdir(), "kit-events-killed-"));
afterAll(() => rmSync(folder, { recursive: true }));
const stream = "agent/reviewer/1";
const script = new URL("testing/serve-process.ts", import.meta.url).pathname;

/** Lets a process write until it has said `lines` lines, kills it, and gives the last index it told. */
async function killWriterAfter(lines: number, fence: number): Promise<number> {
  const child = spawn(process.execPath, [script, folder, String(fence), stream], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let told = 0;
  let seen = 0;
  for await (const line of createInterface(child.stdout)) {
    told = Number(line);
    seen += 1;
    if (seen === lines) child.kill("SIGKILL");
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  return told;
}

async function readAll(log: EmbeddedEventLog): Promise<readonly number[]> {
  const indexes: number[] = [];
  for (;;) {
    const page = await log.read(stream, { after: indexes.at(-1) ?? 0, limit: 1_000 });
    if (page.length === 0) return indexes;
    indexes.push(...page.map(({ index }) => index));
  }
}

test("a killed writer's events are readable without a hole, and no index it gave is given again", async () => {
  let before = 0;
  for (const [round, lines] of [1, 40, 2, 300].entries()) {
    const told = await killWriterAfter(lines, round * 2 + 1);
    expect(told).toBeGreaterThan(before);
    const log = createEventLog({
      folder,
      clock: systemClock,
      lease: { fence: round * 2 + 2, signal: new AbortController().signal },
    });
    const indexes = await readAll(log);
    // Within what one process wrote there is no hole: what is lost is its end.
    const own = indexes.filter((index) => index > before);
    expect(own).toEqual(own.map((_, offset) => (own[0] ?? 0) + offset));
    before = await log.last(stream);
    expect(before).toBeGreaterThanOrEqual(told);
    log.close();
  }
});
