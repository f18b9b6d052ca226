import type { OpenRun, OpenRuns } from "../shared/runs/replay-check.ts";
import { type EntryRow, toEntry } from "../shared/runs/run-journal.ts";
import type { RunRow } from "../shared/runs/run-store.ts";
import { parseStored } from "../shared/stored-rows.ts";
import { openEngineDatabase } from "./engine-database.ts";

/**
 * Opens the runs of a shared engine that have not ended, read-only and over one connection. Throws `not_found` if the
 * schema has no engine, and `unavailable` for tables of a newer kit.
 */
export async function openSharedRuns(options: {
  readonly url: string;
  readonly schema?: string | undefined;
}): Promise<OpenRuns> {
  const database = await openEngineDatabase({
    url: options.url,
    schema: options.schema ?? "kit",
    maxConnections: 1,
    isReadOnly: true,
  });

  /** Reads a run and its journal in one statement, so that they match. */
  async function next(after: number): Promise<OpenRun | undefined> {
    const row = await database.row<RunRow & { readonly journal: readonly EntryRow[] | null }>(
      `SELECT r.*, (SELECT json_agg(json_build_object('position', position, 'kind', kind, 'name', name, 'state', state,
           'deadline', deadline, 'ended_as', ended_as, 'value', value) ORDER BY position)
         FROM $s.run_journal WHERE run = r.id) AS journal
       FROM $s.runs AS r WHERE r.id > $1 AND r.status IN ('queued', 'running', 'waiting') ORDER BY r.id LIMIT 1`,
      [after],
    );
    if (row === undefined) return undefined;
    const { journal, ...run } = row;
    return { run, entries: (journal ?? []).map(toEntry), load: parseStored };
  }

  return {
    async *read() {
      for (let last = 0; ; ) {
        const open = await next(last);
        if (open === undefined) return;
        last = open.run.id;
        yield open;
      }
    },
    close: () => database.close(),
  };
}
