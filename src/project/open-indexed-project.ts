import { createHash } from "node:crypto";
import { realpathSync, statSync } from "node:fs";
import { basename, relative, resolve, sep } from "node:path";
import { setTimeout } from "node:timers/promises";
import { KitError } from "../base/kit-error.ts";
import { version } from "../base/own-package.ts";
import { sameWhileEqual } from "../base/remember.ts";
import { createIgnoreScope, loadOuterRules } from "../files/ignore-scope.ts";
import type { GuidelineRecord } from "../guidelines/guideline-record.ts";
import type { IndexingProgress } from "../protocol/indexing.ts";
import type { SpecBlock } from "../protocol/spec-block.ts";
import type { SpecFeature } from "../protocol/spec-outline.ts";
import type { SpecQuery } from "../protocol/spec-query.ts";
import type { Connection } from "../sqlite/statements.ts";
import type { OpenProjectOptions, Project, ProjectSpecs, RefreshOptions, ScanSummary } from "./project.ts";
import { createProjectGuidelines } from "./project-guidelines.ts";
import { connectIndex, type ProjectIndex } from "./project-index.ts";
import { compareSpecs } from "./query/compare-specs.ts";
import { specDiagnostics } from "./query/edges.ts";
import { findImpact, specGraph } from "./query/impact.ts";
import { runQuery } from "./query/run-query.ts";
import { pageFeatures, readFeatures, readOutline } from "./query/spec-outline.ts";
import { IndexingState, type PassContext } from "./refresh/index-pass.ts";
import { type PassResult, ProjectRefresh, projectClosed, refillIndex } from "./refresh/refresh-index.ts";
import type { TrackedFiles } from "./scan/git/tracked-files.ts";
import { createIgnoredMarks } from "./scan/mark-ignored.ts";
import { createSourceCatalog, type SourceCatalog } from "./scan/source-catalog.ts";
import { createSourceReader, decodeText } from "./scan/source-reader.ts";
import { createAliases, createFileSet, filesOf } from "./scan/tree.ts";
import { createGuidelineStore, type ProjectFacts, readBlocks } from "./store/block-reader.ts";
import { keysOfId } from "./store/block-row.ts";
import { readDates } from "./store/date-rows.ts";
import { IndexSession, loadLinks } from "./store/index-session.ts";
import { IndexPlace, parseStored, readMeta, type SharedIndex } from "./store/open-index.ts";
import { RepositoryWatch } from "./watch/repository-watch.ts";
import type { ProjectWatch } from "./watch/watch-project.ts";

/** Like `openProject`; the index can also be in a database of the caller. */
export async function openIndexedProject(
  options: Omit<OpenProjectOptions, "indexFile"> &
    RefreshOptions & { readonly indexFile?: string | SharedIndex | undefined },
): Promise<Project> {
  const root = rootOf(options.root);
  const place = new IndexPlace(root, options.indexFile);
  const { config = {}, readOnly = false } = options;
  const catalog = createSourceCatalog(config);
  const index = createProjectIndex({ root, place, catalog });
  const watches = new Set<ProjectWatch>();
  let isClosed = false;
  const close = async (): Promise<void> => {
    isClosed = true;
    // An open watch would keep the process alive.
    const ended = Array.from(watches, (each) => each.close());
    await index.close();
    await Promise.all(ended);
    place.remove();
  };
  // `openProject` returns no summary, so the next `refresh` reports a rebuild.
  let rebuilt: string | undefined;
  const refresh = async (refreshOptions?: RefreshOptions): Promise<ScanSummary> => {
    const summary = await index.refresh(refreshOptions);
    const reported = rebuilt === undefined ? summary : { rebuilt, ...summary };
    rebuilt = undefined;
    return reported;
  };
  const first = index.refresh(options).then((summary) => {
    rebuilt = summary.rebuilt;
  });
  try {
    await (options.background === true ? Promise.race([first, shortWait()]) : first);
  } catch (error) {
    await close();
    throw error;
  }
  // `ready()` rejects with its failure. Other callers see that answers stay marked as incomplete.
  first.catch(() => undefined);
  return {
    root,
    name: basename(root),
    readOnly,
    specs: connectIndex(createProjectSpecs(index, catalog), index),
    guidelines: createProjectGuidelines({ index, name: basename(root), readOnly, config }),
    files: index.files,
    realPath: (path) => index.aliases().realOf(path),
    datesOf: index.datesOf,
    indexing: index.indexing,
    indexProblem: () => place.problem,
    ready: (file) => (file === undefined ? first : index.ready(file)),
    refresh,
    async watch(onChange, onError) {
      // Many programs open a project, ask, and close it.
      const { ProjectWatch } = await import("./watch/watch-project.ts");
      if (isClosed) throw projectClosed();
      const projectWatch = new ProjectWatch(index, { onChange, onError });
      watches.add(projectWatch);
      await projectWatch.begin();
      return {
        async close() {
          watches.delete(projectWatch);
          await projectWatch.close();
        },
      };
    },
    close,
  };
}

/** Most first passes end within this time, so their first answers are complete. */
async function shortWait(): Promise<void> {
  await setTimeout(250, undefined, { ref: false });
}

function rootOf(folder: string): string {
  try {
    const root = realpathSync(resolve(folder));
    if (statSync(root).isDirectory()) return root;
  } catch (error) {
    throw noFolder(error);
  }
  throw noFolder();
}

function noFolder(cause?: unknown): KitError<"invalid_request"> {
  const message = "The project root is not a folder that can be opened.";
  return new KitError({ code: "invalid_request", message, cause });
}

/** Blocks that `all` reads at a time: enough to be quick, few enough that an editor's question between two reads does not wait long. */
const chunkSize = 50;

interface BlockPosition {
  readonly path: string;
  readonly position: number;
}

/** Creates the specs of a project over its index. */
function createProjectSpecs(index: ProjectIndex, catalog: SourceCatalog): ProjectSpecs {
  const facts: ProjectFacts = index;
  const namedFiles = { hasFile: index.hasFile, aliases: index.aliases };
  /** Replaces an alias in a query by the real path of the file. */
  const byRealPath = (query: SpecQuery): SpecQuery =>
    query.path === undefined
      ? query
      : { ...query, path: index.aliases().realOf(query.path.replace(/^(?:\.\/)+/, "")) };
  const readChunk = (database: Connection, { path, position }: BlockPosition) => {
    const found = database.all<[key: number, path: string, position: number]>(
      `SELECT b.key, f.path, b.position FROM files f CROSS JOIN blocks b ON b.file = f.id
       WHERE f.path >= ? AND (f.path > ? OR b.position > ?) ORDER BY f.path, b.position LIMIT ?`,
      ...[path, path, position, chunkSize],
    );
    const last = found.at(-1);
    return {
      blocks: readBlocks(database, { keys: found.map(([key]) => key), facts }),
      last: last && { path: last[1], position: last[2] },
    };
  };
  /** Marks an answer as incomplete while files are not indexed yet. */
  const signed = <Answer extends object>(answer: Answer): Answer => {
    const indexing = index.indexing();
    return indexing === undefined ? answer : { ...answer, indexing };
  };
  const features = (): readonly SpecFeature[] =>
    index.cached("features", (database) => readFeatures(database, catalog.toolOf));
  return {
    query: (query) =>
      signed(index.read((database) => runQuery(database, { query: byRealPath(query), facts }))),
    get(id) {
      return index.read(
        (database) => readBlocks(database, { keys: keysOfId(database, id).slice(0, 1), facts })[0],
      );
    },
    *all(): Iterable<SpecBlock> {
      // Continues by path and position instead of by key, because keys change with every edit of their file.
      for (let position: BlockPosition | undefined = { path: "", position: -1 }; position !== undefined; ) {
        const from: BlockPosition = position;
        const chunk = index.read((database) => readChunk(database, from));
        yield* chunk.blocks;
        position = chunk.last;
      }
    },
    diagnostics: index.specDiagnostics,
    frameworkOf: (path) => catalog.specAdapterFor(path)?.framework,
    toolOf: catalog.toolOf,
    features: (query = {}) => signed(pageFeatures(features(), query)),
    outline(query) {
      const known = features();
      return signed(index.read((database) => readOutline(database, { query, features: known })));
    },
    impact: (request, compared, specsOfTests) =>
      signed(
        index.read((database) => findImpact(database, { ...namedFiles, request, compared, specsOfTests })),
      ),
    compare: (path, before) => compareSpecs(path, { before, index, catalog }),
    graph: () => signed(index.cached("graph", (database) => specGraph(database, namedFiles))),
  };
}

interface ProjectIndexOptions {
  /** Absolute, with links resolved. */
  readonly root: string;
  readonly place: IndexPlace;
  readonly catalog: SourceCatalog;
}

/** Opens the index of a project as the last process left it. The first refresh brings it up to date. */
export function createProjectIndex({ root, place, catalog }: ProjectIndexOptions): ProjectIndex {
  const readSource = createSourceReader(root);
  const guidelines = createGuidelineStore();
  const fileSet = createFileSet(() => session.tree());
  const state = new IndexingState();

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
  const marked = createIgnoredMarks();
  const sameRecords = sameWhileEqual<GuidelineRecord>();
  const sameFiles = sameWhileEqual<string>();
  const readRecords = (database: Connection): readonly GuidelineRecord[] => {
    const stored = readMeta(database, "tracked");
    const tracked = stored === undefined ? undefined : parseStored<TrackedFiles>(stored);
    const state = { rules: rules(), tree: session.tree(), tracked };
    return sameRecords(marked(guidelines.load(database), state));
  };
  const session: IndexSession = new IndexSession({
    place,
    fingerprint: `${version} ${catalog.fingerprint}`,
    rebuild: () => refillIndex(context),
  });
  const context: PassContext = { root, catalog, readSource, session, state, rules };

  const passes = new ProjectRefresh(context);

  const index: ProjectIndex = {
    root,
    read: (question) => session.read(question),
    cached: (name, question) => session.cached(name, question),
    writeRows: (change) => session.writeRows(change),
    generation: () => session.changes(),
    tree: () => session.tree(),
    files: () => session.cached("files", () => sameFiles(filesOf(session.tree()))),
    hasFile: (path) => fileSet.has(path) || fileSet.has(index.aliases().realOf(path)),
    aliases: () => session.cached("aliases", (database) => createAliases(loadLinks(database), fileSet.has)),
    guidelineRecords: () => session.cached("guidelines", readRecords),
    guidelineDiagnostics: () => session.cached("guideline-diagnostics", guidelines.diagnostics),
    specDiagnostics: () => session.cached("spec-diagnostics", specDiagnostics),
    fileHash: (path) =>
      session.read(
        (database) => database.get<[string]>("SELECT hash FROM files WHERE path = ?", path)?.[0],
      ) || undefined,
    datesOf: (path) => session.read((database) => readDates(database, index.aliases().realOf(path))),
    readSource,
    repository: new RepositoryWatch(root),
    readText,
    indexing: () => state.progress ?? session.cached("indexing", indexingOf),
    async ready(path) {
      await state.wait(path);
    },
    refresh: async (options = {}) => toSummary(index, session, await passes.run(options)),
    async close() {
      await passes.close();
      session.close();
    },
  };
  return index;
}

function toSummary(index: ProjectIndex, session: IndexSession, pass: PassResult): ScanSummary {
  const rebuilt = session.takeRebuilt();
  const guidelineCount = "SELECT total(guideline_count) FROM files WHERE guideline_count > 0";
  return session.read((database) => ({
    source_files: database.get<[number]>("SELECT count(*) FROM files")?.[0] ?? 0,
    parsed_files: pass.parsed,
    removed_files: pass.removed,
    specs: database.get<[number]>("SELECT total(blocks) FROM classes")?.[0] ?? 0,
    guidelines: database.get<[number]>(guidelineCount)?.[0] ?? 0,
    // A getter, because finding dangling references takes longer than most passes.
    get diagnostics() {
      return index.specDiagnostics().length + index.guidelineDiagnostics().length;
    },
    duration_ms: pass.durationMs,
    ...(rebuilt === undefined ? {} : { rebuilt }),
  }));
}

/** The progress of another process that indexes the project. */
function indexingOf(database: Connection): IndexingProgress | undefined {
  const indexing = readMeta(database, "indexing");
  return indexing === undefined ? undefined : parseStored<IndexingProgress>(indexing);
}

/** The real path of a file, relative to the root; `undefined` if the file is missing or outside of the root. */
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
