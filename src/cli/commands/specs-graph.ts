import type { SpecGraph } from "../../protocol/spec-query.ts";
import { outputFormat } from "../choices.ts";
import { type Command, defineCommand, option } from "../command.ts";
import { findSpec } from "../find-record.ts";
import { toDot } from "../format/dot.ts";
import { toMermaid } from "../format/mermaid.ts";
import { wholeNumber } from "../values.ts";
import { withProject } from "../with-project.ts";

export const specsGraph: Command = defineCommand({
  arguments: [{ usage: "[ids...]", description: "Only what lies around these specs" }],
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
      const whole = project.specs.graph();
      const graph = ids.length === 0 ? whole : aroundOf(whole, ids, options.depth ?? 1);
      const format = options.format ?? (context.json ? "json" : "mermaid");
      if (format === "json") context.output.json(graph);
      else context.output.write(format === "dot" ? toDot(graph) : toMermaid(graph));
      return 0;
    }),
});

/** The part of a graph that lies within `depth` steps, in either direction, of the given nodes. */
function aroundOf(graph: SpecGraph, ids: readonly string[], depth: number): SpecGraph {
  const kept = new Set(ids);
  for (let step = 0; step < depth; step++) {
    const reached = graph.edges.filter((edge) => kept.has(edge.from) || kept.has(edge.to));
    for (const edge of reached) kept.add(edge.from).add(edge.to);
  }
  return {
    nodes: graph.nodes.filter((node) => kept.has(node.id)),
    edges: graph.edges.filter((edge) => kept.has(edge.from) && kept.has(edge.to)),
  };
}
