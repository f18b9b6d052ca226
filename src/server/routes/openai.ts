import { hash } from "node:crypto";
import type { InstanceTarget } from "../../app/service/service.ts";
import { dispatchOf, operationOf } from "../../app/service/stored-input.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import { faultOfName } from "../../base/names.ts";
import { ChatFold } from "../../interfaces/openai/chat-fold.ts";
import { type OpenAiInput, toChatInput, toResponseInput } from "../../interfaces/openai/input.ts";
import {
  newResponse,
  positionOf,
  type ResponseEvent,
  ResponseFold,
} from "../../interfaces/openai/response-fold.ts";
import type { Principal, ServiceAction } from "../../protocol/access.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { OpenAiResponse, ResponseBody } from "../../protocol/openai.ts";
import { openAiRoutes } from "../../protocol/routes/openai-routes.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { bindRoutes, type Handlers, type Route, type RouteRequest } from "../route.ts";
import { checkAgent, type ServiceContext } from "../service-context.ts";
import { dataFrame, errorFrames, type OpenAiWork, streamFrames } from "../streams/openai-stream.ts";
import { eventsOf } from "./ui.ts";

type Sender = Pick<RouteRequest, "principal" | "receivedAt" | "clientGone" | "header" | "incoming">;

/** `/v1`: agents as models of OpenAI's Chat Completions and Responses. */
export function bindOpenAiRoutes(context: ServiceContext): readonly Route[] {
  const { service, authorization, reach } = context;
  const handlers: Handlers<typeof openAiRoutes> = {
    async "GET /v1/models"({ principal, itemAction: action }) {
      const served = service.app.agents().filter((agent) => reach.serves(agent));
      const agents = await authorization.permitted(served, ({ name: agent }) => ({
        principal,
        action,
        agent,
        instance: instanceFor(principal),
      }));
      const data = agents.map(
        ({ name: id }) => ({ id, object: "model", created: 0, owned_by: "kit" }) as const,
      );
      return { object: "list", data };
    },
    async "POST /v1/chat/completions"(input) {
      const { body, action } = input;
      const { model, stream, stream_options } = body;
      const target = await permitted(context, input, { agent: model, action });
      const asked = toChatInput(body);
      const open = async () => {
        const named = input.header("x-kit-session");
        const key = { ...target, session: named ?? newSession("chat") };
        const isBegun = named !== undefined && (await hasBegun(context, key));
        // A session that has begun has what the client repeats.
        const work = await begin(context, input, { key, asked: isBegun ? { ...asked, history: [] } : asked });
        const created = toSeconds(work.acceptedAt);
        const fold = new ChatFold({ operationId: work.operation_id, model, created });
        const withUsage = stream_options?.include_usage === true;
        const frames = (events: AsyncIterable<KitEvent>) => chatFrames(events, fold, withUsage);
        return { work, fold, frames };
      };
      if (stream === true) return await streamFrames(context, input, { action, endsWithClient: true, open });
      const { work, fold } = await open();
      await drain(context, input, { work, fold, endsWithClient: true });
      if (fold.error !== undefined)
        throw new KitError({ code: fold.error.type, message: fold.error.message });
      return fold.toCompletion();
    },
    async "POST /v1/responses"(input) {
      const { body, action } = input;
      const { model } = body;
      const target = await permitted(context, input, { agent: model, action });
      const { previous, ...asked } = toResponseInput(body);
      const endsWithClient = body.store === false;
      const open = async () => {
        const key = await sessionOf(context, input, { target, previous });
        const isBegun = await hasBegun(context, key);
        const work = await begin(context, input, { key, asked: isBegun ? inOneMessage(asked) : asked });
        const id = toResponseId(work.operation_id, { isStored: !endsWithClient });
        const response = newResponse({ id, model, createdAt: toSeconds(work.acceptedAt) }, body);
        const fold = new ResponseFold(work.operation_id, response);
        const frames = (events: AsyncIterable<KitEvent>) => responseFrames(events, fold, -1);
        return { work, fold, frames };
      };
      if (body.stream === true) return await streamFrames(context, input, { action, endsWithClient, open });
      const { work, fold } = await open();
      if (body.background !== true) await drain(context, input, { work, fold, endsWithClient });
      return fold.response;
    },
    async "GET /v1/responses/{response_id}"(input) {
      const { action } = input;
      const { work, fold } = await findResponse(context, input);
      const { stream, starting_after: last = -1 } = input.query;
      if (stream !== "true") return await currentResponse(context, { work, fold });
      const open = async () => {
        const first = await firstIndexOf(context, work);
        const after = first === undefined ? 0 : positionOf(last, first);
        const frames = (events: AsyncIterable<KitEvent>) => responseFrames(events, fold, last);
        return { work, fold, after, frames };
      };
      return await streamFrames(context, input, { action, endsWithClient: false, open });
    },
    async "POST /v1/responses/{response_id}/cancel"(input) {
      const found = await findResponse(context, input);
      await service.abort(found.work);
      return await currentResponse(context, found);
    },
  };
  return bindRoutes(openAiRoutes, handlers);
}

/** Each sender has an instance of its own, so that no id of another one names anything. */
function instanceFor(principal: Principal | undefined): string {
  const { id } = principal ?? {};
  if (id === undefined) return "default";
  const isUsable = faultOfName(id) === undefined && id !== "default" && !id.startsWith("sender-");
  return isUsable ? id : `sender-${hash("sha256", id)}`;
}

async function permitted(
  context: ServiceContext,
  { principal }: Pick<Sender, "principal">,
  { agent, action }: { readonly agent: string; readonly action: ServiceAction },
): Promise<InstanceTarget> {
  const target = { agent, instance_id: instanceFor(principal) };
  await context.authorization.check({ principal, action, agent, instance: target.instance_id });
  checkAgent(context, agent);
  return target;
}

function newSession(kind: string): string {
  return createId(kind).replace("_", "-");
}

async function hasBegun({ service }: ServiceContext, key: SessionKey): Promise<boolean> {
  return (await service.historyPage(key, { limit: 1 }).catch(ignoreMissing)) !== undefined;
}

/** A session that has begun takes no history: what is new is told in the message. */
function inOneMessage({ history, message, ...asked }: OpenAiInput): OpenAiInput {
  return { ...asked, history: [], message: [...history.map(({ content }) => content), message].join("\n\n") };
}

async function begin(
  { service }: ServiceContext,
  { principal, receivedAt }: Sender,
  { key, asked }: { readonly key: SessionKey; readonly asked: OpenAiInput },
): Promise<OpenAiWork> {
  const { message, settings, history } = asked;
  const { operation_id, accepted_at } = await service.dispatch(key, message, {
    ...settings,
    ...(history.length > 0 && { history: [...history] }),
    principal: principal?.id,
    receivedAt,
  });
  return { ...key, operation_id, acceptedAt: accepted_at };
}

/** Reads an operation to its end. */
async function drain(
  { service }: ServiceContext,
  { clientGone }: Sender,
  {
    work,
    fold,
    endsWithClient,
  }: {
    readonly work: OpenAiWork;
    readonly fold: ChatFold | ResponseFold;
    readonly endsWithClient: boolean;
  },
): Promise<void> {
  const signal = clientGone({ silent: true });
  for await (const event of await service.followOperation(work, { signal })) fold.push(event);
  if (endsWithClient && signal.aborted) await service.abort(work);
  if (!fold.isOver && fold instanceof ResponseFold) fold.end("cancelled");
}

async function* chatFrames(
  events: AsyncIterable<KitEvent>,
  fold: ChatFold,
  withUsage: boolean,
): AsyncGenerator<string> {
  yield dataFrame(fold.toChunk({ role: "assistant", content: "" }));
  for await (const event of events) {
    const delta = fold.push(event);
    if (fold.isTorn)
      throw new KitError({
        code: "unavailable",
        message: "The answer broke off, and what was sent cannot be taken back.",
      });
    yield delta === undefined ? "" : dataFrame(fold.toChunk(delta));
  }
  const { error } = fold;
  if (error !== undefined) yield errorFrames({ error: { ...error, details: "" } });
  else yield `${fold.toLastChunks({ withUsage }).map(dataFrame).join("")}data: [DONE]\n\n`;
}

async function* responseFrames(
  events: AsyncIterable<KitEvent>,
  fold: ResponseFold,
  last: number,
): AsyncGenerator<string> {
  const frames = (all: readonly ResponseEvent[]): string =>
    all
      .filter(({ sequence_number }) => sequence_number > last)
      .map((event) => `event: ${event.type}\n${dataFrame(event)}`)
      .join("");
  yield frames(fold.begin());
  for await (const event of events) yield frames(fold.push(event));
  if (!fold.isOver) yield frames(fold.end("cancelled"));
  yield "data: [DONE]\n\n";
}

function toResponseId(operationId: string, { isStored }: { readonly isStored: boolean }): string {
  return `resp_${isStored ? "" : "unstored_"}${operationId.replace(/^op_/, "")}`;
}

interface FoundResponse {
  readonly work: OpenAiWork;
  readonly fold: ResponseFold;
}

/** Finds the response that a path names. Throws `not_found`, also for one that the sender may not read. */
async function findResponse(
  context: ServiceContext,
  { principal, segment, action = "agent.read" }: RouteRequest<"response_id">,
): Promise<FoundResponse> {
  const id = segment("response_id");
  const missing = new KitError({ code: "not_found", message: "There is no such response." });
  const found = await findOwn(context, principal, id);
  if (found === undefined) throw missing;
  const { agent, instance_id: instance, accepted_at, status } = found;
  const request = { principal, action, agent, instance };
  await context.authorization.checkFound(request, { reading: "agent.read", missing });
  checkAgent(context, agent);
  const operation_id = operationOf(found.dispatch_id);
  const about = { id, model: agent, createdAt: toSeconds(accepted_at) };
  const response = newResponse(about, { background: status === "queued" });
  const work = {
    agent,
    instance_id: instance,
    session: found.session,
    operation_id,
    acceptedAt: accepted_at,
  };
  return { work, fold: new ResponseFold(operation_id, response) };
}

/** Returns the work of a sender that a response's id names. */
async function findOwn(
  { service }: ServiceContext,
  principal: Principal | undefined,
  id: string,
): Promise<DispatchRecord | undefined> {
  const [, ulid] = /^resp_([0-9A-Z]{26})$/.exec(id) ?? [];
  const dispatch =
    ulid === undefined ? undefined : await service.engine.getDispatch(dispatchOf(`op_${ulid}`));
  return dispatch?.instance_id === instanceFor(principal) ? dispatch : undefined;
}

/** Returns the session of a request. Throws `not_found` for an unknown response, and `conflict` for one that others have followed. */
async function sessionOf(
  context: ServiceContext,
  { principal, header, body }: Pick<Sender, "principal" | "header"> & { readonly body: ResponseBody },
  { target, previous: ofItem }: { readonly target: InstanceTarget; readonly previous: string | undefined },
): Promise<SessionKey> {
  const { conversation, previous_response_id } = body;
  const previous = previous_response_id ?? ofItem;
  const named =
    typeof conversation === "string" ? conversation : (conversation?.id ?? header("x-kit-session"));
  if (previous === undefined) return { ...target, session: named ?? newSession("response") };
  const refused = (code: "not_found" | "conflict" | "invalid_request", fault: string): KitError => {
    const issues = [{ path: "body.previous_response_id", message: fault }];
    return new KitError({ code, message: "The response cannot be followed.", meta: { issues } });
  };
  const found = await findOwn(context, principal, previous);
  if (found === undefined) throw refused("not_found", "is not the id of a response");
  const { session, dispatch_id, status } = found;
  if (found.agent !== target.agent) throw refused("invalid_request", "is of another model");
  if (conversation !== undefined && conversation !== null && named !== session)
    throw refused("invalid_request", "is of another conversation");
  const { operations } = await context.service.operations(target, { session, limit: 1 });
  if (status !== "queued" && operations[0]?.operation_id !== operationOf(dispatch_id))
    throw refused("conflict", "must be the newest of its session: kit keeps one line of answers");
  return { ...target, session };
}

/** Returns a response as it is now. */
async function currentResponse(
  context: ServiceContext,
  { work, fold }: FoundResponse,
): Promise<OpenAiResponse> {
  try {
    for await (const event of eventsOf(context, work, work)) fold.push(event);
  } catch (error) {
    ignoreMissing(error);
  }
  if (fold.isOver) return fold.response;
  const dispatch = await context.service.engine.getDispatch(dispatchOf(work.operation_id));
  if (dispatch?.status === "failed") fold.end("failed", dispatch.error);
  if (dispatch?.status === "cancelled") fold.end("cancelled");
  return fold.response;
}

/** Returns the index of the first event of work that has begun. */
async function firstIndexOf({ service }: ServiceContext, work: OpenAiWork): Promise<number | undefined> {
  try {
    return (await service.operationEvents(work, { limit: 1 })).events[0]?.index;
  } catch (error) {
    return ignoreMissing(error);
  }
}

/** Work that is queued, or was stopped before it began, has no events; a new session has no log. */
function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof KitError) || error.code !== "not_found") throw error;
}

function toSeconds(time: string): number {
  return Math.floor(Date.parse(time) / 1_000);
}
