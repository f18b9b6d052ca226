import type { SpecBlock } from "../protocol/spec-block.ts";
import type { ImpactEdge, SpecGraph, SpecQuery } from "../protocol/spec-query.ts";
import { isTestPath } from "../specs/model/test-path.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { ProjectSpecs } from "./project.ts";
import type { ProjectIndex } from "./project-index.ts";
import { createEdges, type NamedFiles } from "./query/edges.ts";
import { findImpact } from "./query/impact.ts";
import { runQuery } from "./query/run-query.ts";
import { keysOfId } from "./store/block-id.ts";
import { type ProjectFacts, readBlocks } from "./store/block-reader.ts";

/** Blocks that `all` reads at a time: enough to be quick, few enough to be small. */
const chunkSize = 500;

interface Place {
  readonly path: string;
  readonly position: number;
}

/** Creates the specs of a project over its index. */
export function createProjectSpecs(index: ProjectIndex): ProjectSpecs {
  const facts: ProjectFacts = index;
  const named = { hasFile: index.hasFile, aliases: index.aliases };
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
    impact: (request) => signed(index.read((database) => findImpact(database, { ...named, request }))),
    graph: () => signed(index.cached("graph", (database) => specGraph(database, named))),
  };
}

type Node = SpecGraph["nodes"][number];

/**
 * All blocks and the files they name, with the edges that are written down: links from block to
 * block, and mentions of files. Sorted as blocks are; files follow, by path.
 */
function specGraph(database: Connection, named: NamedFiles): SpecGraph {
  const links = createEdges(database, named);
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
