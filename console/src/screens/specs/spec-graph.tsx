import "@xyflow/react/dist/style.css";
import { useNavigate } from "@tanstack/react-router";
import { Background, Controls, type Edge, type Node, ReactFlow } from "@xyflow/react";
import ELK from "elkjs/lib/elk-api.js";
import workerUrl from "elkjs/lib/elk-worker.min.js?url";
import { type ReactNode, useEffect, useState } from "react";
import type { ImpactGraph } from "../../../../src/client/index.ts";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { edgeReasons } from "./spec-names.ts";

interface Layout {
  readonly nodes: Node[];
  readonly edges: Edge[];
  readonly omitted: number;
}

/** The most edges in a drawing; with more it is unreadable. */
const mostEdges = 300;
const width = 230;
const height = 46;

/** Requirements, designs, tasks, tests and files from left to right, laid out in a worker. */
export function SpecGraph({ graph }: { readonly graph: ImpactGraph }): ReactNode {
  const [layout, setLayout] = useState<Layout | Error>();
  const navigate = useNavigate();
  const drawn = JSON.stringify(graph);
  useEffect(() => {
    let isOver = false;
    layOut(JSON.parse(drawn) as ImpactGraph).then(
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
      <Notice icon="branch" title="No related items">
        It names no spec, test or file, and none names it.
      </Notice>
    );
  return (
    <>
      <div className="h-112" data-testid="graph" role="group" aria-label="Graph, the same as the list below">
        <ReactFlow
          nodes={layout.nodes}
          edges={layout.edges}
          fitView
          minZoom={0.05}
          nodesConnectable={false}
          nodesDraggable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          disableKeyboardA11y
          preventScrolling={false}
          colorMode="system"
          onNodeClick={(_, { id, data }) => {
            if (data.isFile === true) void navigate({ to: "/console/files", search: { path: id } });
            else void navigate({ to: "/console/specs/$id", params: { id } });
          }}
        >
          <Background />
          <Controls showInteractive={false} />
        </ReactFlow>
      </div>
      <p className="flex flex-wrap gap-x-4 gap-y-1 border-line border-t px-4 py-2 text-soft text-xs">
        {Object.entries(colours).map(([kind, colour]) => (
          <span key={kind} className="inline-flex items-center gap-1.5">
            <span className="size-2.5 rounded-sm border-2" style={{ borderColor: colour }} />
            {kind}
          </span>
        ))}
        {layout.omitted > 0 ? (
          <span>{`${layout.omitted.toLocaleString()} more links are not drawn`}</span>
        ) : null}
      </p>
    </>
  );
}

const colours: Readonly<Record<ImpactGraph["nodes"][number]["kind"], string>> = {
  constraint: "var(--color-faint)",
  requirement: "var(--color-accent)",
  design: "var(--color-soft)",
  task: "var(--color-ink)",
  test: "var(--color-good)",
  file: "var(--color-warn)",
};
const columns = Object.keys(colours);

async function layOut({ nodes, edges: given, omitted }: ImpactGraph): Promise<Layout> {
  const edges = given.slice(0, mostEdges);
  const linked = new Set(edges.flatMap(({ from, to }) => [from, to]));
  const drawn = nodes.filter(({ id }) => linked.has(id));
  if (edges.length === 0) return { nodes: [], edges: [], omitted: 0 };
  const columnOf = new Map(drawn.map(({ id, kind }) => [id, columns.indexOf(kind)]));
  // From left to right, whichever of the two names the other.
  const isTurned = ({ from, to }: (typeof edges)[number]): boolean =>
    (columnOf.get(from) ?? 0) > (columnOf.get(to) ?? 0);
  // From top to bottom if the window is too narrow.
  const isNarrow = window.innerWidth < 700;
  const elk = new ELK({ workerUrl });
  try {
    const placed = await elk.layout({
      id: "graph",
      layoutOptions: {
        "elk.algorithm": "layered",
        "elk.direction": isNarrow ? "DOWN" : "RIGHT",
        "elk.partitioning.activate": "true",
        "elk.layered.spacing.nodeNodeBetweenLayers": isNarrow ? "50" : "110",
      },
      children: drawn.map(({ id }) => ({
        id,
        width,
        height,
        layoutOptions: { "elk.partitioning.partition": String(columnOf.get(id) ?? 0) },
      })),
      edges: edges.map((edge, index) => ({
        id: String(index),
        sources: [isTurned(edge) ? edge.to : edge.from],
        targets: [isTurned(edge) ? edge.from : edge.to],
      })),
    });
    const positions = new Map(placed.children?.map(({ id, x = 0, y = 0 }) => [id, { x, y }]));
    return {
      nodes: drawn.map(({ id, kind, title, changed }) => ({
        id,
        position: positions.get(id) ?? { x: 0, y: 0 },
        data: { label: visible(title.slice(0, 120)), isFile: kind === "file" || kind === "test" },
        width,
        style: {
          borderColor: colours[kind],
          borderWidth: changed === true ? 3 : 1,
          height,
          overflow: "hidden",
          textOverflow: "ellipsis",
          whiteSpace: "nowrap",
        },
        sourcePosition: (isNarrow ? "bottom" : "right") as Node["sourcePosition"] & string,
        targetPosition: (isNarrow ? "top" : "left") as Node["targetPosition"] & string,
      })) as Node[],
      edges: edges.map((edge, index) => ({
        id: String(index),
        source: isTurned(edge) ? edge.to : edge.from,
        target: isTurned(edge) ? edge.from : edge.to,
        label: isTurned(edge)
          ? `${isNarrow ? "↑" : "←"} ${edgeReasons[edge.kind]}`
          : `${edgeReasons[edge.kind]} ${isNarrow ? "↓" : "→"}`,
      })),
      omitted: omitted + given.length - edges.length,
    };
  } finally {
    elk.terminateWorker();
  }
}
