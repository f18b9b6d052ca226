import "@xyflow/react/dist/style.css";
import { useNavigate } from "@tanstack/react-router";
import { Background, Controls, type Edge, type Node, ReactFlow } from "@xyflow/react";
import ELK from "elkjs/lib/elk-api.js";
import workerUrl from "elkjs/lib/elk-worker.min.js?url";
import { type ReactNode, useEffect, useState } from "react";
import type { Impact } from "../../../../src/client/index.ts";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";

type GraphEdge = Impact["affected"][number]["path"][number];

interface SpecGraphProps {
  readonly edges: readonly GraphEdge[];
  /** Where the paths begin. */
  readonly roots: readonly string[];
  /** Ids that are known to be of blocks; the others are told by their links. */
  readonly specs: readonly string[];
}

interface Layout {
  readonly nodes: Node[];
  readonly edges: Edge[];
  readonly omitted: number;
}

/** A larger drawing shows no more to a person. */
const mostEdges = 400;
const width = 240;
const height = 44;

/** Paths of specs, tests and files as a graph, laid out in a worker. */
export function SpecGraph({ edges, roots, specs }: SpecGraphProps): ReactNode {
  const [layout, setLayout] = useState<Layout | Error>();
  const navigate = useNavigate();
  const drawn = JSON.stringify([edges, roots, specs]);
  useEffect(() => {
    let isOver = false;
    const [given, from, known] = JSON.parse(drawn) as [GraphEdge[], string[], string[]];
    layOut(given, { roots: from, specs: known }).then(
      (done) => isOver || setLayout(done),
      (error: unknown) => isOver || setLayout(error instanceof Error ? error : new Error(String(error))),
    );
    return () => {
      isOver = true;
    };
  }, [drawn]);
  if (layout === undefined) return <Loading />;
  if (layout instanceof Error) return <ErrorNotice error={layout} />;
  if (layout.nodes.length === 0)
    return (
      <Notice icon="branch" title="Nothing hangs together with it">
        It names no spec, test or file, and none names it.
      </Notice>
    );
  return (
    <>
      <div className="h-112" data-testid="graph">
        <ReactFlow
          nodes={layout.nodes}
          edges={layout.edges}
          fitView
          minZoom={0.05}
          nodesConnectable={false}
          nodesDraggable={false}
          colorMode="system"
          onNodeClick={(_, { id, data }) => {
            if (data.isSpec === true) void navigate({ to: "/console/specs/$id", params: { id } });
          }}
        >
          <Background />
          <Controls showInteractive={false} />
        </ReactFlow>
      </div>
      {layout.omitted > 0 ? (
        <p className="px-4 py-2 text-soft text-xs">
          {layout.omitted.toLocaleString()} more links are not drawn.
        </p>
      ) : null}
    </>
  );
}

async function layOut(
  given: readonly GraphEdge[],
  { roots, specs }: Omit<SpecGraphProps, "edges">,
): Promise<Layout> {
  const unique = [...new Map(given.map((edge) => [`${edge.from}\n${edge.to}\n${edge.kind}`, edge])).values()];
  const edges = unique.slice(0, mostEdges);
  const blocks = new Set(specs);
  const tests = new Set<string>();
  for (const { from, to, kind } of edges) {
    // The other links lead from or to a file.
    const isBetweenBlocks = !["code_ref", "test_ref", "defines"].includes(kind);
    if (isBetweenBlocks) blocks.add(from).add(to);
    if (kind === "test_ref") tests.add(from).add(to);
  }
  const kindOf = (id: string): string => {
    if (roots.includes(id)) return "root";
    if (blocks.has(id)) return "spec";
    return tests.has(id) ? "test" : "file";
  };
  const ids = [...new Set(edges.flatMap(({ from, to }) => [from, to]))];
  if (edges.length === 0) return { nodes: [], edges: [], omitted: 0 };
  const elk = new ELK({ workerUrl });
  try {
    const placed = await elk.layout({
      id: "graph",
      layoutOptions: {
        "elk.algorithm": "layered",
        "elk.direction": "RIGHT",
        "elk.layered.spacing.nodeNodeBetweenLayers": "70",
      },
      children: ids.map((id) => ({ id, width, height })),
      edges: edges.map(({ from, to }, index) => ({ id: String(index), sources: [from], targets: [to] })),
    });
    return {
      nodes: (placed.children ?? []).map(({ id, x = 0, y = 0 }) => ({
        id,
        position: { x, y },
        data: { label: id, isSpec: blocks.has(id) },
        width,
        style: {
          borderColor: borders[kindOf(id)],
          height,
          overflow: "hidden",
          textOverflow: "ellipsis",
          whiteSpace: "nowrap",
        },
        sourcePosition: "right" as Node["sourcePosition"] & string,
        targetPosition: "left" as Node["targetPosition"] & string,
      })) as Node[],
      edges: edges.map(({ from, to, kind }, index) => ({
        id: String(index),
        source: from,
        target: to,
        label: kind.replace("_", " "),
      })),
      omitted: unique.length - edges.length,
    };
  } finally {
    elk.terminateWorker();
  }
}

const borders: Readonly<Record<string, string>> = {
  root: "var(--color-accent)",
  spec: "var(--color-line-strong)",
  test: "var(--color-good)",
  file: "var(--color-warn)",
};
