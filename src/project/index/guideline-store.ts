import type { GuidelineRecord } from "../../guidelines/guideline-record.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { StoredDiagnostics } from "../read/stored-diagnostics.ts";
import type { IndexDatabase } from "./index-database.ts";
import { verifyRecords } from "./stored-block.ts";

/** The guidelines of an index in memory; after a change only the files that differ are read again. */
export interface GuidelineStore {
  /** In path, then position order. */
  load(database: IndexDatabase): readonly GuidelineRecord[];
  diagnostics(database: IndexDatabase): readonly Diagnostic[];
  clear(): void;
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
        // The checksum covers the names of a file, which its hash does not.
        "SELECT path, hash || checksum FROM files WHERE guideline_count > 0",
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
        .all<[string, string, number]>(
          "SELECT guidelines, diagnostics, checksum FROM files WHERE diagnostics <> ''",
        )
        .flatMap(([guidelines, diagnostics, checksum]) => {
          verifyRecords(guidelines, diagnostics, checksum);
          return (JSON.parse(diagnostics) as StoredDiagnostics).guidelines ?? [];
        });
    },
    clear() {
      known = new Map();
    },
  };
}

function readRecords(database: IndexDatabase, path: string): readonly GuidelineRecord[] {
  const row = database.get<[string, string, number]>(
    "SELECT guidelines, diagnostics, checksum FROM files WHERE path = ?",
    path,
  );
  if (row === undefined) return [];
  const [guidelines, diagnostics, checksum] = row;
  verifyRecords(guidelines, diagnostics, checksum);
  return JSON.parse(guidelines) as readonly GuidelineRecord[];
}
