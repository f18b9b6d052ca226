import type { ReactNode } from "react";
import { useChange } from "../api/use-server.ts";
import { Button } from "./button.tsx";
import { JsonForm } from "./json-form.tsx";
import { visible } from "./text.ts";
import { findYesNo, type YesNo } from "./yes-no.ts";

/** Sends the signal that a run waits for: two buttons if its schema asks a yes/no question, else a form. */
export function SignalForm({
  runId,
  name,
  schema,
}: {
  readonly runId: string;
  readonly name: string;
  readonly schema: unknown;
}): ReactNode {
  const send = useChange(
    (client, payload: unknown) =>
      client.runs.signal(runId, { name, payload }, { idempotencyKey: crypto.randomUUID() }),
    ["runs", "waiting"],
  );
  const question = findYesNo(schema);
  if (question === undefined)
    return (
      <JsonForm
        label="Send the signal"
        value={{}}
        schema={schema}
        onSubmit={async (payload) => void (await send.mutateAsync(payload))}
      />
    );
  return (
    <>
      <YesNoButtons question={question} isBusy={send.isPending || send.isSuccess} onSend={send.mutate} />
      {send.isError ? (
        <p role="alert" className="text-bad text-sm foreign">
          {visible(send.error.message)}
        </p>
      ) : null}
    </>
  );
}

/** Two buttons for a yes/no question; `onSend` gets the payload. */
function YesNoButtons({
  question: { field, question },
  isBusy,
  onSend,
}: {
  readonly question: YesNo;
  readonly isBusy: boolean;
  readonly onSend: (payload: unknown) => void;
}): ReactNode {
  const send = (value: boolean): void => onSend(field === undefined ? value : { [field]: value });
  const isApproval = field === undefined || /^(is_?)?approved?$/i.test(field);
  const name = visible(field ?? "");
  return (
    <div className="flex flex-wrap items-center justify-end gap-2">
      {question === undefined ? null : (
        <p className="mr-auto text-soft text-sm foreign">{visible(question)}</p>
      )}
      <Button variant="bad" icon="close" disabled={isBusy} onClick={() => send(false)}>
        {isApproval ? "Deny" : `${name}: no`}
      </Button>
      <Button variant="solid" icon="check" disabled={isBusy} onClick={() => send(true)}>
        {isApproval ? "Approve" : `${name}: yes`}
      </Button>
    </div>
  );
}
