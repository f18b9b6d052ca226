import type { ImpactEdge, SpecGraph } from "../../protocol/spec-query.ts";
import { isTestPath } from "../../specs/model/test-path.ts";
import type { Connection } from "../../sqlite/connection.ts";
import { createEdges, type NamedFiles } from "./edges.ts";

type Node = SpecGraph["nodes"][number];

/**
 * All blocks and the files they name, with the edges that are written down: links from block to
 * block, and mentions of files. Sorted as blocks are; files follow, by path.
 */
export function specGraph(database: Connection, named: NamedFiles): SpecGraph {
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
