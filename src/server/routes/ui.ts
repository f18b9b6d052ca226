import { hash } from "node:crypto";
import { z } from "zod";
import type { InstanceTarget } from "../../app/service/service.ts";
import { keyOfSender } from "../../app/service/stored-input.ts";
import type { OperationEventsQuery } from "../../app/service/trace.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import { UiFold } from "../../interfaces/ai-sdk/fold.ts";
import { toUiMessage } from "../../interfaces/ai-sdk/ui-message.ts";
import { toMessageId, toUiFile, toUserInput } from "../../interfaces/ai-sdk/user-message.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { uiRoutes } from "../../protocol/routes/ui-routes.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { OperationRecord, OperationsQuery } from "../../protocol/trace.ts";
import type { UiChunk, UiMessage, UiPart } from "../../protocol/ui.ts";
import { emptyReply } from "../reply.ts";
import { readLastEventId } from "../request/read-request.ts";
import { bindRoutes, type Guard, type Handlers, type Route, type RouteRequest } from "../route.ts";
import { checkAgent, instanceOf, type ServiceContext } from "../service-context.ts";
import { restsNow, streamUi } from "../streams/ui-stream.ts";
import { decideCall } from "./approvals.ts";

/** `/agents/{name}/{id}/ui`: chat pages with `useChat` of the AI SDK. */
export function bindUiRoutes(context: ServiceContext): readonly Route[] {
  const { service, authorization } = context;
  const sessionOf = (input: Pick<RouteRequest<"name" | "id" | "session">, "segment">): SessionKey => ({
    ...instanceOf(input),
    session: input.segment("session"),
  });
  const handlers: Handlers<typeof uiRoutes> = {
    async "POST /agents/{name}/{id}/ui"(input) {
      const { principal, itemAction, receivedAt, body } = input;
      const { id: session = "default", messages, tools } = body;
      const target = instanceOf(input);
      const last = messages.at(-1);
      if (last?.role === "assistant") {
        const { decisions, answers } = answersIn(last);
        const about = { principal, agent: target.agent, instance: target.instance_id };
        // The sender of a prompt answers the calls of its own tools; an approver decides about others.
        if (decisions.length > 0) await authorization.check({ ...about, action: itemAction });
        await authorization.check({ ...about, action: "agent.read" });
        return await streamUi(context, input, {
          target: { ...target, operation_id: last.id },
          action: "agent.read",
          after: last.metadata?.kit_index,
          begin: async () => {
            const own = new Set<string>();
            const fold = new UiFold(last.id);
            for await (const event of eventsOf(context, target, {
              operation_id: last.id,
              types: callEvents,
            })) {
              fold.push(event);
              if (event.type === "approval_request" && event.kind === undefined) own.add(event.approval_id);
            }
            const { awaitedOfPage } = fold;
            const results = answers.flatMap(({ toolCallId, ...answer }) => {
              const id = awaitedOfPage.get(toolCallId);
              return id === undefined ? [] : [{ id, ...answer }];
            });
            // A call of another answer is none of this one's, and thousands of decisions cost no thousands of questions.
            for (const { id: approval_id, ...decision } of [
              ...decisions.filter(({ id }) => own.delete(id)),
              ...results,
            ])
              await decideCall(service, { ...target, approval_id }, { ...decision, by: principal?.id }).catch(
                ignoreDecided,
              );
          },
        });
      }
      if (last?.role !== "user")
        throw refused("messages", "must end with a message of the user or the assistant");
      const { message, ...files } = toUserInput(last);
      const key = { ...target, session };
      const isAgain = body.trigger === "regenerate-message" || typeof body.messageId === "string";
      const { rewind_before, left = [] } = isAgain
        ? await goBack(context, key, { to: nameOf(last.id), principal })
        : {};
      // The same message again, after a lost reply, is the same work; the same id in another chat is another message.
      const once = isAgain ? body.request_id : last.id;
      const { operation_id } = await service.dispatch(key, message, {
        ...files,
        tools,
        client_id: nameOf(last.id),
        rewind_before,
        ...(once !== undefined && { idempotencyKey: keyOfSender(principal, keyOfMessage(key, once)) }),
        principal: principal?.id,
        receivedAt,
      });
      // After the dispatch, which tells whether one of them is the work of an earlier attempt of this request.
      for (const other of left)
        if (other !== operation_id) await service.abort({ ...key, operation_id: other });
      return await streamUi(context, input, { target: { ...target, operation_id }, action: input.action });
    },
    async "GET /agents/{name}/{id}/ui/{session}/stream"(input) {
      const { session, ...target } = sessionOf(input);
      const after = readLastEventId(input);
      let { operation_id } = input.query;
      if (operation_id === undefined) {
        const { operations } = await service.operations(target, { session, limit: 1 });
        const [newest] = operations;
        if (newest === undefined || !(await isRunning(context, target, newest))) return emptyReply({});
        ({ operation_id } = newest);
      }
      const isContinued = after !== undefined;
      return await streamUi(context, input, {
        target: { ...target, operation_id },
        action: input.action,
        after,
        isContinued,
      });
    },
    async "GET /agents/{name}/{id}/ui/{session}/messages"(input) {
      const { session, ...target } = sessionOf(input);
      const { branch, next_before } = await readBranch(service, target, { ...input.query, session });
      const files = await filesOf(context, { ...target, session });
      const messages: UiMessage[] = [];
      for (const operation of branch.toReversed())
        messages.push(...(await messagesOf(context, { target, operation, files })));
      return { messages, next_before };
    },
    async "POST /agents/{name}/{id}/ui/{session}/stop"(input) {
      return { stopped: await service.abort({ ...sessionOf(input), ...input.body }) };
    },
  };
  return bindRoutes(uiRoutes, handlers, guardChat(context));
}

/** A sender that may not read the instance gets the error for one that does not exist. */
export function guardChat(context: ServiceContext): Guard {
  return async ({ action, principal, segment }) => {
    if (action === undefined) return;
    const { agent, instance_id: instance } = instanceOf({ segment });
    const missing = new KitError({ code: "not_found", message: "There is no such chat." });
    const request = { principal, action, agent, instance };
    await context.authorization.checkFound(request, { reading: "agent.read", missing });
    checkAgent(context, agent);
  };
}

const decisionSchema = z.object({
  id: z.string().min(1).max(200),
  approved: z.boolean(),
  reason: z.string().max(10_000).optional(),
});

const answerSchema = z.object({
  toolCallId: z.string().min(1).max(1_000),
  output: z.unknown().optional(),
  errorText: z.string().max(10_000).optional(),
});

interface UiAnswers {
  readonly decisions: readonly z.infer<typeof decisionSchema>[];
  /** The results of the page's own tools, also those of earlier steps. */
  readonly answers: readonly { toolCallId: string; approved: boolean; result?: unknown; reason?: string }[];
}

/**
 * The answers to approvals, and the results of the page's tools, in a message. Throws `invalid_request` if there are none, or if
 * one is not understood.
 */
function answersIn({ parts, metadata }: UiMessage): UiAnswers {
  const answered = parts.filter(({ state }) => state === "approval-responded");
  const ran = parts.filter(
    ({ state, providerExecuted }) =>
      providerExecuted !== true && (state === "output-available" || state === "output-error"),
  );
  if (answered.length === 0 && ran.length === 0)
    throw refused(
      "messages",
      "must end with a user's message, or with answers to approvals or of the page's tools",
    );
  if (metadata?.kit_index === undefined)
    throw refused("messages", "must have the `metadata` that came with the answer");
  const decisions = answered.map(({ approval }) => {
    const decision = decisionSchema.safeParse(approval);
    if (decision.success) return defined(decision.data) as z.infer<typeof decisionSchema>;
    throw refused("messages", "has an answer to an approval without `id` and `approved`");
  });
  const answers = ran.map((part) => {
    const answer = answerSchema.safeParse(part);
    if (!answer.success)
      throw refused("messages", "has a result without `toolCallId`, or a longer `errorText` than 10,000");
    const { toolCallId, output, errorText } = answer.data;
    if (part.state === "output-error")
      return { toolCallId, approved: false, ...defined({ reason: errorText }) };
    // A tool that returns nothing has run.
    return { toolCallId, approved: true, result: output ?? null };
  });
  return { decisions, answers };
}

/** The events that tell which calls wait. */
const callEvents = ["tool_start", "approval_request", "approval", "tool_end"] as const;

/** An edited message keeps its name, so each edit of it names it alike. */
function nameOf(id: string): string {
  return id.replace(/^user-(?=op_)/, "");
}

function keyOfMessage({ agent, instance_id, session }: SessionKey, id: string): string {
  return `ui-${hash("sha256", JSON.stringify([agent, instance_id, session, id]))}`;
}

function refused(path: string, fault: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The message of the chat cannot be answered.",
    meta: { issues: [{ path: `body.${path}`, message: fault }] },
  });
}

/** Another person, or an earlier attempt of this request, has decided: the stream tells how. */
function ignoreDecided(error: unknown): void {
  if (!(error instanceof KitError) || error.code !== "not_found") throw error;
}

/** Yields the events of an operation and its tasks so far. */
export async function* eventsOf(
  { service }: ServiceContext,
  target: InstanceTarget,
  {
    operation_id,
    first_index,
    types,
  }: Pick<OperationRecord, "operation_id"> & Pick<OperationEventsQuery, "first_index" | "types">,
): AsyncGenerator<KitEvent> {
  for (let after: number | undefined = 0; after !== undefined; ) {
    const query = { first_index, after, types, limit: 1_000 };
    const page = await service.operationEvents({ ...target, operation_id }, query);
    yield* page.events;
    after = page.next_after;
  }
}

/** Reads the operations that rewinds have not left behind, newest first: a page of them, and more if it ends among others. */
async function readBranch(
  service: ServiceContext["service"],
  target: InstanceTarget,
  query: OperationsQuery,
): Promise<{ readonly branch: readonly OperationRecord[]; readonly next_before: number | undefined }> {
  const branch: OperationRecord[] = [];
  let until: string | undefined;
  for (let { before } = query; ; ) {
    const { operations, next_before } = await service.operations(target, { ...query, before });
    for (const operation of operations) {
      const { operation_id, rewound_before } = operation;
      if (until === undefined) {
        branch.push(operation);
        until = rewound_before;
        // The log has the rewind of an operation before its input: a rewind before the operation goes back no further than to it.
      } else if (operation_id === until) until = rewound_before;
    }
    if (until === undefined || next_before === undefined) return { branch, next_before };
    before = next_before;
  }
}

/**
 * Finds the operation of a message, and those since that have not ended: a rewind leaves them behind, so they have to stop. Without
 * `rewind_before`, the server never had the message, because its request failed.
 */
async function goBack(
  { service, authorization }: ServiceContext,
  { session, ...target }: SessionKey,
  { to, principal }: { readonly to: string; readonly principal: RouteRequest["principal"] },
): Promise<{ readonly rewind_before?: string | undefined; readonly left?: readonly string[] }> {
  const left: OperationRecord[] = [];
  const isSought = ({ client_id, operation_id }: OperationRecord): boolean =>
    client_id === to || operation_id === to;
  for (let before: number | undefined; ; ) {
    const { branch, next_before } = await readBranch(service, target, { session, before });
    const at = branch.findIndex(isSought);
    left.push(...branch.slice(0, at === -1 ? undefined : at + 1));
    if (at === -1 && next_before === undefined) return {};
    before = next_before;
    if (at === -1) continue;
    const open = left.filter(isOpen);
    const about = { principal, agent: target.agent, instance: target.instance_id };
    if (open.length > 0) await authorization.check({ ...about, action: "agent.abort" });
    // The same for a repeated request, which finds its own work: an idempotency key takes no other input.
    return { rewind_before: to, left: open.map(({ operation_id }) => operation_id) };
  }
}

export function isOpen({ status }: OperationRecord): boolean {
  return status === "working" || status === "waiting" || status === "retrying";
}

/** Whether an operation goes on without a person's decision. */
async function isRunning(
  context: ServiceContext,
  target: InstanceTarget,
  operation: OperationRecord,
): Promise<boolean> {
  if (operation.status !== "waiting") return isOpen(operation);
  const fold = new UiFold(operation.operation_id);
  for await (const event of eventsOf(context, target, operation)) fold.push(event);
  return !(await restsNow(context.service, target, fold.work));
}

/** The files of the newest user's messages, by operation: events have only their number. */
async function filesOf(
  { service }: ServiceContext,
  key: SessionKey,
): Promise<ReadonlyMap<string, readonly UiPart[]>> {
  const { entries } = await service.historyPage(key, { limit: 200 }).catch((error: unknown) => {
    if (error instanceof KitError && error.code === "not_found") return { entries: [] };
    throw error;
  });
  return new Map(
    entries.flatMap(({ operation_id, message }) => {
      if (message.role !== "user") return [];
      const { content, joined_from = operation_id } = message;
      const files = content.filter(({ type }) => type !== "text");
      return files.length === 0 ? [] : [[joined_from, files.flatMap(toUiFile)] as const];
    }),
  );
}

/**
 * The user's messages of an operation, also those that have joined it, and the answer. Of one that runs, only the message that began
 * it: the stream that the page takes up has the others.
 */
async function messagesOf(
  context: ServiceContext,
  {
    target,
    operation,
    files,
  }: {
    readonly target: InstanceTarget;
    readonly operation: OperationRecord;
    readonly files: ReadonlyMap<string, readonly UiPart[]>;
  },
): Promise<readonly UiMessage[]> {
  const { operation_id } = operation;
  const fold = new UiFold(operation_id);
  const chunks: UiChunk[] = [];
  const messages: UiMessage[] = [];
  const joined: UiMessage[] = [];
  let last: KitEvent | undefined;
  for await (const event of eventsOf(context, target, operation)) {
    if (event.type === "operation_start" && event.operation_id === operation_id && messages.length === 0) {
      const { message, client_id } = event;
      const parts = [...(files.get(operation_id) ?? []), { type: "text", text: message ?? "" }];
      if (message !== undefined)
        messages.push({ id: toMessageId(client_id ?? operation_id), role: "user", parts });
    }
    if (event.type === "joined" && event.operation_id === operation_id) {
      const { message, client_id, joined_from } = event;
      const parts = [...(files.get(joined_from) ?? []), { type: "text", text: message }];
      joined.push({ id: toMessageId(client_id ?? joined_from), role: "user", parts });
    }
    chunks.push(...fold.push(event));
    last = event;
  }
  if (isOpen(operation)) {
    if (last === undefined || !(await restsNow(context.service, target, fold.work))) return messages;
    chunks.push(...fold.handOver(last));
  }
  messages.push(...joined);
  const answer = toUiMessage(operation_id, chunks);
  return answer.parts.length === 0 ? messages : [...messages, answer];
}
