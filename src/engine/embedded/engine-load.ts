import { query } from "../../sqlite/statements.ts";
import type { EngineLoad } from "../contract.ts";
import type { EngineBase } from "./engine-base.ts";

/** Counts what waits and runs; `attached` are the inputs that wait without being stored. */
export function createLoadReader({ database }: EngineBase, attached: () => number): () => EngineLoad {
  // By counters and partial indices: what has ended well is passed over, however much it is.
  const read = query<EngineLoad>(
    database,
    `SELECT (SELECT waiting FROM dispatch_load) AS queued_dispatches,
       coalesce((SELECT waiting FROM run_shares WHERE owner = ''), 0) AS queued_runs,
       (SELECT count(*) FROM runs WHERE status = 'running' AND status <> 'completed') AS running_runs,
       (SELECT count(*) FROM runs WHERE status = 'waiting' AND status <> 'completed') AS waiting_runs,
       (SELECT count(*) FROM dispatches WHERE status = 'failed' AND status <> 'completed') AS dead_letters`,
  );
  return () => {
    const load = read.get();
    if (load === undefined) throw new Error("SQLite gave no row back.");
    return { ...load, queued_dispatches: load.queued_dispatches + attached() };
  };
}
