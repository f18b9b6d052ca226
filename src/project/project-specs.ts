import type { SpecBlock } from "../protocol/spec-block.ts";
import type { SpecQuery } from "../protocol/spec-query.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { ProjectSpecs } from "./project.ts";
import type { ProjectIndex } from "./project-index.ts";
import { findImpact } from "./query/impact.ts";
import { runQuery } from "./query/run-query.ts";
import { specGraph } from "./query/spec-graph.ts";
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
