import { hash } from "node:crypto";
import type { InstanceTarget } from "../../app/service/service.ts";
import { keyOfSender, operationOf, toPromptRequest } from "../../app/service/stored-input.ts";
import { KitError } from "../../base/kit-error.ts";
import { faultOfName } from "../../base/names.ts";
import { a2aError } from "../../interfaces/a2a/error.ts";
import { A2aFold } from "../../interfaces/a2a/fold.ts";
import { answeredCall, toA2aInput, toAnswers } from "../../interfaces/a2a/input.ts";
import { toTask, type WaitingCall } from "../../interfaces/a2a/task.ts";
import type { A2aMessage, A2aTask, A2aUpdate } from "../../protocol/a2a.ts";
import type { ServiceAction } from "../../protocol/access.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { RouteRequest } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";
import { actionOn, checkDecision, decideCall } from "./approvals.ts";
import { ignoreMissing, instanceFor } from "./openai-work.ts";
import { eventsOf } from "./ui.ts";

/** How a server answers other agents. */
export interface A2aSettings {
  /** The agent whose card is at the root. */
  readonly agent?: string | undefined;
  /** The address of the server as clients type it; default: that of the request. */
  readonly url?: string | undefined;
  /** The readers of cards: senders with a key, or everybody. */
  readonly cards: "keys" | "public";
  /** The deciders about waiting calls: people in kit's inbox, or also the sender, if it has `agent.approve`. */
  readonly approvals: "inbox" | "sender";
}

/** Whether a path is that of an agent's card. */
export function isCardPath(path: string): boolean {
  return /^(?:\/a2a\/[^/]+)?\/\.well-known\/agent-card\.json$/.test(path);
}

export interface A2aContext extends ServiceContext {
  readonly settings: A2aSettings;
}

/** A sender, and the agent that it speaks with. */
export interface Caller extends Pick<RouteRequest, "principal" | "receivedAt"> {
  readonly agent: string;
}

interface TaskView {
  readonly historyLength?: number | null | undefined;
  readonly hasArtifacts?: boolean;
  readonly text?: string;
}

/** A task as it is now, and the place from which its updates follow. */
export interface FollowedTask {
  readonly record: DispatchRecord;
  readonly task: A2aTask;
  readonly after: number;
  readonly isWaiting: boolean;
}

/** Finds a task of the sender. Throws A2A's error, also for a task of another sender or agent. */
export async function findTask(
  { service, authorization }: A2aContext,
  { agent, principal }: Caller,
  { id, action }: { readonly id: string; readonly action: ServiceAction },
): Promise<DispatchRecord> {
  const missing = a2aError("TASK_NOT_FOUND", "There is no such task.");
  const record = id.startsWith("dispatch_") ? await service.engine.getDispatch(id) : undefined;
  const instance = instanceFor(principal);
  if (record?.agent !== agent || record.instance_id !== instance) throw missing;
  const reading = "agent.read";
  for (const each of [reading, action] as const)
    await authorization.checkFound({ principal, action: each, agent, instance }, { reading, missing });
  return record;
}

/** Converts dispatches of the sender to tasks. */
export async function toTasks(
  context: A2aContext,
  caller: Caller,
  { records, ...view }: TaskView & { readonly records: readonly DispatchRecord[] },
): Promise<readonly A2aTask[]> {
  const isOpen = records.some(({ ended_at }) => ended_at === undefined);
  const calls = isOpen ? await waitingCalls(context, caller) : [];
  return records.map((record) => {
    const { message = "", client_id: messageId } = toPromptRequest(record.input);
    const waiting = calls.filter(({ dispatch_id }) => dispatch_id === record.dispatch_id);
    return toTask(record, { ...view, message, messageId, waiting });
  });
}

/** The waiting calls of the sender's tasks. */
async function waitingCalls(
  { service, authorization, settings }: A2aContext,
  { agent, principal }: Caller,
): Promise<readonly WaitingCall[]> {
  const target = { agent, instance_id: instanceFor(principal) };
  const calls = await service.approvals.list(target);
  const permitted = await authorization.permitted(
    calls.filter(({ kind }) => kind === "caller" || settings.approvals === "sender"),
    ({ approval_id }) => ({ principal, action: actionOn(approval_id), agent, instance: target.instance_id }),
  );
  const own = new Set(permitted);
  return calls.map((call) => ({ ...call, isSenders: own.has(call) }));
}

/** Accepts a message: a new task, or the answer to what a task waits for. */
export async function accept(
  context: A2aContext,
  caller: Caller,
  { message, ...view }: TaskView & { readonly message: A2aMessage },
): Promise<FollowedTask> {
  const { taskId, contextId, messageId } = message;
  const { agent, principal, receivedAt } = caller;
  if (taskId) return await goOn(context, caller, { message, taskId, ...view });
  const fault = contextId ? faultOfName(contextId) : undefined;
  if (fault !== undefined)
    throw new KitError({
      code: "invalid_request",
      message: "The message cannot be taken.",
      meta: { issues: [{ path: "message.contextId", message: fault }] },
    });
  const target: InstanceTarget = { agent, instance_id: instanceFor(principal) };
  await context.authorization.check({
    principal,
    action: "agent.prompt",
    agent,
    instance: target.instance_id,
  });
  // The same message again, after a lost reply, is the same task, also if its context is new.
  const digest = hash("sha256", JSON.stringify([agent, contextId || null, messageId]));
  const { message: text, ...files } = toA2aInput(message);
  const key = { ...target, session: contextId || `context-${digest.slice(0, 24)}` };
  const { dispatch_id } = await context.service.dispatch(key, text, {
    ...files,
    client_id: messageId,
    idempotencyKey: keyOfSender(principal, `a2a-${digest}`),
    principal: principal?.id,
    receivedAt,
  });
  const record = await context.service.engine.getDispatch(dispatch_id);
  if (record === undefined) throw a2aError("TASK_NOT_FOUND", "The task was deleted.");
  return await followed(context, caller, { record, ...view });
}

async function goOn(
  context: A2aContext,
  caller: Caller,
  { message, taskId, ...view }: TaskView & { readonly message: A2aMessage; readonly taskId: string },
): Promise<FollowedTask> {
  const record = await findTask(context, caller, { id: taskId, action: "agent.prompt" });
  if (message.contextId && message.contextId !== record.session)
    throw new KitError({
      code: "invalid_request",
      message: "The message cannot be taken.",
      meta: { issues: [{ path: "message.contextId", message: "must be that of the task" }] },
    });
  const refused = (why: string): KitError =>
    a2aError("UNSUPPORTED_OPERATION", `${why} A message of its context without taskId begins another task.`);
  const calls = (await waitingCalls(context, caller)).filter(({ dispatch_id }) => dispatch_id === taskId);
  const decided = await decidedCalls(context, caller, { record, calls });
  if (message.parts.every((part) => decided.has(answeredCall(part))))
    return await followed(context, caller, { record, ...view });
  if (record.ended_at !== undefined) throw refused("The task has ended.");
  const own = calls.filter(({ isSenders }) => isSenders);
  if (own.length === 0)
    throw refused(
      calls.length > 0 ? "A person decides about the task's calls." : "The task waits for no message.",
    );
  const answers = [...toAnswers(message, { waiting: own, decided })].map(([approval_id, body]) => ({
    call: { agent: record.agent, instance_id: record.instance_id, approval_id },
    decision: { ...body, by: caller.principal?.id },
  }));
  for (const { call, decision } of answers) await checkDecision(context.service, call, decision);
  const { after } = await followed(context, caller, { record });
  for (const { call, decision } of answers)
    await decideCall(context.service, call, decision).catch(ignoreMissing);
  return await followed(context, caller, { record, after, ...view });
}

/** The ids of the task's calls that wait no more, except of those that another principal has decided. */
async function decidedCalls(
  context: A2aContext,
  { principal }: Caller,
  {
    record: { agent, instance_id, dispatch_id },
    calls,
  }: { readonly record: DispatchRecord; readonly calls: readonly WaitingCall[] },
): Promise<ReadonlySet<unknown>> {
  const ids = new Set<string>();
  const query = { operation_id: operationOf(dispatch_id), types: ["approval_request", "approval"] as const };
  try {
    for await (const event of eventsOf(context, { agent, instance_id }, query)) {
      if (event.type === "approval_request") ids.add(event.approval_id);
      if (event.type === "approval" && event.by !== principal?.id) ids.delete(event.approval_id);
    }
  } catch (error) {
    ignoreMissing(error);
  }
  for (const { approval_id } of calls) ids.delete(approval_id);
  return ids;
}

/** Reads a task as it is, with what its agent has answered up to an event; default: so far. */
export async function followed(
  context: A2aContext,
  caller: Caller,
  { record, after, ...view }: TaskView & { readonly record: DispatchRecord; readonly after?: number },
): Promise<FollowedTask> {
  const fold = foldOf(record, 0);
  const { agent, instance_id, dispatch_id, ended_at } = record;
  try {
    const target = { agent, instance_id };
    if (ended_at === undefined)
      for await (const event of eventsOf(context, target, { operation_id: operationOf(dispatch_id) })) {
        if (event.index > (after ?? event.index)) break;
        fold.push(event);
      }
  } catch (error) {
    ignoreMissing(error);
  }
  // Read after the events, so that what happens in between is an update.
  const [now = record] = [await context.service.engine.getDispatch(dispatch_id)];
  const [task] = await toTasks(context, caller, { records: [now], ...view, text: fold.text });
  if (task === undefined) throw a2aError("TASK_NOT_FOUND", "There is no such task.");
  const { state } = task.status;
  const isWaiting = state === "TASK_STATE_INPUT_REQUIRED" || state === "TASK_STATE_AUTH_REQUIRED";
  return { record: now, task, after: fold.index, isWaiting };
}

function foldOf({ dispatch_id: taskId, session: contextId }: DispatchRecord, after: number): A2aFold {
  return new A2aFold({ taskId, contextId, operationId: operationOf(taskId), after });
}

/** Yields the updates of a task until it has ended, or waits, unless `toTheEnd`. */
export async function* updatesOf(
  context: A2aContext,
  caller: Caller,
  {
    from: { record, task, after, isWaiting },
    events,
    toTheEnd = false,
  }: {
    readonly from: FollowedTask;
    readonly events: AsyncIterable<KitEvent>;
    readonly toTheEnd?: boolean;
  },
): AsyncGenerator<readonly A2aUpdate[]> {
  yield [{ task }];
  if (record.ended_at !== undefined || (isWaiting && !toTheEnd)) return;
  const { dispatch_id: id } = record;
  const fold = foldOf(record, after);
  for await (const event of events) {
    yield fold.push(event);
    if (!fold.mayWaitAfter(event)) continue;
    const calls = (await waitingCalls(context, caller)).filter(({ dispatch_id }) => dispatch_id === id);
    if (calls.length === 0) continue;
    yield fold.wait(calls);
    if (!toTheEnd) return;
  }
  const ended = await context.service.engine.awaitDispatch(id);
  const [last] = ended === undefined ? [] : await toTasks(context, caller, { records: [ended] });
  if (last !== undefined) yield fold.end(last);
}
