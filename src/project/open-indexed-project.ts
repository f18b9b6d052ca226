import { realpathSync, statSync } from "node:fs";
import { basename, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { KitError } from "../base/kit-error.ts";
import type { SpecBlock } from "../protocol/spec-block.ts";
import type { ImpactEdge, SpecGraph, SpecQuery } from "../protocol/spec-query.ts";
import { isTestPath } from "../specs/model/mentions.ts";
import type { Connection } from "../sqlite/statements.ts";
import { createProjectGuidelines } from "./create-project-guidelines.ts";
import { createProjectIndex } from "./create-project-index.ts";
import type { OpenProjectOptions, Project, ProjectSpecs, RefreshOptions, ScanSummary } from "./project.ts";
import type { ProjectIndex } from "./project-index.ts";
import { createEdges, type NamedFiles } from "./query/edges.ts";
import { findImpact } from "./query/impact.ts";
import { runQuery } from "./query/run-query.ts";
import { pageFeatures, readFeatures, readOutline } from "./query/spec-outline.ts";
import { createSourceCatalog, type SourceCatalog } from "./scan/source-catalog.ts";
import { type ProjectFacts, readBlocks } from "./store/block-reader.ts";
import { keysOfId } from "./store/block-row.ts";
import { IndexPlace, type SharedIndex } from "./store/index-place.ts";
import { watchProject } from "./watch/watch-project.ts";

/** As `openProject`, with an index that may lie in a database of the caller. */
export async function openIndexedProject(
  options: Omit<OpenProjectOptions, "indexFile"> &
    RefreshOptions & { readonly indexFile?: string | SharedIndex | undefined },
): Promise<Project> {
  const root = rootOf(options.root);
  const place = new IndexPlace(root, options.indexFile);
  const { config = {}, readOnly = false } = options;
  const catalog = createSourceCatalog(config);
  const index = createProjectIndex({ root, place, catalog });
  const close = async (): Promise<void> => {
    await index.close();
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
    specs: createProjectSpecs(index, catalog),
    guidelines: createProjectGuidelines({ index, name: basename(root), readOnly, config }),
    files: index.files,
    realPath: (path) => index.aliases().realOf(path),
    datesOf: index.datesOf,
    indexing: index.indexing,
    indexProblem: () => place.problem,
    ready: (file) => (file === undefined ? first : index.ready(file)),
    refresh,
    watch: async (onChange, onError) => await watchProject(index, { onChange, onError }),
    close,
  };
}

/** Most projects are up to date by then, so their first answers are complete. */
async function shortWait(): Promise<void> {
  await setTimeout(250, undefined, { ref: false });
}

function rootOf(given: string): string {
  try {
    const root = realpathSync(resolve(given));
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

/** Blocks that `all` reads at a time: enough to be quick, few enough to be small. */
const chunkSize = 500;

interface Place {
  readonly path: string;
  readonly position: number;
}

/** Creates the specs of a project over its index. */
function createProjectSpecs(index: ProjectIndex, catalog: SourceCatalog): ProjectSpecs {
  const facts: ProjectFacts = index;
  const namedFiles = { hasFile: index.hasFile, aliases: index.aliases };
  /** A caller that asks for an alias means the file. */
  const byRealPath = (query: SpecQuery): SpecQuery =>
    query.path === undefined
      ? query
      : { ...query, path: index.aliases().realOf(query.path.replace(/^(?:\.\/)+/, "")) };
  const readChunk = (database: Connection, { path, position }: Place) => {
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
  /** Says of an answer that it may lack what is not indexed yet. */
  const signed = <Answer extends object>(answer: Answer): Answer => {
    const indexing = index.indexing();
    return indexing === undefined ? answer : { ...answer, indexing };
  };
  return {
    query: (query) =>
      signed(index.read((database) => runQuery(database, { query: byRealPath(query), facts }))),
    get(id) {
      return index.read(
        (database) => readBlocks(database, { keys: keysOfId(database, id).slice(0, 1), facts })[0],
      );
    },
    *all(): Iterable<SpecBlock> {
      // Goes on by place and not by key, because keys change with every edit of their file.
      for (let place: Place | undefined = { path: "", position: -1 }; place !== undefined; ) {
        const from: Place = place;
        const chunk = index.read((database) => readChunk(database, from));
        yield* chunk.blocks;
        place = chunk.last;
      }
    },
    diagnostics: index.specDiagnostics,
    frameworkOf: (path) => catalog.specAdapterFor(path)?.framework,
    features: (query = {}) => signed(pageFeatures(index.cached("features", readFeatures), query)),
    outline(query) {
      const features = index.cached("features", readFeatures);
      return signed(index.read((database) => readOutline(database, { query, features })));
    },
    impact: (request) => signed(index.read((database) => findImpact(database, { ...namedFiles, request }))),
    graph: () => signed(index.cached("graph", (database) => specGraph(database, namedFiles))),
  };
}

type Node = SpecGraph["nodes"][number];

/**
 * All blocks and the files they name, with the edges that are written down: links from block to
 * block, and mentions of files. Sorted as blocks are; files follow, by path.
 */
function specGraph(database: Connection, namedFiles: NamedFiles): SpecGraph {
  const links = createEdges(database, namedFiles);
  const nodes: Node[] = [];
  const files = new Map<string, Node>();
  const edges: ImpactEdge[] = [];
  const rows = database.all<[key: number, title: string]>(
    `SELECT b.key, b.title FROM files f CROSS JOIN blocks b ON b.file = f.id ORDER BY f.path, b.position`,
  );
  for (const [key, title] of rows) {
    const block = links.block(key);
    nodes.push({ id: block.id, kind: "spec", title });
    const seen = new Set<string>();
    const add = (to: string, kind: ImpactEdge["kind"]): void => {
      const name = `${kind} ${to}`;
      if (!seen.has(name)) edges.push({ from: block.id, to, kind });
      seen.add(name);
    };
    for (const { to, kind } of links.linksOf(block)) add(to.id, kind);
    for (const { path, kind } of links.filesOf(block)) {
      add(path, kind);
      files.set(path, { id: path, kind: isTestPath(path) ? "test" : "file", title: path });
    }
  }
  const fileNodes = [...files.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  return { nodes: [...nodes, ...fileNodes], edges };
}
