import type { InstanceTarget, PromptCall } from "../../app/service/service.ts";
import type { OperationEventsQuery } from "../../app/service/trace.ts";
import { KitError } from "../../base/kit-error.ts";
import type { StreamState } from "../../engine/event-log-contract.ts";
import type { ServiceAction } from "../../protocol/access.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { toDelta } from "../../protocol/event-buffer.ts";
import type { Message } from "../../protocol/message.ts";
import type { HistoryMessage, PromptReply, PromptRequest } from "../../protocol/prompt.ts";
import { agentRoutes, promptRoutes } from "../../protocol/routes/agent-routes.ts";
import { streamHeader } from "../../protocol/routes/route.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { agentStream } from "../../protocol/session-name.ts";
import type { ConnectionSlot } from "../access/connection-slots.ts";
import { emptyReply } from "../reply.ts";
import {
  isReconnect,
  readEventPosition,
  readIdempotencyKey,
  readLastEventId,
} from "../request/read-request.ts";
import { bindRoutes, type Handlers, type Route, type RouteRequest } from "../route.ts";
import { defaultInstance, guardAgent, instanceOf, type ServiceContext } from "../service-context.ts";
import {
  acceptsEvents,
  createFrameBuffer,
  encodeEvent,
  encodeOutcome,
  encodePosition,
  positionReset,
} from "../streams/event-streams.ts";

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
    async "POST /agents/{name}/{id}"(input) {
      const { session = defaultSession, ...request } = input.body;
      const key = { ...instanceOf(input), session };
      await permitSettings(context, input, { key, request });
      return await answerPrompt(context, input, { key, request });
    },
    async "POST /agents/{name}/{id}/dispatch"(input) {
      const { input: message, session = defaultSession, ...settings } = input.body;
      const key = { ...instanceOf(input), session };
      await permitSettings(context, input, { key, request: settings });
      const receipt = await service.dispatch(key, message, {
        ...settings,
        ...callOf(input),
      });
      return { status: receipt.error === undefined ? "accepted" : "failed", ...receipt };
    },
    async "GET /agents/{name}/{id}/events"(input) {
      const { principal, action } = input;
      const target = instanceOf(input);
      const after = readEventPosition(input, input.query);
      const about = { principal, action, agent: target.agent, instance: target.instance_id };
      const state = await service.engine.events.state(agentStream(target.agent, target.instance_id));
      return streamInstance(context, target, {
        slot: context.streams.reserve(principal),
        permit: authorization.whilePermitted(about),
        id: state.id,
        isOther: isReconnect(input) && isOther(state, { after, id: input.header(streamHeader) }),
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
    "GET /agents/{name}/{id}/operations/{operation_id}/events": (input) => {
      const target = { ...instanceOf(input), operation_id: input.segment("operation_id") };
      return acceptsEvents(input.accept)
        ? streamOperation(context, input, target)
        : service.operationEvents(target, input.query);
    },
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
    async "POST /prompt/{session}"(input) {
      const prompt = { key: keyOf(input), request: input.body };
      await permitSettings(context, input, prompt);
      return await answerPrompt(context, input, prompt);
    },
    async "POST /prompt/{session}/events"(input) {
      const prompt = { key: keyOf(input), request: input.body };
      await permitSettings(context, input, prompt);
      return await streamPrompt(context, input, prompt);
    },
  };
  return bindRoutes(promptRoutes, handlers, (request) => guardAgent(context, request, keyOf(request)));
}

interface Prompt {
  readonly key: SessionKey;
  readonly request: PromptRequest;
}

interface PromptToCheck {
  readonly key: SessionKey;
  readonly request: Pick<PromptRequest, "omit_rules" | "fork">;
}

/** Asks for the permission to leave out rules of the project, and to read another session, where a prompt does. */
async function permitSettings(
  { authorization }: ServiceContext,
  { principal, itemAction }: Pick<RouteRequest, "principal"> & { readonly itemAction: ServiceAction },
  { key: { agent, instance_id: instance }, request: { omit_rules = [], fork } }: PromptToCheck,
): Promise<void> {
  const about = { principal, agent, instance };
  if (omit_rules.length > 0) await authorization.check({ ...about, action: itemAction });
  if (fork !== undefined) await authorization.check({ ...about, action: "agent.read" });
}

type Sender = Pick<RouteRequest, "accept" | "header" | "principal" | "clientGone" | "receivedAt">;

/** Prompts a session. Answers with the reply, or with the events if the client accepts an event stream. */
async function answerPrompt(
  context: ServiceContext,
  sender: Sender,
  prompt: Prompt,
): Promise<{ readonly result: PromptReply } | Response> {
  if (acceptsEvents(sender.accept)) return await streamPrompt(context, sender, prompt);
  const call = { ...callOf(sender), signal: sender.clientGone({ silent: true }) };
  return { result: await context.service.prompt(prompt.key, prompt.request, call) };
}

/** Under an idempotency key, the prompt continues without its client, which can send it again for the same reply. */
function callOf(
  sender: Pick<Sender, "header" | "principal" | "receivedAt">,
): Pick<PromptCall, "idempotencyKey" | "principal" | "receivedAt"> {
  const { receivedAt, principal } = sender;
  return { idempotencyKey: readIdempotencyKey(sender), principal: principal?.id, receivedAt };
}

/** A message as clients see it, without the parts that are for its provider alone. */
function toHistoryMessage(message: Message): HistoryMessage {
  const { role, content, timestamp } = message;
  const visible = { role, content: content.map(withoutProvider), timestamp };
  if (message.role === "tool") return visible;
  if (message.role === "user") {
    const { source, client_id, joined_from } = message;
    return { ...visible, source, client_id, joined_from };
  }
  const { source, model, usage, finish_reason } = message;
  return { ...visible, source, model, usage, finish_reason };
}

function withoutProvider(part: Message["content"][number]): HistoryMessage["content"][number] {
  if (part.type === "tool_result") return { ...part, content: part.content.map(withoutProvider) };
  if (!("provider" in part)) return { ...part };
  const { provider: _, ...visible } = part;
  return visible;
}

interface InstanceStreamOptions {
  readonly after?: number | "now" | undefined;
  readonly session?: string | undefined;
  /** The id of the stream; undefined if it has not begun. */
  readonly id: string | undefined;
  /** Whether `after` is a position in the stream of an instance that has been deleted. */
  readonly isOther: boolean;
  readonly slot: ConnectionSlot;
  /** Throws if the sender is no longer permitted to read the instance. */
  readonly permit: () => Promise<void>;
}

/** Whether a position belongs to another stream. A client that does not know its stream's id cannot have been told a higher index. */
function isOther(
  { id, highest }: StreamState,
  position: { readonly after: number | "now" | undefined; readonly id: string | undefined },
): boolean {
  return position.id === undefined ? Number(position.after) > highest : position.id !== id;
}

/** Answers with the events of an instance until the client disconnects or the instance is deleted. */
function streamInstance(
  { service, streams, toEnvelope }: ServiceContext,
  target: InstanceTarget,
  { slot, permit, id: begun, isOther: isGone, after: position, ...options }: InstanceStreamOptions,
): Response {
  const controller = new AbortController();
  const { signal } = controller;
  const { events } = service.engine;
  const stream = agentStream(target.agent, target.instance_id);
  const source = async function* (): AsyncGenerator<string> {
    const after = position === "now" ? await events.last(stream) : position;
    // If the connection breaks before the first event, the reader resumes from this position.
    if (position === "now" && after !== undefined) yield encodePosition(after);
    if (isGone) yield positionReset;
    let id = begun;
    const from = { id, ...(isGone ? {} : { after }) };
    for await (const event of service.events(target, { ...options, ...from, signal })) {
      await permit();
      id ??= (await events.state(stream)).id;
      yield encodeEvent(event);
    }
    // The log was closed, or the instance was deleted. A new instance of this name counts its events from 1 again, so a
    // reader that resumed at the end of this stream would miss its first events.
    const state = await events.state(stream).catch(() => undefined);
    if (state !== undefined && state.id !== id) yield positionReset;
  };
  const reply = streams.open(source(), {
    slot,
    resumable: true,
    onEnd: () => controller.abort(),
    toLastChunk: (error) => encodeOutcome("error", toEnvelope(error)),
  });
  if (begun !== undefined) reply.headers.set(streamHeader, begun);
  return reply;
}

/** Answers with the events of an operation after an index, to its end; with 204 to a reader that has read the end. */
async function streamOperation(
  { service, streams, authorization, toEnvelope }: ServiceContext,
  {
    principal,
    header,
    query,
  }: Pick<RouteRequest, "principal" | "header"> & { readonly query: OperationEventsQuery },
  target: InstanceTarget & { readonly operation_id: string },
): Promise<Response> {
  const { first_index, types } = query;
  const lastRead = readLastEventId({ header });
  const after = lastRead ?? query.after ?? 0;
  if (lastRead !== undefined) {
    const { events } = await service.operationEvents(target, { types: ["operation"], limit: 1_000 });
    const end = events.find(({ operation_id }) => operation_id === target.operation_id);
    if (end !== undefined && end.index <= after) return emptyReply({});
  }
  const controller = new AbortController();
  const events = await service.followOperation(target, { first_index, after, signal: controller.signal });
  const { agent, instance_id: instance } = target;
  const permit = authorization.whilePermitted({ principal, action: "agent.read", agent, instance });
  const source = async function* (): AsyncGenerator<string> {
    for await (const event of events) {
      if (event.index <= after || types?.includes(event.type) === false) continue;
      await permit();
      yield encodeEvent(event);
    }
    yield encodeOutcome("result", { operation_id: target.operation_id });
  };
  return streams.open(source(), {
    slot: streams.reserve(principal),
    resumable: true,
    onEnd: () => controller.abort(),
    toLastChunk: (error) => encodeOutcome("error", toEnvelope(error)),
  });
}

/**
 * The reply of a prompt that waits in line for longer than this starts as a stream, whose heartbeats show the client
 * that the prompt still waits. An error before that has its own HTTP status.
 */
const patienceMs = 250;

/**
 * Answers a prompt with its events as they are emitted, and with its result as the last one. A client that disconnects,
 * or reads so slowly that too many events wait, aborts the prompt.
 */
async function streamPrompt(
  { service, streams, limits, masked, toEnvelope }: ServiceContext,
  sender: Sender,
  { key, request }: Prompt,
): Promise<Response> {
  // Before the slot is reserved: an invalid header throws.
  const sent = { ...callOf(sender), after: readLastEventId(sender) };
  const clientGone = sender.clientGone();
  const slot = streams.reserve(sender.principal);
  const controller = new AbortController();
  let hasReply = false;
  const abort = (): void => {
    if (hasReply) return;
    const message = "The client has disconnected.";
    controller.abort(clientGone.aborted ? clientGone.reason : new KitError({ code: "aborted", message }));
  };
  clientGone.addEventListener("abort", abort, { once: true });
  const started = Promise.withResolvers<void>();
  const queue = createFrameBuffer({
    maxLength: limits.unreadBytes,
    onOverflow: () =>
      controller.abort(new KitError({ code: "aborted", message: "The client did not read fast enough." })),
  });
  const onEvent = (event: KitEvent): void => {
    queue.push(toDelta(event) ?? encodeEvent(event));
    started.resolve();
  };
  const reply = service.prompt(key, request, { ...sent, signal: controller.signal, onEvent }).finally(() => {
    hasReply = true;
    queue.end();
  });
  const timer = setTimeout(started.resolve, patienceMs);
  try {
    await Promise.race([started.promise, reply]);
  } catch (error) {
    slot.release();
    throw error;
  } finally {
    clearTimeout(timer);
  }
  const source = async function* (): AsyncGenerator<string> {
    for (let items = await queue.take(); items !== undefined; items = await queue.take()) {
      let frames = "";
      for (const item of items) frames += typeof item === "string" ? item : encodeEvent(item);
      yield frames;
    }
    yield encodeOutcome("result", masked({ result: await reply }));
  };
  // If the client leaves, the stream is not read to its end, and no one handles the rejection.
  reply.catch(() => undefined);
  const toLastChunk = (error: unknown): string => {
    const { aborted, reason } = controller.signal;
    return encodeOutcome("error", toEnvelope(aborted ? reason : error));
  };
  try {
    const ends = sent.idempotencyKey !== undefined;
    return streams.open(source(), { slot, resumable: false, ends, onEnd: abort, toLastChunk });
  } catch (error) {
    slot.release();
    abort();
    throw error;
  }
}
