import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useId, useState } from "react";
import { isRule, type TurnDetail } from "../../../../src/client/index.ts";
import { useChange } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { formatTokens, visible } from "../../ui/text.ts";
import { itemPlace } from "./trace.ts";

/** Repeats a turn in a new session, with another model or without rules, and compares both. */
export function ForkForm({
  agent,
  id,
  turn,
}: {
  readonly agent: string;
  readonly id: string;
  readonly turn: TurnDetail;
}): ReactNode {
  const modelField = useId();
  const sessionField = useId();
  const navigate = useNavigate();
  const [isOpen, setOpen] = useState(false);
  const rules = rulesOf(turn);
  const fork = useChange(
    (client, form: FormData) => {
      const text = (name: string): string | undefined => {
        const value = form.get(name);
        return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
      };
      const without = form.getAll("without").map(String);
      return client.agents.fork(agent, {
        id,
        turn_id: turn.turn_id,
        model: text("model"),
        session: text("session"),
        ...(without.length === 0 ? {} : { without }),
      });
    },
    ["operations", "sessions"],
  );
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    fork.mutate(new FormData(event.currentTarget), {
      onSuccess: ({ operation_id }) => {
        setOpen(false);
        void navigate({
          to: "/console/agents/$name/$id/compare",
          params: { name: agent, id },
          search: { left: turn.operation_id, right: operation_id },
        });
      },
    });
  };
  return (
    <>
      <Button icon="branch" onClick={() => setOpen(true)}>
        Fork
      </Button>
      {isOpen ? (
        <Dialog title="Fork this turn" onClose={() => setOpen(false)}>
          <p className="text-soft text-sm">
            A new session begins with the history that this turn was asked with, and answers it anew. Tools
            run as always; files stay as they are now.
          </p>
          <form onSubmit={submit} className="flex flex-col gap-3">
            <div className="flex flex-col gap-1">
              <label htmlFor={modelField} className="text-soft text-sm">
                Model (now {visible(turn.model)})
              </label>
              <input
                id={modelField}
                name="model"
                placeholder="provider/model; empty for the agent's own"
                maxLength={500}
                autoComplete="off"
                className="h-8 rounded-md border border-line-strong bg-back px-2.5 font-mono text-sm placeholder:text-faint"
              />
            </div>
            <div className="flex flex-col gap-1">
              <label htmlFor={sessionField} className="text-soft text-sm">
                Name of the new session (optional)
              </label>
              <input
                id={sessionField}
                name="session"
                maxLength={120}
                autoComplete="off"
                className="h-8 rounded-md border border-line-strong bg-back px-2.5 font-mono text-sm"
              />
            </div>
            {rules.length === 0 ? null : (
              <fieldset className="flex flex-col gap-1">
                <legend className="pb-1 text-soft text-sm">Leave out these rules</legend>
                <div className="max-h-48 overflow-y-auto rounded-md border border-line p-2">
                  {rules.map(({ value, label, tokens }) => (
                    <label key={value} className="flex min-h-7 items-center gap-2 text-sm">
                      <input type="checkbox" name="without" value={value} />
                      <span className="min-w-0 flex-1 truncate font-mono text-xs">
                        <bdi>{visible(label)}</bdi>
                      </span>
                      <span className="text-faint text-xs tabular">{formatTokens(tokens)} tokens</span>
                    </label>
                  ))}
                </div>
              </fieldset>
            )}
            {fork.isError ? (
              <p role="alert" className="text-bad text-sm foreign">
                {fork.error.message}
              </p>
            ) : null}
            <div className="flex justify-end gap-2">
              <Button variant="quiet" onClick={() => setOpen(false)}>
                Close
              </Button>
              <Button variant="solid" type="submit" isBusy={fork.isPending}>
                Fork and compare
              </Button>
            </div>
          </form>
        </Dialog>
      ) : null}
    </>
  );
}

interface Rule {
  readonly value: string;
  readonly label: string;
  readonly tokens: number;
}

/** The project's rules in the turn's receipt, without the agent's own instructions. */
function rulesOf({ receipt = [] }: TurnDetail): readonly Rule[] {
  const rules = new Map<string, Rule>();
  for (const item of receipt) {
    const { id, tokens } = item;
    if (isRule(item)) rules.set(id, { value: id, label: itemPlace(item), tokens });
  }
  return [...rules.values()];
}
