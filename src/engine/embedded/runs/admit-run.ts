import { isDeepStrictEqual } from "node:util";
import { isoTime } from "../../../base/clock.ts";
import { createId } from "../../../base/id.ts";
import { KitError } from "../../../base/kit-error.ts";
import type { RunReceipt, RunRequest } from "../../contract.ts";
import { query } from "../database/query.ts";
import type { EngineBase } from "../engine-base.ts";
import { checkJson } from "./check-json.ts";
import type { RunRow } from "./run-rows.ts";

/** Accepts runs: resolves once one is on disk. `waiting` is how many may stand in the queue. */
export function createRunAdmission(
  base: EngineBase,
  waiting: number,
): (request: RunRequest) => Promise<RunReceipt> {
  const { database, blobs, clock } = base;
  const byKey = query<RunRow>(database, "SELECT * FROM runs WHERE workflow = ? AND idempotency_key = ?");
  const insert = query<{ id: number }>(
    database,
    `INSERT INTO runs (run_id, workflow, status, idempotency_key, accepted_at, payload)
     VALUES (?, ?, 'queued', ?, ?, ?) RETURNING id`,
  );
  const enqueue = query(database, "INSERT INTO run_queue (run) VALUES (?)");
  // At most so many are in the queue: the numbers between its ends, those that were taken out included.
  const span = query<{ most: number }>(
    database,
    "SELECT coalesce((SELECT max(number) FROM run_queue) - (SELECT min(number) FROM run_queue) + 1, 0) AS most",
  );
  const count = query<{ queued: number }>(database, "SELECT count(*) AS queued FROM run_queue");

  function checkRoom(): void {
    if (Number(span.get()?.most) < waiting || Number(count.get()?.queued) < waiting) return;
    throw new KitError({
      code: "unavailable",
      message: "Too many runs are waiting. Try again later.",
      meta: { retry_after_s: 5 },
    });
  }

  function isSame(stored: string, payload: string): boolean {
    return stored === payload || isDeepStrictEqual(blobs.load(stored), blobs.load(payload));
  }

  return async ({ workflow, payload, idempotency_key: key }) => {
    checkJson(payload, "The payload");
    const stored = await blobs.store(payload);
    return await base.commit(() => {
      const earlier = key === undefined ? undefined : byKey.get(workflow, key);
      if (earlier !== undefined) {
        if (!isSame(earlier.payload, stored)) throw otherPayload();
        return { run_id: earlier.run_id, accepted_at: isoTime(earlier.accepted_at) };
      }
      checkRoom();
      const run_id = createId("run");
      const now = clock.now();
      const row = insert.get(run_id, workflow, key ?? null, now, stored);
      enqueue.run(Number(row?.id));
      return { run_id, accepted_at: isoTime(now) };
    });
  };
}

function otherPayload(): KitError {
  return new KitError({
    code: "conflict",
    message: "This idempotency key was used before, with another payload.",
  });
}
