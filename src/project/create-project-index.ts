import { realpathSync } from "node:fs";
import { relative, sep } from "node:path";
import { version } from "../base/version.ts";
import { createAliases } from "./aliases.ts";
import { type DatesUpdate, readDates, readDatesUpdate, saveDatesUpdate } from "./commit-dates.ts";
import { classFingerprint } from "./index/block-key.ts";
import { isDamage } from "./index/damaged-index-error.ts";
import { createGuidelineStore } from "./index/guideline-store.ts";
import { loadLinks } from "./index/link-store.ts";
import { readMeta } from "./index/meta.ts";
import { createIndexPasses } from "./index-passes.ts";
import { createIndexSession, type IndexSession } from "./index-session.ts";
import { type PassSteps, runAtOnce, runInTurns } from "./pass-steps.ts";
import type { ScanSummary } from "./project.ts";
import type { IndexRefreshOptions, ProjectIndex } from "./project-index.ts";
import { specDiagnostics } from "./query/spec-diagnostics.ts";
import { decodeText } from "./read/decode-text.ts";
import type { SourceCatalog } from "./read/source-catalog.ts";
import { createSourceReader } from "./read/source-reader.ts";
import { createFileSet, filesOf } from "./tree/folder.ts";

export interface ProjectIndexOptions {
  /** Absolute, with links resolved. */
  readonly root: string;
  /** Absolute path of the database. */
  readonly file: string;
  readonly catalog: SourceCatalog;
}

/** How long a refresh waits for Git once the rest is done; dates that come later are added then. */
const maxDatesWaitMs = 3000;

/** Creates the index of a project, as it was left; nothing is up to date before the first refresh. */
export function createProjectIndex({ root, file, catalog }: ProjectIndexOptions): ProjectIndex {
  const readSource = createSourceReader(root);
  const guidelines = createGuidelineStore();
  const fileSet = createFileSet(() => session.tree().folders);
  const closing = new AbortController();
  let last: Promise<unknown> = Promise.resolve();

  const readText = (path: string): string | undefined => {
    const real = insideRoot(root, path);
    if (real === undefined) return undefined;
    const source = readSource(real);
    return source.kind === "bytes" ? decodeText(source.bytes, path).text : undefined;
  };
  const fingerprint = `${version} ${classFingerprint} ${catalog.fingerprint}`;
  const passes = createIndexPasses({
    root,
    file,
    fingerprint,
    catalog,
    readSource,
    readText,
    session: () => session,
  });
  const session: IndexSession = createIndexSession({
    file,
    fingerprint,
    rebuild: () => runAtOnce(passes.make()),
  });

  /** Runs a piece of work behind the one before it. */
  const enqueue = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return await result;
  };

  const run = async <Result>(steps: () => PassSteps<Result>, signal: AbortSignal): Promise<Result> => {
    try {
      return await runInTurns(steps(), signal);
    } catch (error) {
      if (!isDamage(error)) throw error;
      session.drop("The index was damaged.");
      return await runInTurns(steps(), signal);
    }
  };

  const save = async (dates: DatesUpdate): Promise<void> =>
    await run(() => saveDatesUpdate(session, dates), closing.signal);

  /** Waits for Git, but not for long. */
  const takeDates = async (asked: Promise<DatesUpdate | undefined>): Promise<void> => {
    const timer = Promise.withResolvers<"late">();
    const timeout = setTimeout(() => timer.resolve("late"), maxDatesWaitMs);
    const answer = await Promise.race([asked, timer.promise]);
    clearTimeout(timeout);
    if (answer === "late") {
      asked
        .then(async (dates) => dates && (await enqueue(() => save(dates))))
        // Whoever closes the project meanwhile gives up the dates.
        .catch(() => undefined);
    } else if (answer !== undefined) await save(answer);
  };

  const refreshOnce = async (options: IndexRefreshOptions): Promise<ScanSummary> => {
    const start = performance.now();
    const signal = options.signal ? AbortSignal.any([options.signal, closing.signal]) : closing.signal;
    signal.throwIfAborted();
    if (session.isOpen() || session.open()) session.changes();
    // Git works on another core meanwhile.
    const dates = readDatesUpdate(session, { root, signal: closing.signal });
    dates.catch(() => undefined);
    const counts = await run(() => passes.refresh(options), signal);
    await takeDates(dates);
    return toSummary(counts, performance.now() - start);
  };

  const toSummary = (
    { parsed, removed }: { readonly parsed: number; readonly removed: number },
    durationMs: number,
  ): ScanSummary => {
    const reason = session.takeReason();
    return session.read((database) => ({
      source_files: database.get<[number]>("SELECT count(*) FROM files")?.[0] ?? 0,
      parsed_files: parsed,
      removed_files: removed,
      specs: database.get<[number]>("SELECT total(blocks) FROM classes")?.[0] ?? 0,
      guidelines: readMeta(database, "guidelines") ?? 0,
      // Looking for references that lead nowhere takes longer than most passes, so it is done on demand.
      get diagnostics() {
        return index.specDiagnostics().length + index.guidelineDiagnostics().length;
      },
      duration_ms: durationMs,
      ...(reason === undefined ? {} : { rebuilt: reason }),
    }));
  };

  const index: ProjectIndex = {
    root,
    read: session.read,
    cached: session.cached,
    generation: session.changes,
    tree: () => session.tree().folders,
    files: () => session.cached("files", () => filesOf(session.tree().folders)),
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
    refresh: async (options = {}) => await enqueue(() => refreshOnce(options)),
    async close() {
      closing.abort(new Error("The project was closed."));
      await last;
      session.close();
    },
  };
  return index;
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
