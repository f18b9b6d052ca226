import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { relative, sep } from "node:path";
import { version } from "../base/version.ts";
import { createIgnoreScope } from "../files/ignore-scope.ts";
import { loadOuterRules } from "../files/outer-rules.ts";
import type { IndexingProgress } from "../protocol/indexing.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { ScanSummary } from "./project.ts";
import type { IndexRefreshOptions, ProjectIndex } from "./project-index.ts";
import { specDiagnostics } from "./query/spec-diagnostics.ts";
import { readDates, readDatesUpdate } from "./refresh/commit-dates.ts";
import type { PassContext, PassCounts } from "./refresh/index-pass.ts";
import { refillIndex, refreshIndex, writeDates } from "./refresh/refresh-index.ts";
import { IndexingState } from "./refresh/source-queue.ts";
import { createAliases } from "./scan/aliases.ts";
import { decodeText } from "./scan/decode-text.ts";
import { createFileSet, filesOf } from "./scan/folder.ts";
import type { SourceCatalog } from "./scan/source-catalog.ts";
import { createSourceReader } from "./scan/source-reader.ts";
import { parseStored } from "./store/damage.ts";
import { createGuidelineStore } from "./store/guideline-store.ts";
import type { IndexPlace } from "./store/index-place.ts";
import { IndexSession, loadLinks } from "./store/index-session.ts";
import { readMeta } from "./store/open-index.ts";

export interface ProjectIndexOptions {
  /** Absolute, with links resolved. */
  readonly root: string;
  readonly place: IndexPlace;
  readonly catalog: SourceCatalog;
}

/** How long a refresh waits for Git once the rest is done; dates that come later are added then. */
const maxDatesWaitMs = 3000;

/** A damaged index, a disk that is full, and temporary files that cannot be written can come together. */
const maxAttempts = 4;

/** Creates the index of a project, as it was left; nothing is up to date before the first refresh. */
export function createProjectIndex({ root, place, catalog }: ProjectIndexOptions): ProjectIndex {
  const readSource = createSourceReader(root);
  const guidelines = createGuidelineStore();
  const fileSet = createFileSet(() => session.tree());
  const state = new IndexingState();
  const closing = new AbortController();
  let last: Promise<unknown> = Promise.resolve();

  const readText = (path: string): string | undefined => {
    const real = insideRoot(root, path);
    if (real === undefined) return undefined;
    const source = readSource(real);
    return source.kind === "bytes" ? decodeText(source.bytes, path).text : undefined;
  };
  const rules: PassContext["rules"] = () => {
    const outer = loadOuterRules(root);
    return {
      scope: createIgnoreScope({ outer, readText: (path) => readText(path) ?? "" }),
      outerRules: createHash("sha256").update(JSON.stringify(outer)).digest("base64url"),
    };
  };
  const session: IndexSession = new IndexSession({
    place,
    fingerprint: `${version} ${catalog.fingerprint}`,
    rebuild: () => refillIndex(context),
  });
  const context: PassContext = { root, catalog, readSource, session, state, rules };

  /** Runs a piece of work behind the one before it. */
  const enqueue = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return await result;
  };

  /** Work on an index that is damaged, or cannot be kept where it lies, is done again on a new one. */
  const onWholeIndex = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await work();
      } catch (error) {
        if (attempt === maxAttempts || !session.beginAnew(error)) throw error;
      }
    }
  };

  /** Adds the dates of commits, and waits for Git, but not for long. */
  const addDates = async (asked: ReturnType<typeof readDatesUpdate>): Promise<void> => {
    const timer = Promise.withResolvers<"late">();
    const timeout = setTimeout(() => timer.resolve("late"), maxDatesWaitMs);
    const dates = await Promise.race([asked, timer.promise]);
    clearTimeout(timeout);
    if (dates === "late") {
      asked
        .then(async (late) => late && (await enqueue(() => onWholeIndex(() => writeDates(context, late)))))
        // Whoever closes the project meanwhile gives up the dates.
        .catch(() => undefined);
    } else if (dates !== undefined) await onWholeIndex(() => writeDates(context, dates));
  };

  const refreshOnce = async (options: IndexRefreshOptions): Promise<ScanSummary> => {
    const start = performance.now();
    const signal = options.signal ? AbortSignal.any([options.signal, closing.signal]) : closing.signal;
    signal.throwIfAborted();
    try {
      // Git works on another core meanwhile.
      const dates = readDatesUpdate(session, { root, signal: closing.signal });
      dates.catch(() => undefined);
      const counts = await onWholeIndex(() => refreshIndex(context, { ...options, signal }));
      state.end();
      await addDates(dates);
      return toSummary(counts, performance.now() - start);
    } finally {
      state.end();
    }
  };

  const toSummary = ({ parsed, removed }: PassCounts, durationMs: number): ScanSummary => {
    const rebuilt = session.takeRebuilt();
    const guidelineCount = "SELECT total(guideline_count) FROM files WHERE guideline_count > 0";
    return session.read((database) => ({
      source_files: database.get<[number]>("SELECT count(*) FROM files")?.[0] ?? 0,
      parsed_files: parsed,
      removed_files: removed,
      specs: database.get<[number]>("SELECT total(blocks) FROM classes")?.[0] ?? 0,
      guidelines: database.get<[number]>(guidelineCount)?.[0] ?? 0,
      // Looking for references that lead nowhere takes longer than most passes, so it is done on demand.
      get diagnostics() {
        return index.specDiagnostics().length + index.guidelineDiagnostics().length;
      },
      duration_ms: durationMs,
      ...(rebuilt === undefined ? {} : { rebuilt }),
    }));
  };

  const index: ProjectIndex = {
    root,
    read: (question) => session.read(question),
    cached: (name, question) => session.cached(name, question),
    generation: () => session.changes(),
    tree: () => session.tree(),
    files: () => session.cached("files", () => filesOf(session.tree())),
    hasFile: (path) => fileSet.has(path) || fileSet.has(index.aliases().realOf(path)),
    aliases: () => session.cached("aliases", (database) => createAliases(loadLinks(database), fileSet.has)),
    guidelineRecords: () => session.cached("guidelines", guidelines.load),
    guidelineDiagnostics: () => session.cached("guideline-diagnostics", guidelines.diagnostics),
    specDiagnostics: () => session.cached("spec-diagnostics", specDiagnostics),
    fileHash: (path) =>
      session.read(
        (database) => database.get<[string]>("SELECT hash FROM files WHERE path = ?", path)?.[0],
      ) || undefined,
    datesOf: (path) => session.read((database) => readDates(database, index.aliases().realOf(path))),
    readText,
    indexing: () => state.progress ?? session.cached("indexing", indexingOf),
    async ready(path) {
      await state.wait(path);
    },
    refresh: async (options = {}) => await enqueue(() => refreshOnce(options)),
    async close() {
      closing.abort(new Error("The project was closed."));
      await last;
      session.close();
    },
  };
  return index;
}

/** How far another process has come that indexes the project. */
function indexingOf(database: Connection): IndexingProgress | undefined {
  const indexing = readMeta(database, "indexing");
  return indexing === undefined ? undefined : parseStored<IndexingProgress>(indexing);
}

/** The real path of a name, through links of its folders too; nothing where there is none or it lies outside. */
function insideRoot(root: string, path: string): string | undefined {
  try {
    const real = relative(root, realpathSync(`${root}/${path}`))
      .split(sep)
      .join("/");
    return real === ".." || real.startsWith("../") || real.startsWith("/") ? undefined : real;
  } catch {
    return undefined;
  }
}
