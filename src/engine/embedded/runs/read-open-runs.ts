import { existsSync } from "node:fs";
import { join } from "node:path";
import { KitError } from "../../../base/kit-error.ts";
import { query } from "../../../sqlite/statements.ts";
import type { OpenRun, OpenRuns } from "../../shared/runs/replay-check.ts";
import { type EntryRow, toEntry } from "../../shared/runs/run-journal.ts";
import type { RunRow } from "../../shared/runs/run-store.ts";
import { createBlobReader } from "../database/blobs.ts";
import { openStoredDatabase } from "../database/engine-database.ts";

/**
 * Opens the runs of a folder's engine that have not ended, read-only; another process can use the folder. Throws
 * `not_found` if the folder has no engine's store, and `unavailable` for a store of a newer kit.
 */
export function openStoredRuns(folder: string): OpenRuns {
  if (!existsSync(join(folder, "engine.db"))) throw noEngine();
  const database = openStoredDatabase(folder);
  const load = createBlobReader(join(folder, "blobs"));
  const rows = query<RunRow>(
    database,
    "SELECT * FROM runs WHERE id > ? AND status IN ('queued', 'running', 'waiting') AND status <> 'completed' ORDER BY id LIMIT 1",
  );
  const entries = query<EntryRow>(
    database,
    "SELECT position, kind, name, state, deadline, ended_as, value FROM run_journal WHERE run = ? ORDER BY position",
  );

  /** Reads a run and its journal in one transaction. */
  function next(after: number): OpenRun | undefined {
    database.exec("BEGIN");
    try {
      const run = rows.get(after);
      return run === undefined ? undefined : { run, entries: entries.all(run.id).map(toEntry), load };
    } finally {
      database.exec("COMMIT");
    }
  }

  return {
    async *read() {
      for (let last = 0; ; ) {
        const open = next(last);
        if (open === undefined) return;
        last = open.run.id;
        yield open;
      }
    },
    close: async () => database.close(),
  };
}

function noEngine(): KitError {
  return new KitError({
    code: "not_found",
    message: "There is no .kit/engine here: this project has not accepted any work yet.",
    hint: "Set the project's folder with --cwd. If several machines share the work, set engine.kind and KIT_ENGINE_URL.",
  });
}
