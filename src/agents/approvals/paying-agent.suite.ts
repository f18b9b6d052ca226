import type { ApprovalDecision } from "../../protocol/approval.ts";
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
  /** The id of the operations that `waiting` and `decided` begin. */
  readonly operationId?: string;
}

type ApprovalRequest = Extract<KitEvent, { type: "approval_request" }>;
type Answer = ReturnType<ReturnType<Agent["session"]>["prompt"]>;

export interface Opened {
  readonly agent: Agent;
  readonly ran: string[];
  readonly events: KitEvent[];
  /** Resolves with the next approval request. */
  asked(): Promise<ApprovalRequest>;
  /** Prompts the agent, and resolves once its call waits: with the request, and the answer to come. */
  waiting(): Promise<ApprovalRequest & { readonly answer: Answer }>;
  /** The same, and decides about the call. */
  decided(decision: ApprovalDecision): Promise<{ readonly answer: Answer }>;
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
  operationId,
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
  const askers: ((event: ApprovalRequest) => void)[] = [];
  const agent = createTestAgent(
    createScriptedModel(script),
    {
      tools: [pay],
      ...profile,
      onEvent(event) {
        events.push(event);
        if (event.type === "approval_request") askers.shift()?.(event);
      },
    },
    { approvals: createApprovals(), ...over },
  );
  const asked = () => new Promise<ApprovalRequest>((resolve) => askers.push(resolve));
  const waiting: Opened["waiting"] = async () => {
    const request = asked();
    const answer = agent.session().prompt("pay", operationId === undefined ? {} : { operationId });
    return { ...(await request), answer };
  };
  return {
    agent,
    ran,
    events,
    asked,
    waiting,
    async decided(decision) {
      const { approval_id, answer } = await waiting();
      await agent.approvals.decide(approval_id, decision);
      return { answer };
    },
  };
}

/** The first tool result of the message at an index. */
export function resultOf(
  messages: readonly { readonly content: readonly unknown[] }[],
  at = 2,
): ToolResultPart {
  return messages[at]?.content[0] as ToolResultPart;
}
