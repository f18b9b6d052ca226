import { type ReactNode, useId, useState } from "react";
import type { ApprovalRequest } from "../../../src/client/index.ts";
import { isReadOnly } from "../api/server.ts";
import { useChange } from "../api/use-server.ts";
import { AlwaysAllow } from "./always-allow.tsx";
import { Button } from "./button.tsx";
import { QuestionForm } from "./question.tsx";
import { SchemaFields } from "./schema-fields.tsx";

interface DecisionProps {
  /** The waiting call, as far as it is known: a conversation knows its names first. */
  readonly call: Pick<ApprovalRequest, "agent" | "instance_id" | "approval_id"> & Partial<ApprovalRequest>;
}

function isQuestion(call: DecisionProps["call"]): call is ApprovalRequest {
  return call.kind === "question" && call.message !== undefined;
}

/** Answers the question of a call. Approves a call, with other arguments if its tool allows them, or denies it with a reason that the model reads. */
export function Decision({ call }: DecisionProps): ReactNode {
  const { agent, instance_id: instance, approval_id, args, input_schema: inputSchema } = call;
  // A rule can help only if the configuration asks for the approval.
  const isCallers = call.kind === "caller";
  const hasRule = !isCallers && call.requested_at !== undefined && call.no_allow_rule === undefined;
  const field = useId();
  const [reason, setReason] = useState("");
  const [isAllowing, setAllowing] = useState(false);
  const [edited, setEdited] = useState<Readonly<Record<string, unknown>>>();
  const decide = useChange(
    (client, approved: boolean) =>
      client.agents.approve(agent, {
        id: instance,
        approval_id,
        approved,
        reason: reason.trim() || undefined,
        args: approved ? edited : undefined,
      }),
    ["approvals", "sessions", "waiting"],
  );
  if (isReadOnly) {
    const awaited = isCallers
      ? "its caller's result"
      : call.kind === "question"
        ? "an answer"
        : "an approval";
    return <p className="text-soft text-sm">It waits for {awaited}.</p>;
  }
  if (isQuestion(call)) return <QuestionForm call={call} />;
  if (isAllowing)
    return (
      <AlwaysAllow
        agent={agent}
        instance={instance}
        approval_id={approval_id}
        onCancel={() => setAllowing(false)}
      />
    );
  const isDecided = decide.isPending || decide.isSuccess;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!isCallers) decide.mutate(true);
      }}
      className="flex flex-wrap items-center gap-2 rounded-lg border border-warn/40 bg-warn-back/50 p-2"
    >
      {isCallers ? (
        <p className="w-full text-soft text-sm">
          The caller runs this tool, and answers with its result. You can only deny the call.
        </p>
      ) : null}
      {edited === undefined ? null : (
        <fieldset className="w-full rounded-md border border-line bg-panel p-3">
          <legend className="px-1 text-soft text-sm">Arguments</legend>
          <SchemaFields schema={inputSchema} value={edited} onChange={setEdited} />
        </fieldset>
      )}
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
      {inputSchema === undefined ? null : (
        <Button
          disabled={isDecided}
          onClick={() =>
            setEdited(edited === undefined ? { ...(args as Record<string, unknown>) } : undefined)
          }
        >
          {edited === undefined ? "Change the arguments" : "Leave them as they were"}
        </Button>
      )}
      {edited === undefined && hasRule ? (
        <span className="order-last w-full text-center sm:order-none sm:w-auto">
          <Button variant="quiet" disabled={isDecided} onClick={() => setAllowing(true)}>
            Always allow…
          </Button>
        </span>
      ) : null}
      <Button variant="bad" icon="close" disabled={isDecided} onClick={() => decide.mutate(false)}>
        Deny
      </Button>
      {isCallers ? null : (
        <Button variant="solid" icon="check" type="submit" disabled={isDecided}>
          {edited === undefined ? "Approve" : "Approve with these"}
        </Button>
      )}
      {decide.isError ? (
        <p role="alert" className="w-full text-bad text-sm foreign">
          {decide.error.message}
        </p>
      ) : null}
    </form>
  );
}
