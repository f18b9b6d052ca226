import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { isReadOnly } from "../../api/server.ts";
import { useChange, useServer } from "../../api/use-server.ts";
import { Select } from "../../ui/filter.tsx";
import { JsonForm } from "../../ui/json-form.tsx";

interface StartRunProps {
  /** The workflows to choose from. */
  readonly workflows: readonly string[];
  readonly label?: string;
  readonly payload?: unknown;
}

/** Starts a run with a payload that the user enters, and opens it. */
export function StartRun({ workflows, label = "Run a workflow", payload }: StartRunProps): ReactNode {
  const [chosen, setChosen] = useState<string>();
  const navigate = useNavigate();
  const start = useChange(
    (client, { name, value }: { readonly name: string; readonly value: Record<string, unknown> }) =>
      client.workflows.start(name, value, { idempotencyKey: crypto.randomUUID() }),
    ["runs"],
  );
  const known = useServer({ key: ["workflows"], ask: (client, signal) => client.workflows.list({ signal }) });
  if (isReadOnly || workflows.length === 0) return null;
  const name = chosen ?? workflows[0] ?? "";
  const schema = known.data?.find((one) => one.name === name)?.payload_schema;
  return (
    <JsonForm
      label={label}
      variant={payload === undefined ? "solid" : "plain"}
      value={payload}
      schema={schema}
      onSubmit={async (value) => {
        if (typeof value !== "object" || value === null || Array.isArray(value))
          throw new Error("A payload is an object: {…}");
        const { run_id } = await start.mutateAsync({ name, value: { ...value } });
        await navigate({ to: "/console/runs/$runId", params: { runId: run_id } });
      }}
    >
      {workflows.length < 2 ? null : (
        <Select
          label="Workflow"
          value={name}
          choices={workflows.map((one) => ({ value: one, label: one }))}
          onChange={setChosen}
        />
      )}
    </JsonForm>
  );
}
