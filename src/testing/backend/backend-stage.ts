import type { AgentRuntime } from "../../agents/agent-runtime.ts";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import { defineTool } from "../../agents/define/tool.ts";
import type { Agent } from "../../agents/harness.ts";
import type { BackendChoice } from "../../backends/contract.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import {
  createScriptedModel,
  type Script,
  type ScriptedModel,
  type ScriptedTurn,
} from "../scripted-model.ts";
import { createTestAgent } from "../test-runtime.ts";

/** How the cases get a backend. */
export interface BackendSubject {
  /** Creates the backend, once for each process of an agent. */
  readonly create: () => BackendChoice;
  /** The folder where its packages are looked for first. */
  readonly projectRoot?: string | undefined;
}

/** An agent under the backend, and everything that it can be observed by. */
export interface Stage {
  readonly agent: Agent;
  readonly model: ScriptedModel;
  readonly events: KitEvent[];
  /** The calls that the tools received. */
  readonly ran: string[];
  /** The whole log of the session "default". */
  log(): Promise<readonly SessionEntry[]>;
}

export interface StageOptions {
  readonly script: Script;
  readonly profile?: AgentProfile;
  readonly over?: Partial<AgentRuntime>;
  readonly ran?: string[];
}

export const key = { agent: "tester", instance_id: "1", session: "default" };

/** Opens an agent with the tools `price` (which returns its argument), `fail` and `pay`, which needs approval. */
export function openStage(subject: BackendSubject, options: StageOptions): Stage {
  const { ran = [] } = options;
  const events: KitEvent[] = [];
  const model = createScriptedModel(options.script);
  const store = options.over?.store ?? new InMemorySessionStore();
  const { tools = [], ...profile } = options.profile ?? {};
  const agent = createTestAgent(
    model,
    {
      backend: subject.create(),
      tools: [...stageTools(ran), ...tools],
      ...profile,
      onEvent: (event) => events.push(event),
    },
    { projectRoot: subject.projectRoot, ...options.over, store },
  );
  return { agent, model, events, ran, log: async () => store.read(key) };
}

function stageTools(ran: string[]) {
  const article = {
    type: "object",
    properties: { article: { type: "string" } },
    required: ["article"],
    additionalProperties: false,
  };
  return [
    defineTool<{ readonly article: string }>({
      name: "price",
      description: "The price of an article.",
      input: article,
      execute: (input) => {
        ran.push(`price ${input.article}`);
        return `${input.article} costs 12`;
      },
    }),
    defineTool({
      name: "fail",
      description: "Fails.",
      input: { type: "object" },
      execute: () => {
        throw new Error("The shelf is empty.");
      },
    }),
    defineTool<{ readonly amount?: number }>({
      name: "pay",
      description: "Pays.",
      input: { type: "object" },
      needsApproval: true,
      execute: ({ amount }) => {
        ran.push(`pay ${amount}`);
        return "paid";
      },
    }),
  ];
}

/** A turn that calls `price` for an article. */
export function requires(article: string, more: Omit<ScriptedTurn, "toolCalls"> = {}): ScriptedTurn {
  return { toolCalls: [{ name: "price", input: { article } }], ...more };
}

/** The roles of a log's messages, in order; for a message of kit itself, its source. */
export function rolesOf(log: readonly SessionEntry[]): string {
  return log
    .flatMap((entry) => {
      if (entry.type !== "message") return [];
      const { message } = entry;
      return [message.role === "user" ? (message.source ?? "user") : message.role];
    })
    .join(" ");
}

/** The texts of all results in a log, in order. */
export function resultsOf(log: readonly SessionEntry[]): readonly string[] {
  return log.flatMap((entry) => {
    if (entry.type !== "message" || entry.message.role !== "tool") return [];
    return entry.message.content.map(({ content }) =>
      content.map((part) => (part.type === "text" ? part.text : "")).join(""),
    );
  });
}

/** Resolves with the first event of a type from now on. */
export function nextEvent<Type extends KitEvent["type"]>(
  agent: Agent,
  type: Type,
): Promise<Extract<KitEvent, { readonly type: Type }>> {
  return new Promise((resolve) => {
    const end = agent.onEvent((event) => {
      if (event.type !== type) return;
      end();
      resolve(event as Extract<KitEvent, { readonly type: Type }>);
    });
  });
}
