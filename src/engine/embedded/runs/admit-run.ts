import { isDeepStrictEqual } from "node:util";
import { isoTime } from "../../../base/clock.ts";
import { createId } from "../../../base/id.ts";
import { KitError } from "../../../base/kit-error.ts";
import { query } from "../../../sqlite/statements.ts";
import type { RunReceipt, RunRequest } from "../../contract.ts";
import type { EngineBase } from "../engine-base.ts";
import type { EngineLimits } from "../engine-limits.ts";
import { isNoAnswer } from "../work/is-no-answer.ts";
import { ownerOfRun } from "../work/owner.ts";
import { checkShare } from "../work/share-of-line.ts";
import { toStoredTrace } from "../work/stored-trace.ts";
import { checkJson } from "./check-json.ts";
import type { RunRow } from "./run-rows.ts";

/** Accepts runs: resolves once one is on disk. */
export function createRunAdmission(
  base: EngineBase,
  limits: EngineLimits,
): (request: RunRequest) => Promise<RunReceipt> {
  const { database, blobs, clock, lines } = base;
  const byKey = query<RunRow>(database, "SELECT * FROM runs WHERE workflow = ? AND idempotency_key = ?");
  const insert = query<{ id: number }>(
    database,
    `INSERT INTO runs (run_id, workflow, status, idempotency_key, accepted_at, payload, owner, trace)
     VALUES (?, ?, 'queued', ?, ?, ?, ?, ?) RETURNING id`,
  );
  const freeKey = query(database, "UPDATE runs SET idempotency_key = NULL WHERE id = ?");
  const enqueue = query(database, "INSERT INTO run_queue (run) VALUES (?)");
  const load = query<{ waiting: number; of_owner: number }>(
    database,
    `SELECT waiting, coalesce((SELECT waiting FROM run_shares WHERE owner = ?), 0) AS of_owner
     FROM run_shares WHERE owner = ''`,
  );

  function checkRoom(owner: string): void {
    const row = load.get(owner);
    const waiting = { all: Number(row?.waiting), ofOwner: Number(row?.of_owner) };
    checkShare(waiting, owner, { limits, lines, what: "runs" });
  }

  function isSame(stored: string, payload: string): boolean {
    return stored === payload || isDeepStrictEqual(blobs.load(stored), blobs.load(payload));
  }

  return async (request) => {
    const { workflow, payload, idempotency_key: key } = request;
    const owner = ownerOfRun(request);
    checkJson(payload, "The payload");
    const stored = await blobs.store(payload);
    return await base.commit(() => {
      const earlier = key === undefined ? undefined : byKey.get(workflow, key);
      if (earlier !== undefined && !isSame(earlier.payload, stored)) throw otherPayload();
      if (earlier !== undefined && isNoAnswer(earlier)) freeKey.run(earlier.id);
      else if (earlier !== undefined) {
        return { run_id: earlier.run_id, accepted_at: isoTime(earlier.accepted_at) };
      }
      checkRoom(owner);
      const run_id = createId("run");
      const now = clock.now();
      const row = insert.get(run_id, workflow, key ?? null, now, stored, owner, toStoredTrace(request.trace));
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
