import { createHash } from "node:crypto";
import { version } from "../base/version.ts";
import { createIgnoreScope } from "../files/ignore-scope.ts";
import { joinPath } from "../files/join-path.ts";
import { loadOuterRules } from "../files/outer-rules.ts";
import type { GuidelineRecord } from "../guidelines/guideline-record.ts";
import { isDamage } from "./index/damaged-index-error.ts";
import { createGuidelineStore } from "./index/guideline-store.ts";
import { type IndexDatabase, openDatabase } from "./index/index-database.ts";
import { readMeta } from "./index/meta.ts";
import { openIndex, replaceIndex } from "./index/open-index.ts";
import { loadTree } from "./index/tree-store.ts";
import { type IndexPassResult, indexPass } from "./index-pass.ts";
import { type PassSteps, runAtOnce, runInTurns } from "./pass-steps.ts";
import type { ScanSummary } from "./project.ts";
import type { IndexRefreshOptions, ProjectIndex } from "./project-index.ts";
import { decodeText } from "./read/decode-text.ts";
import type { SourceCatalog } from "./read/source-catalog.ts";
import { createSourceReader } from "./read/source-reader.ts";
import { type Folder, parentOf } from "./tree/folder.ts";

export interface ProjectIndexOptions {
  /** Absolute, with links resolved. */
  readonly root: string;
  /** Absolute path of the database. */
  readonly file: string;
  readonly catalog: SourceCatalog;
}

/** Opens the index of a project as it was left; nothing is up to date before the first refresh. */
export function createProjectIndex({ root, file, catalog }: ProjectIndexOptions): ProjectIndex {
  const openOptions = { file, fingerprint: `${version} ${catalog.fingerprint}` };
  const opened = openIndex(openOptions);
  const reader = createSourceReader(root);
  const guidelines = createGuidelineStore();
  const cache = new Map<string, unknown>();
  let database = opened.database;
  let writer: IndexDatabase | undefined;
  let rebuilt = opened.rebuilt;
  let tree: Map<string, Folder> | undefined;
  let nameSets = new WeakMap<Folder, ReadonlySet<string>>();
  let generation = -1;
  let dataVersion = -1;
  // Counts what `generation` cannot: a new index may have the generation of the old one.
  let changes = 0;
  let depth = 0;
  let last: Promise<unknown> = Promise.resolve();
  const closing = new AbortController();

  const readText = (path: string): string | undefined => {
    const source = reader(path);
    return source.kind === "bytes" ? decodeText(source.bytes, path).text : undefined;
  };

  /** Notices what other connections have committed. */
  const sync = (): void => {
    const [seen] = database.get<[number]>("PRAGMA data_version") ?? [0];
    if (seen === dataVersion) return;
    dataVersion = seen;
    const found = readMeta(database, "generation") ?? 0;
    if (found === generation) return;
    generation = found;
    tree = undefined;
    forget();
  };

  const forget = (): void => {
    changes += 1;
    cache.clear();
  };

  const currentTree = (): Map<string, Folder> => {
    tree ??= loadTree(database);
    return tree;
  };

  const replace = (): void => {
    const damaged = database;
    const replaced = replaceIndex(openOptions, "The index was damaged.", damaged);
    damaged.close();
    writer?.close();
    writer = undefined;
    database = replaced.database;
    rebuilt = replaced.rebuilt;
    dataVersion = -1;
    generation = -1;
    tree = undefined;
    nameSets = new WeakMap();
    guidelines.clear();
    forget();
  };

  const pass = function* (
    options: IndexRefreshOptions,
  ): PassSteps<Extract<IndexPassResult, { kind: "done" }>> {
    const rules = loadOuterRules(root);
    for (let attempt = 0; ; attempt += 1) {
      sync();
      writer ??= openDatabase(file, { busyTimeoutMs: 0 });
      const result = yield* indexPass({
        root,
        database: writer,
        catalog,
        reader,
        tree: currentTree(),
        generation,
        scope: createIgnoreScope({ outer: rules, readText: (path) => readText(path) ?? "" }),
        outerRules: createHash("sha256").update(JSON.stringify(rules)).digest("base64url"),
        ...(options.folders && { folders: options.folders }),
        ...(options.onProgress && { onProgress: options.onProgress }),
      });
      if (result.kind === "done") {
        committed(result.generation);
        return result;
      }
      if (attempt > 20) throw new Error("The index is written faster than it can be read.");
      dataVersion = -1;
      generation = -1;
    }
  };

  /** After a commit of our own, the tree in memory is the one in the index. */
  const committed = (next: number): void => {
    const [seen] = database.get<[number]>("PRAGMA data_version") ?? [0];
    const found = readMeta(database, "generation") ?? 0;
    dataVersion = seen;
    if (found !== next) tree = undefined;
    if (found !== generation) {
      generation = found;
      forget();
    }
  };

  const repairing = <Result>(attempt: () => Result): Result => {
    try {
      return attempt();
    } catch (error) {
      if (!isDamage(error)) throw error;
      replace();
      runAtOnce(pass({}));
      return attempt();
    }
  };

  const read = <Result>(question: (database: IndexDatabase) => Result): Result => {
    if (depth > 0) return question(database);
    depth += 1;
    try {
      return repairing(() => {
        sync();
        return question(database);
      });
    } finally {
      depth -= 1;
    }
  };

  const cached = <Result>(name: string, question: (database: IndexDatabase) => Result): Result =>
    read((current) => {
      if (!cache.has(name)) cache.set(name, question(current));
      return cache.get(name) as Result;
    });

  const hasFile = (path: string): boolean => {
    const folder = currentTree().get(parentOf(path));
    if (folder === undefined) return false;
    let names = nameSets.get(folder);
    if (names === undefined) {
      names = new Set([...folder.files, ...folder.sources]);
      nameSets.set(folder, names);
    }
    return names.has(path.slice(path.lastIndexOf("/") + 1));
  };

  const refreshOnce = async (options: IndexRefreshOptions): Promise<ScanSummary> => {
    const start = performance.now();
    const signal = options.signal ? AbortSignal.any([options.signal, closing.signal]) : closing.signal;
    signal.throwIfAborted();
    const run = async () => await runInTurns(pass(options), signal);
    const { parsed, removed } = await run().catch(async (error: unknown) => {
      if (!isDamage(error)) throw error;
      replace();
      return await run();
    });
    const reason = rebuilt;
    rebuilt = undefined;
    const counts = read((current) => ({
      files: current.get<[number]>("SELECT count(*) FROM files")?.[0] ?? 0,
      specs: current.get<[number]>("SELECT total(blocks) FROM classes")?.[0] ?? 0,
      guidelines: readMeta(current, "guidelines") ?? 0,
    }));
    return {
      source_files: counts.files,
      parsed_files: parsed,
      removed_files: removed,
      specs: counts.specs,
      guidelines: counts.guidelines,
      diagnostics: 0,
      duration_ms: performance.now() - start,
      ...(reason === undefined ? {} : { rebuilt: reason }),
    };
  };

  return {
    root,
    read,
    cached,
    generation() {
      read(() => undefined);
      return changes;
    },
    tree: () => read(currentTree),
    files: () => cached("files", () => filesOf(currentTree())),
    hasFile: (path) => read(() => hasFile(path)),
    guidelineRecords: () => cached<readonly GuidelineRecord[]>("guidelines", guidelines.load),
    guidelineDiagnostics: () => cached("guideline-diagnostics", guidelines.diagnostics),
    fileHash: (path) =>
      read((current) => current.get<[string]>("SELECT hash FROM files WHERE path = ?", path)?.[0]) ||
      undefined,
    datesOf: () => undefined,
    readText,
    async refresh(options = {}) {
      const result = last.then(
        () => refreshOnce(options),
        () => refreshOnce(options),
      );
      last = result.catch(() => undefined);
      return await result;
    },
    async close() {
      closing.abort(new Error("The project was closed."));
      await last;
      writer?.close();
      writer = undefined;
      database.close();
    },
  };
}

function filesOf(tree: ReadonlyMap<string, Folder>): readonly string[] {
  const files: string[] = [];
  for (const folder of tree.values()) {
    for (const name of folder.files) files.push(joinPath(folder.path, name));
    for (const name of folder.sources) files.push(joinPath(folder.path, name));
  }
  return files.sort();
}
