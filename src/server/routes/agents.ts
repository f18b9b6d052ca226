import { KitError } from "../../base/kit-error.ts";
import type { ServiceAction } from "../../protocol/access.ts";
import { eventSchema } from "../../protocol/event.ts";
import {
  abortBodySchema,
  abortedSchema,
  agentListSchema,
  deletedSchema,
  dispatchAcceptedSchema,
  dispatchBodySchema,
  historySchema,
  instanceEventsQuerySchema,
  promptBodySchema,
  promptReplySchema,
  sessionQuerySchema,
} from "../../protocol/prompt.ts";
import { guardAgent, instanceOf, instanceParameters, principalOf } from "../instance-request.ts";
import { isReconnect, readEventPosition, readIdempotencyKey } from "../request/read-headers.ts";
import { defineRoute, type Route } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";
import { streamInstance } from "../stream/instance-stream.ts";
import { answerPrompt } from "./answer-prompt.ts";
import { toHistoryMessage } from "./to-history-message.ts";

const tag = "agents";
const parameters = instanceParameters;
const defaultSession = "default";

/** `/agents`: prompts, dispatches, events and histories of agents' instances. */
export function agentRoutes(context: ServiceContext): readonly Route[] {
  const { service, authorization, reach } = context;
  const guardFor = (action: ServiceAction): ReturnType<typeof guardAgent> => guardAgent(context, action);
  return [
    defineRoute({
      operation: "listAgents",
      method: "GET",
      path: "/agents",
      summary: "The agents of the project",
      tag,
      reply: agentListSchema,
      async handle({ principal }) {
        const agents = await authorization.permitted(service.app.agents(), ({ name }) => ({
          principal,
          action: "agent.list",
          agent: name,
        }));
        return {
          agents: agents.map((agent) => ({
            name: agent.name,
            path: agent.path,
            triggers: agent.triggers,
            ...(reach.isDevOnly(agent) ? { dev_only: true } : {}),
          })),
        };
      },
    }),
    defineRoute({
      operation: "promptAgent",
      method: "POST",
      path: "/agents/{name}/{id}",
      summary: "Prompt an agent and wait for its answer",
      description:
        "With `Accept: text/event-stream` the reply is the events as they are made, then one `result` or `error`. A client that goes away aborts the prompt, unless it gave an Idempotency-Key.",
      tag,
      parameters,
      headers: ["Idempotency-Key"],
      body: promptBodySchema,
      reply: promptReplySchema,
      stream: "asked",
      errors: promptErrors,
      guard: guardFor("agent.prompt"),
      handle: (input) => {
        const { session = defaultSession, ...request } = input.body;
        return answerPrompt(context, input, { key: { ...instanceOf(input), session }, request });
      },
    }),
    defineRoute({
      operation: "dispatchInput",
      method: "POST",
      path: "/agents/{name}/{id}/dispatch",
      summary: "Hand an agent an input, to be worked on later",
      description:
        "Answers once the input is on disk. `GET /dispatches/{dispatch_id}` tells what became of it.",
      tag,
      parameters,
      headers: ["Idempotency-Key"],
      body: dispatchBodySchema,
      reply: dispatchAcceptedSchema,
      status: 202,
      errors: ["agent_not_found", "agent_not_webhook", "conflict", "unavailable", "store_unavailable"],
      guard: guardFor("agent.dispatch"),
      async handle(input) {
        const { input: message, session = defaultSession, ...choices } = input.body;
        const idempotencyKey = readIdempotencyKey(input);
        const options = {
          ...choices,
          ...principalOf(input),
          ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
        };
        const receipt = await service.dispatch({ ...instanceOf(input), session }, message, options);
        return { status: "accepted", dispatch_id: receipt.dispatch_id, accepted_at: receipt.accepted_at };
      },
    }),
    defineRoute({
      operation: "streamInstanceEvents",
      method: "GET",
      path: "/agents/{name}/{id}/events",
      summary: "The events of an instance, as they are made",
      description: "From the first event, or after the one that `Last-Event-ID` or `after` names.",
      tag,
      parameters,
      headers: ["Last-Event-ID"],
      query: instanceEventsQuerySchema,
      reply: eventSchema,
      stream: "always",
      errors: ["agent_not_found", "agent_not_webhook", "unavailable", "store_unavailable"],
      guard: guardFor("agent.read"),
      handle: (input) => {
        const { session } = input.query;
        const after = readEventPosition(input, input.query);
        const { principal } = input;
        const target = instanceOf(input);
        const { agent, instance_id: instance } = target;
        return streamInstance(context, target, {
          place: context.streams.reserve(principal),
          permit: authorization.whilePermitted({ principal, action: "agent.read", agent, instance }),
          resumes: isReconnect(input),
          ...(session === undefined ? {} : { session }),
          ...(after === undefined ? {} : { after }),
        });
      },
    }),
    defineRoute({
      operation: "getHistory",
      method: "GET",
      path: "/agents/{name}/{id}/history",
      summary: "The messages of a session, oldest first",
      tag,
      parameters,
      query: sessionQuerySchema,
      reply: historySchema,
      errors: ["agent_not_found", "agent_not_webhook", "not_found"],
      guard: guardFor("agent.read"),
      async handle(input) {
        const { session = defaultSession } = input.query;
        const messages = await service.history({ ...instanceOf(input), session });
        return { messages: messages.map(toHistoryMessage) };
      },
    }),
    defineRoute({
      operation: "abortInstance",
      method: "POST",
      path: "/agents/{name}/{id}/abort",
      summary: "Abort what an instance is doing",
      tag,
      parameters,
      body: abortBodySchema,
      reply: abortedSchema,
      errors: ["agent_not_found", "agent_not_webhook"],
      guard: guardFor("agent.abort"),
      handle: async (input) => ({ aborted: await service.abort({ ...instanceOf(input), ...input.body }) }),
    }),
    defineRoute({
      operation: "deleteInstance",
      method: "DELETE",
      path: "/agents/{name}/{id}",
      summary: "Delete an instance: its sessions, workspaces and events",
      description: "What it is doing is aborted.",
      tag,
      parameters,
      reply: deletedSchema,
      errors: ["agent_not_found", "agent_not_webhook", "not_found"],
      guard: guardFor("agent.delete"),
      async handle(input) {
        if (await service.remove(instanceOf(input))) return { deleted: true };
        throw new KitError({ code: "not_found", message: "There is no such instance." });
      },
    }),
  ];
}

/** Errors of a route that prompts an agent. */
export const promptErrors = [
  "agent_not_found",
  "agent_not_webhook",
  "conflict",
  "aborted",
  "budget_exceeded",
  "model_error",
  "context_overflow",
  "model_timeout",
  "unavailable",
  "store_unavailable",
] as const;
