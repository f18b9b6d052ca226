import type { SpecGraph } from "../../protocol/spec-query.ts";
import { truncate } from "../text/display-width.ts";
import { safeLine } from "../text/safe-text.ts";

type NodeKind = SpecGraph["nodes"][number]["kind"];

/** A graph as a Mermaid flowchart, as GitHub and most Markdown viewers draw it. */
export function toMermaid(graph: SpecGraph): string {
  const names = new Map(graph.nodes.map((node, index) => [node.id, `n${index}`]));
  const nodes = graph.nodes.map((node) => {
    const [open, close] = shapes[node.kind];
    return `  ${names.get(node.id)}${open}"${escapeLabel(node.title)}"${close}`;
  });
  const edges = graph.edges.flatMap((edge) => {
    const from = names.get(edge.from);
    const to = names.get(edge.to);
    return from === undefined || to === undefined ? [] : [`  ${from} -->|${edge.kind}| ${to}`];
  });
  return `${["flowchart LR", ...nodes, ...edges].join("\n")}\n`;
}

const shapes: Readonly<Record<NodeKind, readonly [open: string, close: string]>> = {
  spec: ["[", "]"],
  file: ["([", "])"],
  test: ["{{", "}}"],
};

/** Mermaid reads `#name;` and `#number;` as characters; anything else that means something to it goes so. */
function escapeLabel(text: string): string {
  return truncate(safeLine(text), 60).replace(
    /[^\p{L}\p{N}\p{M} .,:/…_-]/gu,
    (char) => `#${char.codePointAt(0)};`,
  );
}
