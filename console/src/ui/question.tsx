import { type ReactNode, useId, useState } from "react";
import type { ApprovalRequest } from "../../../src/client/index.ts";
import { useChange } from "../api/use-server.ts";
import { Button } from "./button.tsx";
import { JsonForm } from "./json-form.tsx";
import { hasFields } from "./schema-fields.tsx";
import { visible } from "./text.ts";

/** Answers the question of a tool with the form of its schema, or declines it with a reason. */
export function QuestionForm({ call }: { readonly call: ApprovalRequest }): ReactNode {
  const { agent, instance_id: id, approval_id, message = "", schema } = call;
  const field = useId();
  const [reason, setReason] = useState("");
  const answer = useChange(
    (client, decision: { readonly approved: boolean; readonly result?: unknown; readonly reason?: string }) =>
      client.agents.approve(agent, { id, approval_id, ...decision }),
    ["approvals", "sessions", "waiting"],
  );
  const isAnswered = answer.isPending || answer.isSuccess;
  return (
    <form
      onSubmit={(event) => event.preventDefault()}
      className="flex flex-wrap items-center gap-2 rounded-lg border border-warn/40 bg-warn-back/50 p-2"
    >
      <p className="w-full whitespace-pre-wrap text-sm foreign">{visible(message)}</p>
      <label htmlFor={field} className="sr-only">
        Reason
      </label>
      <input
        id={field}
        value={reason}
        onChange={({ target }) => setReason(target.value)}
        placeholder="Reason, if you decline (optional)"
        maxLength={10_000}
        className="h-8 w-full min-w-0 rounded-md sm:w-auto sm:min-w-40 sm:flex-1 border border-line-strong bg-panel px-2.5 text-sm placeholder:text-faint"
      />
      <Button
        variant="bad"
        icon="close"
        disabled={isAnswered}
        onClick={() =>
          answer.mutate({ approved: false, ...(reason.trim() === "" ? {} : { reason: reason.trim() }) })
        }
      >
        Decline
      </Button>
      <JsonForm
        label="Answer"
        variant="solid"
        value={hasFields(schema) ? {} : schema?.type === "string" ? "" : null}
        schema={schema}
        onSubmit={async (result) => void (await answer.mutateAsync({ approved: true, result }))}
      />
      {answer.isError ? (
        <p role="alert" className="w-full text-bad text-sm foreign">
          {visible(answer.error.message)}
        </p>
      ) : null}
    </form>
  );
}
