import { hash } from "node:crypto";
import { keyOfSender } from "../../app/service/stored-input.ts";
import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import { AgUiFold } from "../../interfaces/ag-ui/fold.ts";
import { toAgUiInput, toAgUiMessages } from "../../interfaces/ag-ui/messages.ts";
import { toMessageId } from "../../interfaces/ai-sdk/user-message.ts";
import type { AgUiBody, AgUiEvent, AgUiResume } from "../../protocol/ag-ui.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import type { ErrorEnvelope } from "../../protocol/errors.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { Message, UserMessage } from "../../protocol/message.ts";
import { agUiRoutes } from "../../protocol/routes/ag-ui-routes.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { OperationRecord } from "../../protocol/trace.ts";
import { bindRoutes, type Handlers, type Route, type RouteInput } from "../route.ts";
import { instanceOf, type ServiceContext } from "../service-context.ts";
import { dataFrame, type OpenAiStream, type OpenAiWork, streamFrames } from "../streams/openai-stream.ts";
import { restsNow } from "../streams/ui-stream.ts";
import { decideCall } from "./approvals.ts";
import { ignoreMissing, leaveCalls } from "./openai-work.ts";
import { eventsOf, guardChat, isOpen } from "./ui.ts";

type RunKey = "POST /agents/{name}/{id}/agui";
type RunInput = RouteInput<RunKey, (typeof agUiRoutes)[RunKey]>;

/** `/agents/{name}/{id}/agui`: front ends that speak AG-UI. */
export function bindAgUiRoutes(context: ServiceContext): readonly Route[] {
  const { authorization, service } = context;
  const endsWithClient = false;
  const toLastFrames = ({ error }: ErrorEnvelope): string =>
    dataFrame({ type: "RUN_ERROR", message: error.message, code: error.type });
  const handlers: Handlers<typeof agUiRoutes> = {
    async "POST /agents/{name}/{id}/agui"(input) {
      const { principal, action, itemAction, body } = input;
      const key = { ...instanceOf(input), session: body.threadId };
      const decisions = { answers: answersIn(body), results: resultsIn(body) };
      const about = { principal, agent: key.agent, instance: key.instance_id };
      if (body.resume.length > 0) await authorization.check({ ...about, action: itemAction });
      const open = async (): Promise<OpenAiStream> => {
        const work =
          decisions.answers.size + decisions.results.size > 0
            ? await goOn(context, input, { key, decisions })
            : await begin(context, input, key);
        return toStream(context, { work, run: body });
      };
      return await streamFrames(context, input, { action, endsWithClient, open, toLastFrames });
    },
    async "POST /agents/{name}/{id}/agui/connect"(input) {
      const { action, body } = input;
      const key = { ...instanceOf(input), session: body.threadId };
      const open = async (): Promise<OpenAiStream> => {
        const newest = await newestOf(context, key);
        const running = newest !== undefined && isOpen(newest) ? newest : undefined;
        const page = await service.historyPage(key, { limit: 200 }).catch(ignoreMissing);
        const before = (page?.entries ?? []).filter((entry) => entry.operation_id !== running?.operation_id);
        const begun = new Set<string>();
        const messages = before.flatMap(({ message, position, operation_id }) => {
          const begins = isOfUser(message) && message.joined_from === undefined && !begun.has(operation_id);
          if (begins) begun.add(operation_id);
          const id = begins ? toMessageId(operation_id) : `message-${position}`;
          return toAgUiMessages(message, { id, operationId: operation_id });
        });
        // A message that had joined another operation, which then died, begins one of its own.
        const hasFirst = before.some(
          ({ message }) => isOfUser(message) && message.joined_from === running?.operation_id,
        );
        if (running !== undefined && !hasFirst) messages.push(...(await firstOf(context, key, running)));
        const snapshot = { type: "MESSAGES_SNAPSHOT", messages };
        const { threadId } = body;
        if (running !== undefined) {
          const { operation_id } = running;
          const work = { ...key, operation_id, acceptedAt: running.started_at };
          return toStream(context, { work, run: { threadId, runId: operation_id, messages }, snapshot });
        }
        const run = { threadId, runId: body.runId };
        const outcome = { type: "success" };
        const frames = [{ type: "RUN_STARTED", ...run }, snapshot, { type: "RUN_FINISHED", ...run, outcome }];
        return { fold: { isOver: true }, frames: () => frameOnce(frames) };
      };
      return await streamFrames(context, input, { action, endsWithClient, open, toLastFrames });
    },
  };
  return bindRoutes(agUiRoutes, handlers, guardChat(context));
}

async function newestOf({ service }: ServiceContext, key: SessionKey): Promise<OperationRecord | undefined> {
  return (await service.operations(key, { session: key.session, limit: 1 })).operations[0];
}

function isOfUser(message: Message): message is UserMessage {
  return message.role === "user" && message.source === undefined;
}

/** The message that began an operation: its stream has everything after it, also the messages that join. */
async function firstOf(
  context: ServiceContext,
  key: SessionKey,
  { operation_id, first_index }: OperationRecord,
): Promise<readonly object[]> {
  const types = ["operation_start"] as const;
  for await (const event of eventsOf(context, key, { operation_id, first_index, types })) {
    if (event.type !== "operation_start" || event.operation_id !== operation_id) continue;
    const { message: content, client_id } = event;
    return content === undefined
      ? []
      : [{ id: toMessageId(client_id ?? operation_id), role: "user", content }];
  }
  return [];
}

type Decisions = ReadonlyMap<string, Omit<ApprovalDecision, "by">>;
type Answers = ReadonlyMap<string, AgUiResume>;

/** The answers of a front end: to interrupts by their ids, for which it needs `agent.approve`. */
function answersIn({ resume }: AgUiBody): Answers {
  return new Map(resume.map((answer) => [answer.interruptId, answer]));
}

/** The results of the front end's own tools, by the ids of their calls. */
function resultsIn({ messages }: AgUiBody): Decisions {
  const results = messages.slice(messages.findLastIndex(({ role }) => role !== "tool") + 1);
  return new Map(
    results.flatMap(({ toolCallId, content }) =>
      toolCallId === undefined ? [] : [[toolCallId, { approved: true, result: content ?? "" }]],
    ),
  );
}

function toDecision(
  { status, payload }: AgUiResume,
  kind: ApprovalRequest["kind"],
): Omit<ApprovalDecision, "by"> {
  if (kind === "question" && status === "resolved") return { approved: true, result: payload ?? null };
  const { approved = true, reason, args } = isRecord(payload) ? payload : {};
  if (status === "resolved" && approved === true)
    return isRecord(args) ? { approved: true, args } : { approved: true };
  return { approved: false, ...(typeof reason === "string" && { reason: reason.slice(0, 10_000) }) };
}

/** Decides the calls at which the newest operation of a thread waits, and returns it from there on. Throws `conflict`. */
async function goOn(
  context: ServiceContext,
  { principal, body }: Pick<RunInput, "principal" | "body">,
  {
    key,
    decisions: { answers, results },
  }: {
    readonly key: SessionKey;
    readonly decisions: { readonly answers: Answers; readonly results: Decisions };
  },
): Promise<OpenAiWork> {
  const nothing = new KitError({
    code: "conflict",
    message: "Nothing of this thread waits for this answer.",
  });
  const newest = await newestOf(context, key);
  if (newest?.status !== "waiting") throw nothing;
  const { operation_id } = newest;
  const fold = new AgUiFold({ ...body, operationId: operation_id });
  let after = 0;
  for await (const event of eventsOf(context, key, newest)) {
    fold.push(event);
    after = event.index;
  }
  const decided = [...fold.waiting].flatMap(([toolCallId, { approval_id, kind }]) => {
    // A result approves nothing: only a call of the front end's own tools takes one.
    const answer = answers.get(approval_id);
    const result = kind === "caller" ? results.get(toolCallId) : undefined;
    const decision = answer === undefined ? result : toDecision(answer, kind);
    return decision === undefined ? [] : [{ approval_id, decision: { ...decision, by: principal?.id } }];
  });
  if (decided.length === 0) throw nothing;
  for (const { approval_id, decision } of decided)
    await decideCall(context.service, { ...key, approval_id }, decision).catch(ignoreMissing);
  return { ...key, operation_id, acceptedAt: newest.started_at, after };
}

async function begin(
  context: ServiceContext,
  { principal, receivedAt, body }: Pick<RunInput, "principal" | "receivedAt" | "body">,
  key: SessionKey,
): Promise<OpenAiWork> {
  const last = body.messages.at(-1);
  if (last?.role !== "user")
    throw new KitError({
      code: "invalid_request",
      message: "The run cannot begin.",
      meta: { issues: [{ path: "body.messages", message: "must end with a message of the user" }] },
    });
  await leaveCalls(context, key);
  const { message, ...files } = toAgUiInput(last);
  const tools = body.tools.map(({ name, description, parameters }) => ({
    name,
    ...(description && { description }),
    ...(parameters && { input_schema: { ...parameters } }),
  }));
  const { operation_id, accepted_at } = await context.service.dispatch(key, message, {
    ...files,
    ...(tools.length > 0 && { tools }),
    client_id: last.id,
    // The same run again, after a lost reply, is the same work.
    idempotencyKey: keyOfSender(
      principal,
      `agui-${hash("sha256", JSON.stringify([key.session, body.runId, last.id]))}`,
    ),
    principal: principal?.id,
    receivedAt,
  });
  return { ...key, operation_id, acceptedAt: accepted_at };
}

function toStream(
  context: ServiceContext,
  {
    work,
    run,
    snapshot,
  }: {
    readonly work: OpenAiWork;
    readonly run: Pick<AgUiBody, "threadId" | "runId"> & { readonly messages: readonly object[] };
    readonly snapshot?: AgUiEvent;
  },
): OpenAiStream {
  const fold = new AgUiFold({ ...run, operationId: work.operation_id, after: work.after });
  const frames = async function* (events: AsyncIterable<KitEvent>): AsyncGenerator<string> {
    yield toFrames([...fold.start(), ...(snapshot === undefined ? [] : [snapshot])]);
    for await (const event of events) {
      yield toFrames(fold.push(event));
      const { after = 0 } = work;
      if (!fold.isOver && event.index > after && (await restsNow(context.service, work, fold.work)))
        yield toFrames(fold.handOver(event));
      if (fold.isOver) return;
    }
    yield toFrames(fold.endUnbegun());
  };
  return { work, fold, frames };
}

function toFrames(events: readonly AgUiEvent[]): string {
  return events.map(dataFrame).join("");
}

async function* frameOnce(events: readonly AgUiEvent[]): AsyncGenerator<string> {
  yield toFrames(events);
}
