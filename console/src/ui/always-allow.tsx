import { type ReactNode, useId, useState } from "react";
import { useChange, useServer } from "../api/use-server.ts";
import { Button } from "./button.tsx";
import { visible } from "./text.ts";

interface AlwaysAllowProps {
  readonly agent: string;
  readonly instance: string;
  readonly approval_id: string;
  readonly onCancel: () => void;
}

/** Shows the rules that would let such calls run, as `kit.toml` would contain them; writes the chosen one and approves the call. */
export function AlwaysAllow({ agent, instance, approval_id, onCancel }: AlwaysAllowProps): ReactNode {
  const group = useId();
  const [chosen, setChosen] = useState(0);
  const call = { id: instance, approval_id };
  const offered = useServer({
    key: ["allow-rules", approval_id],
    ask: (client, signal) => client.agents.allowRules(agent, call, { signal }),
  });
  const { choices = [], file = "kit.toml", problem } = offered.data ?? {};
  const choice = choices[chosen];
  const allow = useChange(
    async (client, rule: NonNullable<typeof choice>["rule"]) => {
      await client.agents.allow(agent, { ...call, rule });
      await client.agents.approve(agent, { ...call, approved: true });
    },
    ["approvals", "sessions", "waiting"],
  );
  const isDone = allow.isPending || allow.isSuccess;
  const error = offered.error ?? allow.error;
  return (
    <div className="flex w-full min-w-0 flex-col gap-3 rounded-md border border-line bg-panel p-3 text-sm">
      {offered.isPending ? <p className="text-soft">Loading rules…</p> : null}
      {problem === undefined ? null : <p className="text-soft foreign">{visible(problem)}</p>}
      {problem !== undefined || choices.length === 0 ? null : (
        <>
          <fieldset className="flex min-w-0 flex-col gap-1.5">
            <legend className="pb-1.5 font-medium">From now on, run without asking:</legend>
            {choices.map(({ summary, toml }, at) => (
              <label key={toml} className="flex items-start gap-2">
                <input
                  type="radio"
                  name={group}
                  checked={at === chosen}
                  onChange={() => setChosen(at)}
                  className="mt-1"
                />
                <span className="min-w-0 foreign">{visible(summary)}</span>
              </label>
            ))}
          </fieldset>
          <div className="min-w-0">
            <p className="pb-1 text-soft text-xs">
              These lines are added to <span className="font-mono">{visible(file)}</span>, and hold at once:
            </p>
            <pre
              role="group"
              aria-label="The rule"
              tabIndex={0}
              className="overflow-x-auto whitespace-pre-wrap rounded-md border border-line bg-good-back p-2 font-mono text-xs foreign"
            >
              {visible(choice?.toml ?? "")}
            </pre>
          </div>
        </>
      )}
      {error === null ? null : (
        <p role="alert" className="text-bad foreign">
          {visible(error.message)}
        </p>
      )}
      <div className="flex flex-wrap justify-end gap-2">
        <Button disabled={isDone} onClick={onCancel}>
          {problem === undefined ? "Cancel" : "Close"}
        </Button>
        {choice === undefined || problem !== undefined ? null : (
          <Button
            variant="solid"
            icon="check"
            isBusy={allow.isPending}
            disabled={isDone}
            onClick={() => allow.mutate(choice.rule)}
          >
            Write the rule and approve
          </Button>
        )}
      </div>
    </div>
  );
}
