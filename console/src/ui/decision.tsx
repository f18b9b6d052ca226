import { type ReactNode, useId, useState } from "react";
import { isReadOnly } from "../api/server.ts";
import { useChange } from "../api/use-server.ts";
import { Button } from "./button.tsx";

interface DecisionProps {
  readonly agent: string;
  readonly instance: string;
  readonly approval_id: string;
}

/** Approves a call, or denies it with a reason that the model reads. */
export function Decision({ agent, instance, approval_id }: DecisionProps): ReactNode {
  const field = useId();
  const [reason, setReason] = useState("");
  const decide = useChange(
    (client, approved: boolean) =>
      client.agents.approve(agent, {
        id: instance,
        approval_id,
        approved,
        reason: reason.trim() || undefined,
      }),
    ["approvals", "sessions"],
  );
  if (isReadOnly) return <p className="text-soft text-sm">It waits for an approval.</p>;
  const isDecided = decide.isPending || decide.isSuccess;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        decide.mutate(true);
      }}
      className="flex flex-wrap items-center gap-2 rounded-lg border border-warn/40 bg-warn-back/50 p-2"
    >
      <label htmlFor={field} className="sr-only">
        Reason
      </label>
      <input
        id={field}
        value={reason}
        onChange={({ target }) => setReason(target.value)}
        placeholder="Reason, which the model reads (optional)"
        maxLength={10_000}
        className="h-8 w-full min-w-0 rounded-md sm:w-auto sm:min-w-40 sm:flex-1 border border-line-strong bg-panel px-2.5 text-sm placeholder:text-faint"
      />
      <Button variant="bad" icon="close" disabled={isDecided} onClick={() => decide.mutate(false)}>
        Deny
      </Button>
      <Button variant="solid" icon="check" type="submit" disabled={isDecided}>
        Approve
      </Button>
      {decide.isError ? (
        <p role="alert" className="w-full text-bad text-sm">
          {decide.error.message}
        </p>
      ) : null}
    </form>
  );
}
