import type { SpecGraph } from "../../protocol/spec-query.ts";
import { truncate } from "../text/display-width.ts";
import { safeLine } from "../text/safe-text.ts";

type NodeKind = SpecGraph["nodes"][number]["kind"];

/** A graph in the DOT language of Graphviz. */
export function toDot(graph: SpecGraph): string {
  const nodes = graph.nodes.map(
    (node) =>
      `  ${quote(node.id)} [label=${quote(truncate(safeLine(node.title), 60))}, shape=${shapes[node.kind]}];`,
  );
  const edges = graph.edges.map(
    (edge) => `  ${quote(edge.from)} -> ${quote(edge.to)} [label=${quote(edge.kind)}];`,
  );
  return `${["digraph specs {", "  rankdir=LR;", "  node [fontname=sans];", ...nodes, ...edges, "}"].join("\n")}\n`;
}

const shapes: Readonly<Record<NodeKind, string>> = { spec: "box", file: "note", test: "hexagon" };

/** A quoted string of DOT, in which only quotes and backslashes mean something. */
function quote(text: string): string {
  return `"${safeLine(text).replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
