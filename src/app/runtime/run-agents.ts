import type { AgentContext, AgentDefinition } from "../../agents/create-agent.ts";
import type { Agent } from "../../agents/harness.ts";
import { KitError } from "../../base/kit-error.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { AgentJournal } from "../../workflows/agent-journal.ts";
import { journalAgent } from "../../workflows/journal-agent.ts";
import type { WorkflowContext } from "../../workflows/workflow-context.ts";

/** Whom a run brings along. */
export interface RunAgents {
  readonly init: WorkflowContext["init"];
  close(): Promise<void>;
}

export interface RunAgentsOptions {
  readonly run: Omit<AgentContext, "dispatch">;
  readonly journal: AgentJournal;
  bring(
    definition: AgentDefinition,
    context: Omit<AgentContext, "dispatch"> & { readonly name?: string | undefined; readonly run_id: string },
  ): Promise<Agent>;
  onEvent(event: KitEvent): void;
}

/** The agents of a run: the same definition under the same name is one agent, however often it is asked for. */
export function createRunAgents({ run, journal, bring, onEvent }: RunAgentsOptions): RunAgents {
  const asked = new Map<AgentDefinition, Map<string, Promise<Agent>>>();
  const owners = new Map<string, AgentDefinition>();
  const alive: Agent[] = [];
  let closed = false;
  const start = async (definition: AgentDefinition, named: { id: string; name: string | undefined }) => {
    const agent = await bring(definition, { ...run, ...named, run_id: run.id });
    const key = JSON.stringify([agent.name, agent.id]);
    const owner = owners.get(key) ?? definition;
    if (owner !== definition) throw sameName(agent.name);
    owners.set(key, definition);
    agent.subscribe(onEvent);
    alive.push(agent);
    if (closed) await agent.close();
    return journalAgent(agent, journal);
  };
  return {
    init(definition, { id = run.id, name } = {}) {
      const mine = asked.get(definition) ?? new Map<string, Promise<Agent>>();
      asked.set(definition, mine);
      const key = JSON.stringify([id, name]);
      const agent = mine.get(key) ?? start(definition, { id, name });
      mine.set(key, agent);
      agent.catch(() => mine.delete(key));
      return agent;
    },
    async close() {
      closed = true;
      await Promise.allSettled(alive.map((agent) => agent.close()));
    },
  };
}

function sameName(name: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: `Two agents of this run are named "${name}", and would share one history.`,
    hint: "Give each a `name` in its profile, or as ctx.init(agent, { name }).",
  });
}
