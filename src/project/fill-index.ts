import type { IgnoreScope } from "../files/ignore-scope.ts";
import type { BuildTarget } from "./index/build-target.ts";
import { comparePaths } from "./index/compare-paths.ts";
import type { FileEntry } from "./index/file-entry.ts";
import { toTreeRows } from "./index/tree-store.ts";
import type { PassSteps } from "./pass-steps.ts";
import type { RefreshOptions } from "./project.ts";
import type { SourceCatalog } from "./read/source-catalog.ts";
import type { SourceReader } from "./read/source-reader.ts";
import { readCandidate } from "./read-candidate.ts";
import { scanProject } from "./tree/scan-project.ts";

export interface FillIndexOptions {
  readonly root: string;
  readonly catalog: SourceCatalog;
  readonly readSource: SourceReader;
  readonly scope: IgnoreScope;
  readonly outerRules: string;
  readonly fingerprint: string;
  /** Opens what the index is written to, for so many sources. */
  readonly openTarget: (sources: number) => BuildTarget;
  readonly onProgress?: RefreshOptions["onProgress"];
}

/** Files per write: few, so that what waits to be written takes little memory. */
const batchSize = 50;

/** Reads all sources of a project into a new index. Returns how many there are. */
export function* fillIndex(options: FillIndexOptions): PassSteps<number> {
  const { root, catalog, readSource, scope, onProgress } = options;
  onProgress?.({ done: 0, total: 0, phase: "walk" });
  const change = yield* scanProject({ root, previous: new Map(), scope, catalog, links: new Map() });
  const candidates = [...change.candidates].sort((a, b) => comparePaths(a.path, b.path));
  const total = candidates.length;
  const target = options.openTarget(total);
  try {
    let files = 0;
    let batch: FileEntry[] = [];
    for (const [index, candidate] of candidates.entries()) {
      const entry = readCandidate(candidate, {
        readSource,
        catalog,
        aliases: change.aliases,
        known: undefined,
      });
      if (typeof entry !== "string") batch.push(entry);
      if (batch.length === batchSize) {
        files += batch.length;
        yield* target.put(batch);
        batch = [];
        onProgress?.({ done: index + 1, total, phase: "read" });
      }
      yield;
    }
    files += batch.length;
    yield* target.put(batch);
    onProgress?.({ done: total, total, phase: "write" });
    const { fingerprint, outerRules } = options;
    const links = [...change.links];
    yield* target.finish({ tree: toTreeRows(change.folders), links, fingerprint, outerRules });
    return files;
  } finally {
    yield* target.close();
  }
}
