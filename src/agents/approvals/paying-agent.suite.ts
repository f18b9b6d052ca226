import type { KitEvent } from "../../protocol/event.ts";
import type { ToolResultPart } from "../../protocol/message.ts";
import { createScriptedModel, type Script } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import type { AgentRuntime } from "../agent-runtime.ts";
import type { AgentProfile } from "../define/agent-profile.ts";
import { defineTool, type ToolDefinition } from "../define/tool.ts";
import type { Agent } from "../harness.ts";
import { createApprovals } from "./approvals.ts";

export interface Place {
  readonly script?: Script;
  readonly profile?: AgentProfile;
  readonly over?: Partial<AgentRuntime>;
  readonly tool?: Partial<ToolDefinition<{ readonly amount?: number }>>;
  readonly ran?: string[];
}

export interface Opened {
  readonly agent: Agent;
  readonly ran: string[];
  readonly events: KitEvent[];
  /** Resolves with the next approval request. */
  asked(): Promise<Extract<KitEvent, { type: "approval_request" }>>;
}

export const payThenSay: Script = ({ prompt }) =>
  prompt.at(-1)?.role === "tool" || JSON.stringify(prompt.at(-1)).includes("guess")
    ? { text: "Done." }
    : { toolCalls: [{ name: "pay", id: "c1", input: { amount: 5 } }] };

/** Opens an agent whose only tool needs approval. Its model calls the tool once, then answers. */
export function open({
  script = payThenSay,
  profile = {},
  over = {},
  tool = {},
  ran = [],
}: Place = {}): Opened {
  const pay = defineTool<{ readonly amount?: number }>({
    name: "pay",
    description: "Pays.",
    input: { type: "object" },
    needsApproval: true,
    execute: ({ amount }) => {
      ran.push(`pay ${amount}`);
      return "paid";
    },
    ...tool,
  });
  const events: KitEvent[] = [];
  const waiting: ((event: Extract<KitEvent, { type: "approval_request" }>) => void)[] = [];
  const agent = createTestAgent(
    createScriptedModel(script),
    {
      tools: [pay],
      ...profile,
      onEvent(event) {
        events.push(event);
        if (event.type === "approval_request") waiting.shift()?.(event);
      },
    },
    { approvals: createApprovals(), ...over },
  );
  return { agent, ran, events, asked: () => new Promise((resolve) => waiting.push(resolve)) };
}

/** The first tool result of the message at an index. */
export function resultOf(
  messages: readonly { readonly content: readonly unknown[] }[],
  at = 2,
): ToolResultPart {
  return messages[at]?.content[0] as ToolResultPart;
}
