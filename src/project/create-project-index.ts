import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { relative, sep } from "node:path";
import { version } from "../base/own-package.ts";
import { createIgnoreScope, loadOuterRules } from "../files/ignore-scope.ts";
import type { IndexingProgress } from "../protocol/indexing.ts";
import type { Connection } from "../sqlite/statements.ts";
import type { ScanSummary } from "./project.ts";
import type { ProjectIndex } from "./project-index.ts";
import { specDiagnostics } from "./query/edges.ts";
import { IndexingState, type PassContext } from "./refresh/index-pass.ts";
import { refillIndex } from "./refresh/refresh-index.ts";
import { type PassResult, ProjectRefresh } from "./refresh/refresh-project.ts";
import { createFileSet, filesOf } from "./scan/folder.ts";
import { readDates } from "./scan/git/file-dates.ts";
import { createAliases, type SourceCatalog } from "./scan/source-catalog.ts";
import { createSourceReader, decodeText } from "./scan/source-reader.ts";
import { createGuidelineStore } from "./store/block-reader.ts";
import type { IndexPlace } from "./store/index-place.ts";
import { IndexSession, loadLinks } from "./store/index-session.ts";
import { parseStored, readMeta } from "./store/open-index.ts";

export interface ProjectIndexOptions {
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
    // Finding dangling references takes longer than most passes, so it is done when a caller reads it.
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

/** The real path of a file, relative to the root; undefined for a missing file and for one outside of the root. */
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
