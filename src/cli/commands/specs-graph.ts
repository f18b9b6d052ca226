import type { SpecGraph } from "../../protocol/spec-query.ts";
import { outputFormat, wholeNumber } from "../choices.ts";
import { type Command, defineCommand, option } from "../command.ts";
import { findSpec } from "../find-record.ts";
import { safeLine, truncate } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const specsGraph: Command = defineCommand({
  arguments: [{ usage: "[ids...]", description: "Only the neighbourhood of these specs" }],
  options: {
    format: option(
      "--format <format>",
      "Mermaid (default), dot or json",
      outputFormat(["mermaid", "dot", "json"]),
    ),
    depth: option(
      "--depth <number>",
      "How many steps around the named specs, 1 to 5 (default 1)",
      wholeNumber(1, 5),
    ),
  },
  examples: [
    "kit specs graph",
    "kit specs graph fw_a-checkout-requirements-req1 --depth 2",
    "kit specs graph --format dot | dot -Tsvg > specs.svg",
  ],
  run: ({ args, options }, context) =>
    withProject(context, async ({ project }) => {
      const ids = args.map((id) => findSpec(project, id).id);
      const fullGraph = project.specs.graph();
      const graph = ids.length === 0 ? fullGraph : aroundOf(fullGraph, ids, options.depth ?? 1);
      const format = options.format ?? (context.json ? "json" : "mermaid");
      if (format === "json") context.output.json(graph);
      else context.output.write(format === "dot" ? toDot(graph) : toMermaid(graph));
    }),
});

/** The part of a graph within `depth` edges, in either direction, of the given nodes. */
function aroundOf(graph: SpecGraph, ids: readonly string[], depth: number): SpecGraph {
  const selectedIds = new Set(ids);
  for (let step = 0; step < depth; step++) {
    const edges = graph.edges.filter((edge) => selectedIds.has(edge.from) || selectedIds.has(edge.to));
    for (const edge of edges) selectedIds.add(edge.from).add(edge.to);
  }
  return {
    nodes: graph.nodes.filter((node) => selectedIds.has(node.id)),
    edges: graph.edges.filter((edge) => selectedIds.has(edge.from) && selectedIds.has(edge.to)),
  };
}

type NodeKind = SpecGraph["nodes"][number]["kind"];

/** A graph in the DOT language of Graphviz. */
export function toDot(graph: SpecGraph): string {
  const nodes = graph.nodes.map(
    (node) =>
      `  ${quote(node.id)} [label=${quote(truncate(safeLine(node.title), 60))}, shape=${dotShapes[node.kind]}];`,
  );
  const edges = graph.edges.map(
    (edge) => `  ${quote(edge.from)} -> ${quote(edge.to)} [label=${quote(edge.kind)}];`,
  );
  return `${["digraph specs {", "  rankdir=LR;", "  node [fontname=sans];", ...nodes, ...edges, "}"].join("\n")}\n`;
}

const dotShapes: Readonly<Record<NodeKind, string>> = { spec: "box", file: "note", test: "hexagon" };

/** A quoted DOT string; only quotes and backslashes are special in it. */
function quote(text: string): string {
  return `"${safeLine(text).replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** A graph as a Mermaid flowchart, as GitHub and most Markdown viewers draw it. */
export function toMermaid(graph: SpecGraph): string {
  const names = new Map(graph.nodes.map((node, index) => [node.id, `n${index}`]));
  const nodes = graph.nodes.map((node) => {
    const [open, close] = mermaidShapes[node.kind];
    return `  ${names.get(node.id)}${open}"${escapeLabel(node.title)}"${close}`;
  });
  const edges = graph.edges.flatMap((edge) => {
    const from = names.get(edge.from);
    const to = names.get(edge.to);
    return from === undefined || to === undefined ? [] : [`  ${from} -->|${edge.kind}| ${to}`];
  });
  return `${["flowchart LR", ...nodes, ...edges].join("\n")}\n`;
}

const mermaidShapes: Readonly<Record<NodeKind, readonly [open: string, close: string]>> = {
  spec: ["[", "]"],
  file: ["([", "])"],
  test: ["{{", "}}"],
};

/** Mermaid reads `#name;` and `#number;` as characters, so special characters are written in that form. */
function escapeLabel(text: string): string {
  return truncate(safeLine(text), 60).replace(
    /[^\p{L}\p{N}\p{M} .,:/…_-]/gu,
    (char) => `#${char.codePointAt(0)};`,
  );
}
