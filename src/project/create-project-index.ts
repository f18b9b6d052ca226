import { createHash } from "node:crypto";
import { renameSync } from "node:fs";
import { version } from "../base/version.ts";
import { fillIndex } from "./fill-index.ts";
import { type BuildTarget, createDirectTarget } from "./index/build-target.ts";
import { isDamage } from "./index/damaged-index-error.ts";
import { createGuidelineStore } from "./index/guideline-store.ts";
import { removeDatabase } from "./index/index-build.ts";
import { openDatabase } from "./index/index-database.ts";
import { readMeta } from "./index/meta.ts";
import { makeIndexFolder } from "./index/open-index.ts";
import { createThreadedTarget } from "./index/threaded-target.ts";
import { beginExclusive } from "./index/transaction.ts";
import { createIndexSession } from "./index-session.ts";
import { type PassSteps, runAtOnce, runInTurns } from "./pass-steps.ts";
import type { ScanSummary } from "./project.ts";
import type { IndexRefreshOptions, ProjectIndex } from "./project-index.ts";
import { specDiagnostics } from "./query/spec-diagnostics.ts";
import { decodeText } from "./read/decode-text.ts";
import type { SourceCatalog } from "./read/source-catalog.ts";
import { createSourceReader } from "./read/source-reader.ts";
import { type Folder, filesOf, namesIn, parentOf } from "./tree/folder.ts";
import { createIgnoreScope } from "./tree/ignore-scope.ts";
import { loadOuterRules } from "./tree/outer-rules.ts";
import { updateIndex } from "./update-index.ts";

export interface ProjectIndexOptions {
  /** Absolute, with links resolved. */
  readonly root: string;
  /** Absolute path of the database. */
  readonly file: string;
  readonly catalog: SourceCatalog;
}

/** So many sources are worth the start of a thread. */
const manySources = 300;

/** Opens the index of a project as it was left; nothing is up to date before the first refresh. */
export function createProjectIndex({ root, file, catalog }: ProjectIndexOptions): ProjectIndex {
  const fingerprint = `${version} ${catalog.fingerprint}`;
  const reader = createSourceReader(root);
  const guidelines = createGuidelineStore();
  const session = createIndexSession({
    file,
    fingerprint,
    rebuild: () => runAtOnce(make(createDirectTarget, {})),
  });
  const closing = new AbortController();
  const nameSets = new WeakMap<Folder, ReadonlySet<string>>();
  let last: Promise<unknown> = Promise.resolve();

  const readText = (path: string): string | undefined => {
    const source = reader(path);
    return source.kind === "bytes" ? decodeText(source.bytes, path).text : undefined;
  };

  const rules = () => {
    const outer = loadOuterRules(root);
    return {
      scope: createIgnoreScope({ outer, readText: (path) => readText(path) ?? "" }),
      outerRules: createHash("sha256").update(JSON.stringify(outer)).digest("base64url"),
    };
  };

  /** Opens the index, or makes it while other processes wait. Returns how many files were read. */
  const make = function* (
    createTarget: (temporary: string) => BuildTarget,
    { onProgress }: IndexRefreshOptions,
  ): PassSteps<number> {
    makeIndexFolder(file);
    const lock = openDatabase(`${file}-lock`, { busyTimeoutMs: 0 });
    try {
      yield* beginExclusive(lock);
      if (session.open()) return 0;
      const temporary = `${file}.new`;
      const files = yield* fillIndex({
        root,
        catalog,
        reader,
        ...rules(),
        fingerprint,
        openTarget: (sources) => (sources < manySources ? createDirectTarget : createTarget)(temporary),
        ...(onProgress && { onProgress }),
      });
      removeDatabase(file);
      renameSync(temporary, file);
      if (!session.open()) throw new Error("A new index cannot be opened.");
      return files;
    } finally {
      lock.close();
    }
  };

  const update = function* (options: IndexRefreshOptions): PassSteps<{ parsed: number; removed: number }> {
    for (let attempt = 0; attempt < 20; attempt += 1) {
      const result = yield* updateIndex({
        root,
        catalog,
        reader,
        ...rules(),
        ...session.forPass(),
        ...options,
      });
      if (result.kind === "outdated") continue;
      session.committed(result.generation);
      return result;
    }
    throw new Error("Other processes write the index faster than it can be read.");
  };

  const pass = function* (options: IndexRefreshOptions): PassSteps<{ parsed: number; removed: number }> {
    if (!session.isCurrent()) session.drop(undefined);
    if (!session.isOpen() && !session.open()) {
      const parsed = yield* make(createThreadedTarget, options);
      if (parsed > 0) return { parsed, removed: 0 };
    }
    return yield* update(options);
  };

  const refreshOnce = async (options: IndexRefreshOptions): Promise<ScanSummary> => {
    const start = performance.now();
    const signal = options.signal ? AbortSignal.any([options.signal, closing.signal]) : closing.signal;
    signal.throwIfAborted();
    const { parsed, removed } = await runInTurns(pass(options), signal).catch(async (error: unknown) => {
      if (!isDamage(error)) throw error;
      session.drop("The index was damaged.");
      return await runInTurns(pass(options), signal);
    });
    const durationMs = performance.now() - start;
    const reason = session.takeReason();
    const counts = session.read((database) => ({
      files: database.get<[number]>("SELECT count(*) FROM files")?.[0] ?? 0,
      specs: database.get<[number]>("SELECT total(blocks) FROM classes")?.[0] ?? 0,
      guidelines: readMeta(database, "guidelines") ?? 0,
    }));
    return {
      source_files: counts.files,
      parsed_files: parsed,
      removed_files: removed,
      specs: counts.specs,
      guidelines: counts.guidelines,
      // Looking for references that lead nowhere takes longer than most passes, so it is done on demand.
      get diagnostics() {
        return index.specDiagnostics().length + index.guidelineDiagnostics().length;
      },
      duration_ms: durationMs,
      ...(reason === undefined ? {} : { rebuilt: reason }),
    };
  };

  const hasFile = (path: string): boolean => {
    const folder = session.tree().folders.get(parentOf(path));
    if (folder === undefined) return false;
    let names = nameSets.get(folder);
    if (names === undefined) {
      names = new Set([...namesIn(folder.files), ...namesIn(folder.sources)]);
      nameSets.set(folder, names);
    }
    return names.has(path.slice(path.lastIndexOf("/") + 1));
  };

  const index: ProjectIndex = {
    root,
    read: session.read,
    cached: session.cached,
    generation: session.changes,
    tree: () => session.tree().folders,
    files: () => session.cached("files", () => filesOf(session.tree().folders)),
    hasFile,
    guidelineRecords: () => session.cached("guidelines", guidelines.load),
    guidelineDiagnostics: () => session.cached("guideline-diagnostics", guidelines.diagnostics),
    specDiagnostics: () => session.cached("spec-diagnostics", specDiagnostics),
    fileHash: (path) =>
      session.read(
        (database) => database.get<[string]>("SELECT hash FROM files WHERE path = ?", path)?.[0],
      ) || undefined,
    datesOf: () => undefined,
    readText,
    async refresh(options = {}) {
      const result = last.then(() => refreshOnce(options));
      last = result.catch(() => undefined);
      return await result;
    },
    async close() {
      closing.abort(new Error("The project was closed."));
      await last;
      session.close();
    },
  };
  return index;
}
