import { promptReplySchema, promptRequestSchema } from "../../protocol/prompt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { checkAgent, defaultInstance } from "../reachable-agent.ts";
import { defineRoute, type Route, type RouteRequest } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";
import { promptErrors } from "./agents.ts";
import { answerPrompt } from "./answer-prompt.ts";

/** `/prompt`: the project's default agent, for those who need no more than one. */
export function promptRoutes(context: ServiceContext): readonly Route[] {
  const keyOf = ({ segment }: RouteRequest): SessionKey => ({
    ...defaultInstance,
    session: segment("session"),
  });
  const shared = {
    method: "POST",
    tag: "agents",
    parameters: { session: "The session's name." },
    headers: ["Idempotency-Key"],
    body: promptRequestSchema,
    reply: promptReplySchema,
    errors: promptErrors,
    async guard(request: RouteRequest): Promise<void> {
      const { agent, instance_id } = keyOf(request);
      const { principal } = request;
      await context.authorization.check({ principal, action: "agent.prompt", agent, instance: instance_id });
      checkAgent(context, agent);
    },
  } as const;
  return [
    defineRoute({
      ...shared,
      operation: "prompt",
      path: "/prompt/{session}",
      summary: "Prompt the project's default agent",
      description: "The instance `default` of the agent `default`, which a project has without a file, too.",
      stream: "asked",
      handle: (input) => answerPrompt(context, input, { key: keyOf(input), request: input.body }),
    }),
    defineRoute({
      ...shared,
      operation: "streamPrompt",
      path: "/prompt/{session}/events",
      summary: "Prompt the project's default agent, and see its events",
      stream: "always",
      handle: (input) =>
        answerPrompt(context, input, { key: keyOf(input), request: input.body, streams: true }),
    }),
  ];
}
