import type { PromptCall } from "../../app/service/service.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Message } from "../../protocol/message.ts";
import type { HistoryMessage, PromptReply, PromptRequest } from "../../protocol/prompt.ts";
import { agentRoutes, promptRoutes } from "../../protocol/routes/agent-routes.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { isReconnect, readEventPosition, readIdempotencyKey } from "../request/read-request.ts";
import { bindRoutes, type Handlers, type Route, type RouteRequest } from "../route.ts";
import { defaultInstance, guardAgent, instanceOf, type ServiceContext } from "../service-context.ts";
import { acceptsEvents } from "../streams/event-streams.ts";
import { streamInstance } from "../streams/instance-stream.ts";
import { streamPrompt } from "../streams/prompt-stream.ts";

const defaultSession = "default";

/** `/agents`: prompts, dispatches, events and histories of agents' instances. */
export function bindAgentRoutes(context: ServiceContext): readonly Route[] {
  const { service, authorization, reach } = context;
  const handlers: Handlers<typeof agentRoutes> = {
    async "GET /agents"({ principal, itemAction: action }) {
      const agents = await authorization.permitted(service.app.agents(), ({ name }) => ({
        principal,
        action,
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
    "POST /agents/{name}/{id}"(input) {
      const { session = defaultSession, ...request } = input.body;
      const key = { ...instanceOf(input), session };
      return answerPrompt(context, input, { key, request });
    },
    async "POST /agents/{name}/{id}/dispatch"(input) {
      const { input: message, session = defaultSession, ...choices } = input.body;
      const receipt = await service.dispatch({ ...instanceOf(input), session }, message, {
        ...choices,
        ...callOf(input),
      });
      return { status: "accepted", dispatch_id: receipt.dispatch_id, accepted_at: receipt.accepted_at };
    },
    "GET /agents/{name}/{id}/events"(input) {
      const { principal, action } = input;
      const target = instanceOf(input);
      const after = readEventPosition(input, input.query);
      const about = { principal, action, agent: target.agent, instance: target.instance_id };
      return streamInstance(context, target, {
        place: context.streams.reserve(principal),
        permit: authorization.whilePermitted(about),
        resumes: isReconnect(input),
        session: input.query.session,
        after,
      });
    },
    async "GET /agents/{name}/{id}/history"(input) {
      const { session = defaultSession, limit, before } = input.query;
      const key = { ...instanceOf(input), session };
      if (limit === undefined) return { messages: (await service.history(key)).map(toHistoryMessage) };
      const { entries, ...page } = await service.historyPage(key, { limit, before });
      return {
        messages: entries.map(({ message, position, operation_id }) => ({
          ...toHistoryMessage(message),
          position,
          operation_id,
        })),
        ...page,
      };
    },
    "GET /agents/{name}/{id}/operations": (input) => service.operations(instanceOf(input), input.query),
    "GET /agents/{name}/{id}/operations/{operation_id}/events": (input) =>
      service.operationEvents(
        { ...instanceOf(input), operation_id: input.segment("operation_id") },
        input.query,
      ),
    "GET /agents/{name}/{id}/turns/{turn_id}": (input) =>
      service.turn({ ...instanceOf(input), turn_id: input.segment("turn_id") }, input.query),
    async "POST /agents/{name}/{id}/turns/{turn_id}/fork"(input) {
      const { principal, itemAction, body } = input;
      const target = instanceOf(input);
      const about = { principal, agent: target.agent, instance: target.instance_id };
      // The new session holds what the old one does.
      await authorization.check({ ...about, action: "agent.read" });
      if ((body.without ?? []).length > 0) await authorization.check({ ...about, action: itemAction });
      const forked = await service.fork({ ...target, turn_id: input.segment("turn_id") }, body, {
        principal: input.principal?.id,
      });
      return { status: "accepted", ...forked };
    },
    "POST /agents/{name}/{id}/abort": async (input) => ({
      aborted: await service.abort({ ...instanceOf(input), ...input.body }),
    }),
    async "DELETE /agents/{name}/{id}"(input) {
      if (await service.remove(instanceOf(input))) return { deleted: true };
      throw new KitError({ code: "not_found", message: "There is no such instance." });
    },
  };
  return bindRoutes(agentRoutes, handlers, (request) => guardAgent(context, request, instanceOf(request)));
}

/** `/prompt`: the project's default agent. */
export function bindPromptRoutes(context: ServiceContext): readonly Route[] {
  const keyOf = ({ segment }: Pick<RouteRequest<"session">, "segment">): SessionKey => ({
    ...defaultInstance,
    session: segment("session"),
  });
  const handlers: Handlers<typeof promptRoutes> = {
    "POST /prompt/{session}": (input) =>
      answerPrompt(context, input, { key: keyOf(input), request: input.body }),
    "POST /prompt/{session}/events": (input) =>
      answerWithEvents(context, input, { key: keyOf(input), request: input.body }),
  };
  return bindRoutes(promptRoutes, handlers, (request) => guardAgent(context, request, keyOf(request)));
}

interface Prompt {
  readonly key: SessionKey;
  readonly request: PromptRequest;
}

type Sender = Pick<RouteRequest, "accept" | "header" | "principal" | "clientGone">;

/** Prompts a session, and answers with its reply, or with its events where the client accepts them. */
async function answerPrompt(
  context: ServiceContext,
  sender: Sender,
  prompt: Prompt,
): Promise<{ readonly result: PromptReply } | Response> {
  if (acceptsEvents(sender.accept)) return await answerWithEvents(context, sender, prompt);
  const call = { ...callOf(sender), signal: sender.clientGone({ silent: true }) };
  return { result: await context.service.prompt(prompt.key, prompt.request, call) };
}

function answerWithEvents(
  context: ServiceContext,
  sender: Sender,
  { key, request }: Prompt,
): Promise<Response> {
  const sent = callOf(sender);
  const client = {
    gone: sender.clientGone(),
    principal: sender.principal,
    outlives: sent.idempotencyKey !== undefined,
  };
  return streamPrompt(context, client, (call) => context.service.prompt(key, request, { ...sent, ...call }));
}

/** Under an idempotency key the prompt outlives its client, which can ask again for the same reply. */
function callOf(
  sender: Pick<Sender, "header" | "principal">,
): Pick<PromptCall, "idempotencyKey" | "principal"> {
  return { idempotencyKey: readIdempotencyKey(sender), principal: sender.principal?.id };
}

/** A message as clients see it, without the parts that are for its provider alone. */
function toHistoryMessage(message: Message): HistoryMessage {
  const { role, content, timestamp } = message;
  const visible = { role, content: content.map(withoutProvider), timestamp };
  if (message.role === "tool") return visible;
  if (message.role === "user") return { ...visible, source: message.source };
  const { source, model, usage, finish_reason } = message;
  return { ...visible, source, model, usage, finish_reason };
}

function withoutProvider(part: Message["content"][number]): HistoryMessage["content"][number] {
  if (part.type === "tool_result") return { ...part, content: part.content.map(withoutProvider) };
  if (!("provider" in part)) return { ...part };
  const { provider: _, ...visible } = part;
  return visible;
}
