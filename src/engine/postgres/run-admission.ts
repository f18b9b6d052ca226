import { isDeepStrictEqual } from "node:util";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import type { RunReceipt, RunRequest, RunSignal } from "../contract.ts";
import { checkJson, isName } from "../shared/check-json.ts";
import { ownerOfRun } from "../shared/queue/owner.ts";
import { checkShare } from "../shared/queue/share-of-line.ts";
import { isNoAnswer } from "../shared/retry-rules.ts";
import {
  alreadyEnded,
  badSignalName,
  checkSignalFits,
  hasEnded,
  mostUntaken,
  otherPayload,
  parentCancelled,
  type RunRow,
  tooManySignals,
  unknownRun,
} from "../shared/runs/run-store.ts";
import { toStoredTrace } from "../shared/stored-trace.ts";
import { type PostgresBase, toText } from "./postgres-base.ts";
import type { JournalRows } from "./run-journal.ts";
import { shardOf } from "./shards.ts";

/** Accepts a run: resolves once it is on disk. */
export async function admitRun(base: PostgresBase, request: RunRequest): Promise<RunReceipt> {
  checkJson(request.payload, "The payload");
  const payload = toText(request.payload);
  for (;;) {
    const known = await findEarlier(base, request, payload);
    if (known !== undefined) return known;
    await checkParent(base, request.parent_run_id);
    await checkRoom(base, ownerOfRun(request));
    const receipt = await insertRun(base, request, payload);
    // Another node was faster with the same key: its run is the answer.
    if (receipt !== undefined) return receipt;
  }
}

async function insertRun(
  base: PostgresBase,
  request: RunRequest,
  payload: string,
): Promise<RunReceipt | undefined> {
  const run_id = createId("run");
  const now = base.clock.now();
  const row = await base.database.row(
    `INSERT INTO $s.runs (run_id, workflow, shard, status, idempotency_key, accepted_at, payload, owner, trace, parent)
     VALUES ($1, $2, $3, 'queued', $4, $5, $6, $7, $8, $9)
     ON CONFLICT (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING RETURNING 1`,
    [
      run_id,
      request.workflow,
      shardOf({ run_id }),
      request.idempotency_key ?? null,
      now,
      payload,
      ownerOfRun(request),
      toStoredTrace(request),
      request.parent_run_id ?? null,
    ],
  );
  return row === undefined ? undefined : { run_id, accepted_at: isoTime(now) };
}

/** The run of a key that is known. One that is not a final answer gives its key up. */
async function findEarlier(
  { database }: PostgresBase,
  { workflow, idempotency_key: key }: RunRequest,
  payload: string,
): Promise<RunReceipt | undefined> {
  if (key === undefined) return undefined;
  const row = await database.row<RunRow>(
    "SELECT * FROM $s.runs WHERE workflow = $1 AND idempotency_key = $2",
    [workflow, key],
  );
  if (row === undefined) return undefined;
  const isSame = row.payload === payload || isDeepStrictEqual(JSON.parse(row.payload), JSON.parse(payload));
  if (!isSame) throw otherPayload();
  if (!isNoAnswer(row)) return { run_id: row.run_id, accepted_at: isoTime(row.accepted_at) };
  await database.run("UPDATE $s.runs SET idempotency_key = NULL WHERE id = $1", [row.id]);
  return undefined;
}

async function checkParent({ database }: PostgresBase, parent: string | undefined): Promise<void> {
  if (parent === undefined) return;
  const ended = await database.row(
    "SELECT 1 FROM $s.runs WHERE run_id = $1 AND (cancelling OR status = 'cancelled')",
    [parent],
  );
  if (ended !== undefined) throw parentCancelled();
}

async function checkRoom({ database, limits, queue }: PostgresBase, owner: string): Promise<void> {
  const row = await database.row<{ waiting: number; count: number }>(
    `SELECT (SELECT count(*) FROM (SELECT 1 FROM $s.runs WHERE status = 'queued' LIMIT $1) AS few) AS waiting,
       (SELECT count(*) FROM (SELECT 1 FROM $s.runs WHERE owner = $2 AND status = 'queued' LIMIT $1) AS few) AS count`,
    [limits.waiting, owner],
  );
  const load = { all: row?.waiting ?? 0, ofOwner: row?.count ?? 0 };
  checkShare(load, owner, { limits, queue, what: "runs" });
}

/** Keeps a signal for a run; gives whether a run that has waited for it was queued by it. Resolves once it is on disk. */
export async function sendSignal(
  base: PostgresBase,
  journals: JournalRows,
  { run_id, signal }: { readonly run_id: string; readonly signal: RunSignal },
): Promise<boolean> {
  const { name, payload = null, idempotency_key: key = null } = signal;
  if (!isName(name)) throw badSignalName();
  checkJson(payload, "The payload of the signal");
  await checkFit(base, journals, { run_id, name, payload });
  return await base.database.transaction(async (ask) => {
    const [run] = await ask<RunRow>("SELECT id, status FROM $s.runs WHERE run_id = $1 FOR UPDATE", [run_id]);
    if (run === undefined) throw unknownRun();
    const [known] = await ask("SELECT 1 FROM $s.run_signals WHERE run = $1 AND idempotency_key = $2", [
      run.id,
      key,
    ]);
    if (known !== undefined) return false;
    if (hasEnded(run.status)) throw alreadyEnded();
    const [untaken] = await ask<{ count: number }>(
      "SELECT count(*) AS count FROM $s.run_signals WHERE run = $1 AND NOT taken",
      [run.id],
    );
    if (Number(untaken?.count) >= mostUntaken) throw tooManySignals();
    await ask(
      "INSERT INTO $s.run_signals (run, name, idempotency_key, accepted_at, payload) VALUES ($1, $2, $3, $4, $5)",
      [run.id, name, key, base.clock.now(), toText(payload)],
    );
    const woken = await ask(
      `UPDATE $s.runs SET status = 'queued', wake_at = NULL, queued_as = nextval('$s.run_queue')
       WHERE id = $1 AND status = 'waiting' AND EXISTS (SELECT 1 FROM $s.run_journal
         WHERE run = $1 AND kind = 'wait' AND state = 'pending' AND name = $2) RETURNING 1`,
      [run.id, name],
    );
    return woken.length > 0;
  });
}

async function checkFit(
  { database, blobs, handlers }: PostgresBase,
  journals: JournalRows,
  signal: { readonly run_id: string; readonly name: string; readonly payload: unknown },
): Promise<void> {
  const run = await database.row<RunRow>("SELECT id FROM $s.runs WHERE run_id = $1", [signal.run_id]);
  const schema = run === undefined ? undefined : await journals.schemaOf(run.id, signal.name);
  if (schema !== undefined) await checkSignalFits(signal, blobs.load(schema), handlers()?.checkSignal);
}
