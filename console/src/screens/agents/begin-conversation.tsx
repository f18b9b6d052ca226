import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useId, useState } from "react";
import { isReadOnly } from "../../api/server.ts";
import { Button } from "../../ui/button.tsx";
import { findIdFault } from "./instance-id.ts";

/** Opens a new conversation with an agent at once. */
export function NewConversation({
  agent,
  label = "New conversation",
}: {
  readonly agent: string;
  readonly label?: string;
}): ReactNode {
  const navigate = useNavigate();
  if (isReadOnly) return null;
  const open = (): void => {
    const id = `chat-${Date.now().toString(36)}`;
    void navigate({ to: "/console/agents/$name/$id", params: { name: agent, id } });
  };
  return (
    <Button variant="solid" icon="plus" onClick={open}>
      {label}
    </Button>
  );
}

/** Opens a new conversation, or the one with an id, such as a ticket. */
export function BeginConversation({ agent }: { readonly agent: string }): ReactNode {
  const field = useId();
  const navigate = useNavigate();
  const [isNaming, setNaming] = useState(false);
  const [id, setId] = useState("");
  const [fault, setFault] = useState<string>();
  if (isReadOnly) return null;
  const openNamed = (event: FormEvent): void => {
    event.preventDefault();
    const chosen = id.trim();
    const found = findIdFault(chosen);
    setFault(found);
    if (found === undefined)
      void navigate({ to: "/console/agents/$name/$id", params: { name: agent, id: chosen } });
  };
  return (
    <div className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-2">
        <NewConversation agent={agent} />
        {isNaming ? null : (
          <Button variant="quiet" onClick={() => setNaming(true)}>
            Use an id
          </Button>
        )}
      </div>
      {isNaming ? (
        <form onSubmit={openNamed} className="flex max-w-xl flex-col gap-1">
          <label htmlFor={field} className="text-soft text-sm">
            Id of the conversation, such as a ticket or a pull request
          </label>
          <div className="flex gap-2">
            <input
              id={field}
              // biome-ignore lint/a11y/noAutofocus: the user has just asked for this field.
              autoFocus
              value={id}
              onChange={({ target }) => setId(target.value)}
              placeholder="ticket-1043"
              aria-invalid={fault !== undefined}
              aria-describedby={fault === undefined ? undefined : `${field}-fault`}
              className="h-8 min-w-0 flex-1 rounded-md border border-line-strong bg-panel px-2.5 font-mono text-sm placeholder:text-faint"
            />
            <Button type="submit">Open</Button>
          </div>
          {fault === undefined ? null : (
            <p id={`${field}-fault`} role="alert" className="text-bad text-sm">
              {fault}
            </p>
          )}
        </form>
      ) : null}
    </div>
  );
}
