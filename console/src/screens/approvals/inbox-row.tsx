import type { ReactNode } from "react";
import type { WaitingItem } from "../../../../src/client/index.ts";
import { ListRow } from "../../ui/list-row.tsx";
import { firstWords } from "../../ui/text.ts";
import { Moment } from "../../ui/time.tsx";
import { describeQuestion } from "../runs/task-question.ts";

/** The key of an item of the inbox among the others. */
export function keyOfItem(item: WaitingItem): string {
  switch (item.kind) {
    case "call":
      return item.approval.approval_id;
    case "signal":
      return `${item.run_id} ${item.position}`;
    case "login":
      return `login ${item.server}`;
  }
}

/** One item of the inbox in a list; it leads to where one decides. */
export function InboxRow({ item }: { readonly item: WaitingItem }): ReactNode {
  if (item.kind === "signal") {
    const question = describeQuestion(item);
    return (
      <ListRow
        link={{ to: "/console/runs/$runId", params: { runId: item.run_id } }}
        status="run"
        title={question ?? item.workflow}
        aside={`…${item.run_id.slice(-6)}`}
        detail={
          <>
            {question === undefined ? `waits for ${firstWords(item.signal)}` : "kit asks whether it is done"}
            {item.until === undefined ? null : (
              <>
                , at most until <Moment at={item.until} />
              </>
            )}
          </>
        }
        at={item.requested_at}
      />
    );
  }
  if (item.kind === "login")
    return (
      <ListRow
        link={{ to: "/console/approvals" }}
        status="login"
        title={item.server}
        aside={item.host}
        detail="An MCP server that needs a login"
        at={item.requested_at}
      />
    );
  const { tool, args, agent, instance_id } = item.approval;
  return (
    <ListRow
      link={{ to: "/console/approvals" }}
      status="call"
      title={tool}
      aside={`${agent} / ${instance_id}`}
      detail={firstWords(args)}
      at={item.requested_at}
    />
  );
}
