import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import { AllowRules } from "../../agents/define/approval-rules.ts";
import { defined } from "../../base/record.ts";
import type { AgentConfig, CompactionConfig } from "./config-schema.ts";

/** Converts the `agent` table to a profile: camel-case names, and times in milliseconds. */
export function toProfile(agent: AgentConfig = {}, compaction: CompactionConfig = {}): AgentProfile {
  const { max_turns, max_tokens, max_cost, approvals, model_idle_seconds, ...rest } = agent;
  // The service reads these.
  const { sandbox: _, max_waiting, max_idle_instances, idle_seconds, ...same } = rest;
  return defined({
    ...camel(same),
    budget: orNone(camel({ max_turns, max_tokens, max_cost })),
    compaction: orNone(camel(compaction)),
    approvals: approvals && {
      tools: approvals.tools,
      timeoutMs: toMs(approvals.timeout_seconds),
      allow: new AllowRules(approvals.allow),
    },
    modelIdleTimeoutMs: toMs(model_idle_seconds),
  });
}

type Camel<Name> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name;

/** Converts `{ allow_write: true }` to `{ allowWrite: true }`. */
function camel<Table extends object>(table: Table) {
  const fields = Object.entries(table).map(([key, value]) => [
    key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(fields) as { readonly [Key in keyof Table as Camel<Key>]: Table[Key] };
}

function orNone<Fields extends object>(fields: Fields) {
  const settings = defined(fields);
  return Object.keys(settings).length === 0 ? undefined : settings;
}

function toMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1_000;
}
