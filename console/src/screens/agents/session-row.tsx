import type { ReactNode } from "react";
import type { ListedSession } from "../../../../src/client/index.ts";
import { ListRow } from "../../ui/list-row.tsx";
import { formatCost, formatTokens, visible } from "../../ui/text.ts";

/** One conversation in a list. */
export function SessionRow({
  session: { agent, instance_id, session, status, title, error, cost, tokens, position, touched_at },
  hidesAgent = false,
}: {
  readonly session: ListedSession;
  /** Whether the list is that of one agent. */
  readonly hidesAgent?: boolean;
}): ReactNode {
  const id = session === "default" ? instance_id : `${instance_id} / ${session}`;
  const name = hidesAgent ? id : `${agent} / ${id}`;
  return (
    <ListRow
      link={{
        to: "/console/agents/$name/$id",
        params: { name: agent, id: instance_id },
        search: session === "default" ? {} : { session },
      }}
      status={status === "waiting" ? "waiting for you" : status}
      title={title ?? id}
      aside={title === undefined && hidesAgent ? undefined : title === undefined ? agent : name}
      detail={
        error !== undefined && status === "failed"
          ? visible((error.cause ?? error).message.slice(0, 300))
          : `${position} ${position === 1 ? "entry" : "entries"}${tokens === undefined || tokens === 0 ? "" : ` · ${formatTokens(tokens)} tokens`}`
      }
      isBad={status === "failed"}
      // Without a model call there is no cost to name.
      figure={cost === undefined || cost === null || !tokens ? undefined : formatCost(cost)}
      at={touched_at}
    />
  );
}
