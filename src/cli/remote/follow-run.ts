import { setTimeout as sleep } from "node:timers/promises";
import { KitError } from "../../base/kit-error.ts";
import type { KitClient } from "../../client/kit-client.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { RunRecord } from "../../protocol/run.ts";

/** Between two looks for a server that is gone, in ms. */
const lookMs = 500;

export interface FollowedRun {
  readonly runId: string;
  readonly after: number;
  readonly signal: AbortSignal;
  /** The server as it is now: one that comes back may have another address. */
  locate(): Promise<KitClient | undefined>;
  /** Told once each time that the server is gone. */
  onGone(): void;
}

/**
 * The events of a run until it has ended. The run outlives its server, and so does this: it waits for the
 * next server and goes on behind the last event.
 */
export async function* followRun(run: FollowedRun): AsyncGenerator<KitEvent, void> {
  const { runId, signal } = run;
  let { after } = run;
  for (;;) {
    const { client } = await findRun(run);
    let isNew = false;
    try {
      for await (const event of client.runs.stream(runId, { after }, { signal })) {
        after = event.index;
        isNew = true;
        yield event;
      }
      return;
    } catch (error) {
      signal.throwIfAborted();
      const { record } = await findRun(run);
      // A run that has failed ends its stream with its error, which its record has, too.
      if (record.ended_at !== undefined && !(isGone(error) && isNew)) return;
      if (!isGone(error)) throw error;
    }
  }
}

async function findRun(run: FollowedRun): Promise<{ client: KitClient; record: RunRecord }> {
  for (let isTold = false; ; isTold = true) {
    const client = await run.locate();
    try {
      if (client !== undefined) {
        return { client, record: await client.runs.get(run.runId, { signal: run.signal }) };
      }
    } catch (error) {
      run.signal.throwIfAborted();
      if (!isGone(error)) throw error;
    }
    if (!isTold) run.onGone();
    await sleep(lookMs, undefined, { signal: run.signal });
  }
}

function isGone(error: unknown): boolean {
  return error instanceof KitError && (error.code === "unavailable" || error.code === "store_unavailable");
}
