import type { GuidelineRecord } from "../../guidelines/guideline-record.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { Connection } from "../../sqlite/connection.ts";
import type { StoredDiagnostics } from "../scan/parse-source.ts";
import { parseStored } from "./damage.ts";

/** Caches the guidelines of an index in memory. After a change it reads only the files that differ. */
export interface GuidelineStore {
  /** In path, then position order. */
  load(database: Connection): readonly GuidelineRecord[];
  diagnostics(database: Connection): readonly Diagnostic[];
}

interface Known {
  readonly hash: string;
  readonly records: readonly GuidelineRecord[];
}

export function createGuidelineStore(): GuidelineStore {
  let known = new Map<string, Known>();
  return {
    load(database) {
      const rows = database.all<[path: string, hash: string]>(
        // The guidelines of a file depend on its other names, too.
        "SELECT path, hash || aliases FROM files WHERE guideline_count > 0",
      );
      const now = new Map<string, Known>();
      for (const [path, hash] of rows) {
        const before = known.get(path);
        now.set(path, before?.hash === hash ? before : { hash, records: readRecords(database, path) });
      }
      known = now;
      // The order of `compareRecords`, which for other than ASCII names is not that of SQLite.
      return [...now.keys()].sort().flatMap((path) => now.get(path)?.records ?? []);
    },
    diagnostics(database) {
      return database
        .all<[string]>("SELECT diagnostics FROM files WHERE diagnostics <> ''")
        .flatMap(([diagnostics]) => parseStored<StoredDiagnostics>(diagnostics).guidelines ?? []);
    },
  };
}

function readRecords(database: Connection, path: string): readonly GuidelineRecord[] {
  const [guidelines] = database.get<[string]>("SELECT guidelines FROM files WHERE path = ?", path) ?? [];
  return guidelines === undefined ? [] : parseStored<readonly GuidelineRecord[]>(guidelines);
}
