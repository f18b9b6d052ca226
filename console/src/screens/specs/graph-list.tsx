import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import type { ImpactGraph } from "../../../../src/client/index.ts";
import { Button } from "../../ui/button.tsx";
import { Chip } from "../../ui/chips.tsx";
import { SourceLink } from "../../ui/source-link.tsx";
import { visible } from "../../ui/text.ts";
import { edgeReasons } from "./spec-names.ts";

type Node = ImpactGraph["nodes"][number];

const firstNodes = 40;

/** A graph as a list, for keyboards and screen readers: each item with its links and their reasons. */
export function GraphList({ graph: { nodes, edges } }: { readonly graph: ImpactGraph }): ReactNode {
  const [most, setMost] = useState(firstNodes);
  const { byId, byFrom } = useMemo(
    () => ({
      byId: new Map(nodes.map((node) => [node.id, node])),
      byFrom: Map.groupBy(edges, ({ from }) => from),
    }),
    [nodes, edges],
  );
  const naming = nodes.filter(({ id }) => byFrom.has(id));
  if (naming.length === 0) return null;
  return (
    <section aria-label="The graph as a list" className="border-line border-t">
      <ul className="divide-y divide-line">
        {naming.slice(0, most).map((node) => (
          <li key={node.id} className="flex flex-col gap-1 px-4 py-2 text-sm">
            <NodeName node={node} />
            <ul className="flex flex-col gap-0.5 pl-4">
              {byFrom.get(node.id)?.map(({ to, kind }) => (
                <li key={`${kind} ${to}`} className="flex flex-wrap items-baseline gap-x-2">
                  <span className="text-faint text-xs">{edgeReasons[kind]}</span>
                  <NodeName node={byId.get(to) ?? { id: to, kind: "file", title: to }} />
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
      {naming.length > most ? (
        <div className="p-3">
          <Button
            onClick={() => setMost(most + 200)}
          >{`Show more: ${(naming.length - most).toLocaleString()} are left`}</Button>
        </div>
      ) : null}
    </section>
  );
}

function NodeName({ node: { id, kind, title, changed } }: { readonly node: Node }): ReactNode {
  return (
    <span className="flex min-w-0 flex-wrap items-baseline gap-x-2">
      {kind === "file" || kind === "test" ? (
        <SourceLink path={id} />
      ) : (
        <Link
          to="/console/specs/$id"
          params={{ id }}
          preload={false}
          className="min-w-0 text-accent hover:underline foreign"
        >
          <bdi>{visible(title)}</bdi>
        </Link>
      )}
      <span className="text-faint text-xs">{kind}</span>
      {changed === true ? <Chip tone="warn">changed</Chip> : null}
    </span>
  );
}
