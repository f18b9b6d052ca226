import { hash } from "node:crypto";
import type { InstanceTarget } from "../../app/service/service.ts";
import { dispatchOf, operationOf } from "../../app/service/stored-input.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import { faultOfName } from "../../base/names.ts";
import { UiFold } from "../../interfaces/ai-sdk/fold.ts";
import { awaitedOfCaller, operationOfCall } from "../../interfaces/openai/answer-reader.ts";
import type { CallResults, OpenAiInput } from "../../interfaces/openai/input.ts";
import { newResponse, ResponseFold } from "../../interfaces/openai/response-fold.ts";
import type { Principal, ServiceAction } from "../../protocol/access.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { ErrorCode } from "../../protocol/error-code.ts";
import type { OpenAiResponse, ResponseBody } from "../../protocol/openai.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { RouteRequest } from "../route.ts";
import { checkAgent, type ServiceContext } from "../service-context.ts";
import type { OpenAiWork } from "../streams/openai-stream.ts";
import { decideCall } from "./approvals.ts";
import { eventsOf } from "./ui.ts";

export type Sender = Pick<RouteRequest, "principal" | "receivedAt" | "clientGone" | "header" | "incoming">;

/** Each sender has an instance of its own, so that no id of another one names anything. */
export function instanceFor(principal: Principal | undefined): string {
  const { id } = principal ?? {};
  if (id === undefined) return "default";
  const isUsable = faultOfName(id) === undefined && id !== "default" && !id.startsWith("sender-");
  return isUsable ? id : `sender-${hash("sha256", id)}`;
}

export async function permitted(
  context: ServiceContext,
  { principal }: Pick<Sender, "principal">,
  { agent, action }: { readonly agent: string; readonly action: ServiceAction },
): Promise<InstanceTarget> {
  const target = { agent, instance_id: instanceFor(principal) };
  await context.authorization.check({ principal, action, agent, instance: target.instance_id });
  checkAgent(context, agent);
  return target;
}

/** Returns the session that a header names; one without a value comes from the template of a front end. Throws `invalid_request`. */
export function readSessionName({ header }: Pick<Sender, "header">): string | undefined {
  const name = header("x-kit-session") || undefined;
  const fault = name === undefined ? undefined : faultOfName(name);
  if (fault === undefined) return name;
  const issues = [{ path: "headers.x-kit-session", message: fault }];
  throw new KitError({ code: "invalid_request", message: "A header is invalid.", meta: { issues } });
}

export function newSession(kind: string): string {
  return createId(kind).replace("_", "-");
}

export async function begin(
  context: ServiceContext,
  { principal, receivedAt }: Sender,
  {
    key,
    asked,
    isNew = false,
    toRest,
  }: {
    readonly key: SessionKey;
    readonly asked: OpenAiInput | CallResults;
    /** Whether the session's name was just made. */
    readonly isNew?: boolean;
    /** Returns the new part of a request for a session that has begun. */
    readonly toRest: (asked: OpenAiInput) => OpenAiInput;
  },
): Promise<OpenAiWork> {
  if ("results" in asked) return await giveResults(context, principal, { target: key, ...asked });
  const { service } = context;
  const isBegun = !isNew && (await service.historyPage(key, { limit: 1 }).catch(ignoreMissing)) !== undefined;
  if (isBegun) await leaveCalls(context, key);
  const { message, settings, history } = isBegun ? toRest(asked) : asked;
  const { operation_id, accepted_at } = await service.dispatch(key, message, {
    ...settings,
    ...(history.length > 0 && { history: [...history] }),
    principal: principal?.id,
    receivedAt,
  });
  return { ...key, operation_id, acceptedAt: accepted_at };
}

/** A caller that goes on with a message has left its calls: the work that waits for them would hold up the session. */
export async function leaveCalls({ service }: ServiceContext, key: SessionKey): Promise<void> {
  for (const { kind, session, operation_id } of await service.approvals.list(key))
    if (kind === "caller" && session === key.session) await service.abort({ ...key, operation_id });
}

/** Gives waiting calls their results, and returns the work that goes on with them. Throws `invalid_request`. */
async function giveResults(
  context: ServiceContext,
  principal: Principal | undefined,
  { target: { agent, instance_id }, results }: CallResults & { readonly target: InstanceTarget },
): Promise<OpenAiWork> {
  const { service } = context;
  const target = { agent, instance_id };
  const [first] = results;
  const path = first?.path ?? "";
  const operation_id = operationOfCall(first?.callId ?? "");
  const dispatch = operation_id && (await service.engine.getDispatch(dispatchOf(operation_id)));
  if (!operation_id || !dispatch || dispatch.agent !== agent || dispatch.instance_id !== instance_id)
    throw refused(path, "is not the id of a call that waits");
  const fold = new UiFold(operation_id);
  let after = 0;
  for await (const event of eventsOf(context, target, { operation_id })) {
    fold.push(event);
    after = event.index;
  }
  const waits = new Set((await service.approvals.list(target)).map(({ approval_id }) => approval_id));
  const open = new Map([...awaitedOfCaller(fold)].filter(([, wait]) => waits.has(wait)));
  for (const { path: at, callId } of results)
    if (!open.has(callId)) throw refused(at, "is not the id of a call that waits");
  const given = new Map(results.map(({ callId, text }) => [open.get(callId) ?? "", text]));
  if (given.size !== open.size)
    throw refused(path, "must come with the results of all calls of its answer, and no others");
  for (const [approval_id, result] of given)
    await decideCall(
      service,
      { ...target, approval_id },
      { approved: true, result, by: principal?.id },
    ).catch(ignoreMissing);
  return { ...target, session: dispatch.session, operation_id, acceptedAt: dispatch.accepted_at, after };
}

/**
 * An operation whose calls the caller runs is several responses: the later ones name the event at which they begin. The id of a response
 * that is not stored leads to nothing.
 */
export function toResponseId(
  { operation_id, after }: OpenAiWork,
  { isStored }: { readonly isStored: boolean },
): string {
  const begin = after === undefined ? "" : `_${after}`;
  return isStored ? `resp_${operation_id.replace(/^op_/, "")}${begin}` : createId("resp_unstored");
}

export function toFold(
  { operation_id: operationId, after }: OpenAiWork,
  response: OpenAiResponse,
): ResponseFold {
  return new ResponseFold({ operationId, after }, response);
}

export interface FoundResponse {
  readonly work: OpenAiWork;
  /** Before its first event. */
  readonly response: OpenAiResponse;
  readonly isCompleted: boolean;
}

export function missingResponse(): KitError {
  return new KitError({ code: "not_found", message: "There is no such response." });
}

/** Finds the response that a path names. Throws `not_found`, also for one that the sender may not read. */
export async function findResponse(
  context: ServiceContext,
  { principal, segment, action = "agent.read" }: RouteRequest<"response_id">,
): Promise<FoundResponse> {
  const id = segment("response_id");
  const missing = missingResponse();
  const found = await findOwn(context, principal, id);
  if (found === undefined) throw missing;
  const { agent, instance_id: instance, accepted_at, status } = found;
  const reading = "agent.read";
  for (const each of [reading, action] as const)
    await context.authorization.checkFound(
      { principal, action: each, agent, instance },
      { reading, missing },
    );
  checkAgent(context, agent);
  const operation_id = operationOf(found.dispatch_id);
  const about = { id, model: agent, createdAt: toSeconds(accepted_at) };
  // Whether it was asked for in the background is not kept.
  const response = { ...newResponse(about, { background: status === "queued" }), background: null };
  const after = Number(/_(\d+)$/.exec(id)?.[1] ?? 0) || undefined;
  const { session } = found;
  const work = { agent, instance_id: instance, session, operation_id, acceptedAt: accepted_at, after };
  return { work, response, isCompleted: status === "completed" };
}

/** Returns the work of a sender that a response's id names. */
async function findOwn(
  { service }: ServiceContext,
  principal: Principal | undefined,
  id: string,
): Promise<DispatchRecord | undefined> {
  const [, ulid] = /^resp_([0-9A-Z]{26})(?:_[1-9]\d{0,14})?$/.exec(id) ?? [];
  const dispatch =
    ulid === undefined ? undefined : await service.engine.getDispatch(dispatchOf(`op_${ulid}`));
  return dispatch?.instance_id === instanceFor(principal) ? dispatch : undefined;
}

/** Returns the session of a request. Throws `not_found` for an unknown response, and `conflict` for one that others have followed. */
export async function sessionOf(
  context: ServiceContext,
  { principal, header, body }: Pick<Sender, "principal" | "header"> & { readonly body: ResponseBody },
  { target, previous: ofItem }: { readonly target: InstanceTarget; readonly previous: string | undefined },
): Promise<SessionKey> {
  const { conversation, previous_response_id } = body;
  const previous = previous_response_id ?? ofItem;
  const sessionName =
    typeof conversation === "string" ? conversation : (conversation?.id ?? readSessionName({ header }));
  if (previous === undefined) return { ...target, session: sessionName ?? newSession("response") };
  const path = "previous_response_id";
  const found = await findOwn(context, principal, previous);
  if (found === undefined) throw refused(path, "is not the id of a response", "not_found");
  const { session, dispatch_id, status } = found;
  if (found.agent !== target.agent) throw refused(path, "is of another model");
  if (conversation !== undefined && conversation !== null && sessionName !== session)
    throw refused(path, "is of another conversation");
  const { operations } = await context.service.operations(target, { session, limit: 1 });
  if (status !== "queued" && operations[0]?.operation_id !== operationOf(dispatch_id))
    throw refused(path, "must be the newest of its session: kit keeps one line of answers", "conflict");
  return { ...target, session };
}

/** Work that is queued, or was stopped before it began, has no events; a new session has no log. */
export function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof KitError) || error.code !== "not_found") throw error;
}

export function toSeconds(time: string): number {
  return Math.floor(Date.parse(time) / 1_000);
}

function refused(path: string, fault: string, code: ErrorCode = "invalid_request"): KitError {
  const issues = [{ path: `body.${path}`, message: fault }];
  return new KitError({ code, message: "The request cannot be answered.", meta: { issues } });
}
