import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { WorkCause } from "../../../../src/client/index.ts";
import { visible } from "../../ui/text.ts";

const linkStyle = "text-accent underline";
const idStyle = "font-mono text-accent text-xs underline";

export function RunLink({ id }: { readonly id: string }): ReactNode {
  return (
    <Link to="/console/runs/$runId" params={{ runId: id }} className={idStyle}>
      {id}
    </Link>
  );
}

export function DispatchLink({ id }: { readonly id: string }): ReactNode {
  return (
    <Link to="/console/dispatches/$dispatchId" params={{ dispatchId: id }} className={idStyle}>
      {id}
    </Link>
  );
}

/** Names what started a run or a dispatch, with a link to it. */
export function CauseLink({ cause }: { readonly cause: WorkCause }): ReactNode {
  switch (cause.type) {
    case "webhook": {
      const { webhook, delivery_id } = cause;
      return (
        <Link to="/console/deliveries" search={{ webhook, delivery_id }} className={linkStyle}>
          a delivery of <bdi>{visible(webhook)}</bdi>
        </Link>
      );
    }
    case "run":
      return <RunLink id={cause.run_id} />;
    case "prompt":
      return <PromptLink prompt={cause} />;
    case "schedule":
      return (
        <Link to="/console/schedules" className={linkStyle}>
          the schedule <bdi>{visible(cause.schedule)}</bdi>
        </Link>
      );
    case "sender":
      return <bdi>{visible(cause.principal)}</bdi>;
  }
}

function PromptLink({
  prompt: { agent, instance_id, session, operation_id, dispatch_id, run_id },
}: {
  readonly prompt: Extract<WorkCause, { type: "prompt" }>;
}): ReactNode {
  const place = (
    <bdi>
      {visible(agent)} / {visible(instance_id)}
      {session === "default" ? "" : ` / ${visible(session)}`}
    </bdi>
  );
  // The events of a run's agent are in the run's stream, so the agent has no trace.
  if (run_id !== undefined)
    return (
      <>
        {place} in <RunLink id={run_id} />
      </>
    );
  return (
    <>
      <Link
        to="/console/agents/$name/$id/trace"
        params={{ name: agent, id: instance_id }}
        search={{ operation: operation_id }}
        className={linkStyle}
      >
        {place}
      </Link>
      {dispatch_id === undefined ? null : (
        <>
          {" "}
          in <DispatchLink id={dispatch_id} />
        </>
      )}
    </>
  );
}
