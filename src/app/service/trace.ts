import { type AsideNote, asideNote } from "../../agents/log/past-operation.ts";
import { promptOf, stateOf } from "../../agents/log/session-state.ts";
import { type ComposedPrompt, composedNote, toPromptMessage } from "../../agents/log/to-prompt.ts";
import type { PromptHead } from "../../agents/prompt/turn-records.ts";
import { KitError } from "../../base/kit-error.ts";
import type { EventLog } from "../../engine/event-log-contract.ts";
import type { EventType, KitEvent } from "../../protocol/event.ts";
import { createReceiptReader } from "../../protocol/read-records.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { SessionEntry, SessionKey } from "../../protocol/session-entry.ts";
import { agentStream } from "../../protocol/session-name.ts";
import type { OperationEvents, PromptMessage, TurnDetail, TurnQuery } from "../../protocol/trace.ts";
import type { FullStore } from "../../stores/full-store.ts";
import { type EventOf, eventsBetween, type Instance, pageSize } from "./events-between.ts";

export interface TraceSources {
  readonly store: FullStore;
  readonly events: EventLog;
}

/** Maximum of events that one request reads: events of other operations can be between them. */
const maxSeen = 20_000;

export interface OperationEventsQuery {
  /** The index of the operation's first event; saves the search for it. */
  readonly first_index?: number | undefined;
  readonly after?: number | undefined;
  /** From 1 to 1,000; default 100. */
  readonly limit?: number | undefined;
  readonly types?: readonly EventType[] | undefined;
}

/** Returns a page of the events of an operation and of its tasks. Throws `not_found` for an operation without events. */
export async function readOperationEvents(
  { events }: Pick<TraceSources, "events">,
  target: Instance & { readonly operation_id: string },
  query: OperationEventsQuery,
): Promise<OperationEvents> {
  const { operation_id } = target;
  const { limit = 100, types } = query;
  const stream = agentStream(target.agent, target.instance_id);
  const begin = (query.first_index ?? 1) - 1;
  const from = Math.max(begin, query.after ?? 0);
  const family = new Set([operation_id]);
  let start = query.first_index === undefined ? undefined : begin;
  // Tasks that started before this page also belong to the operation.
  const starts = { from: begin, to: from, types: ["operation_start"] as const };
  for await (const event of eventsBetween(
    events,
    stream,
    query.first_index === undefined ? { ...starts, to: Number.POSITIVE_INFINITY } : starts,
  )) {
    if (event.operation_id === operation_id) start ??= event.index - 1;
    if (event.parent_operation_id !== undefined && family.has(event.parent_operation_id))
      family.add(event.operation_id);
  }
  if (start === undefined)
    throw new KitError({ code: "not_found", message: "There are no events of this operation." });
  const traceEvents: KitEvent[] = [];
  let seen = 0;
  let after = Math.max(from, start);
  for (;;) {
    const page = await events.read(stream, { after, limit: pageSize });
    for (const event of page) {
      after = event.index;
      const { parent_operation_id: parent } = event;
      if (parent !== undefined && family.has(parent)) family.add(event.operation_id);
      if (!family.has(event.operation_id) || (types !== undefined && !types.includes(event.type))) continue;
      traceEvents.push(event);
      if (traceEvents.length === limit) return { events: traceEvents, next_after: after };
    }
    seen += page.length;
    if (page.length < pageSize) return { events: traceEvents };
    if (seen >= maxSeen) return { events: traceEvents, next_after: after };
  }
}

/** Returns the request and the answer of a turn. Throws `not_found` for a turn without events and log entries. */
export async function readTurn(
  sources: TraceSources,
  target: Instance & { readonly turn_id: string },
  query: TurnQuery,
): Promise<TurnDetail> {
  const { request, turn, errors } = await findTurn(sources.events, target, query.event_index);
  const key: SessionKey = {
    agent: target.agent,
    instance_id: target.instance_id,
    session: request.session ?? "default",
  };
  const entries = await sources.store.read(key);
  const receipt = await readReceipt(sources.events, target, request);
  const { messages, missing, ...head } = await readPrompt(sources.store, { key, entries, request });
  const { limit = 100, before = messages.length + 1 } = query;
  const first = Math.max(0, before - 1 - limit);
  const answer =
    turn?.answer === undefined
      ? answerAt(entries, turn?.log_position)
      : (await readMessages(sources.store, turn.answer))?.map(toPublicMessage)[0];
  // An ended turn had an answer; a compacted or deleted log no longer holds it.
  if (turn !== undefined && answer === undefined) missing.add("answer");
  return {
    turn_id: target.turn_id,
    operation_id: request.operation_id,
    session: key.session,
    model: request.model,
    provider: request.provider,
    purpose: request.purpose,
    attempt: request.attempt,
    log_position: request.log_position,
    requested_at: request.timestamp,
    event_index: request.index,
    messages: messages
      .slice(first, before - 1)
      .map((message, at) => ({ position: first + at + 1, ...message })),
    message_count: messages.length,
    next_before: first > 0 ? first + 1 : undefined,
    ...head,
    missing: missing.size === 0 ? undefined : [...missing],
    answer,
    receipt,
    receipt_count: request.receipt?.items,
    left_out: request.receipt?.left_out,
    finish_reason: turn?.finish_reason,
    usage: turn?.usage,
    duration_ms: turn?.duration_ms,
    first_chunk_ms: turn?.first_chunk_ms,
    errors: errors.length === 0 ? undefined : errors,
  };
}

/** Returns the items of a turn's receipt, which extends the list of an earlier turn. */
async function readReceipt(
  events: EventLog,
  { agent, instance_id }: Instance,
  request: EventOf<"turn_request">,
): Promise<readonly ReceiptItem[] | undefined> {
  const { receipt, turn_id = "" } = request;
  if (receipt === undefined) return undefined;
  const read = createReceiptReader();
  if (receipt.before !== undefined) {
    const range = { from: 0, to: request.index - 1, types: ["turn_request"] as const };
    for await (const event of eventsBetween(events, agentStream(agent, instance_id), range))
      if (event.type === "turn_request" && event.receipt !== undefined && event.session === request.session)
        read(event.turn_id ?? "", event.receipt);
  }
  return read(turn_id, receipt);
}

interface FoundTurn {
  readonly request: EventOf<"turn_request">;
  readonly turn: EventOf<"turn"> | undefined;
  readonly errors: readonly Pick<EventOf<"error">, "error" | "will_retry">[];
}

/** Returns the events of a turn: its last request and the following events. */
async function findTurn(
  events: EventLog,
  { agent, instance_id, turn_id }: Instance & { readonly turn_id: string },
  event_index?: number,
): Promise<FoundTurn> {
  const stream = agentStream(agent, instance_id);
  let request: FoundTurn["request"] | undefined;
  let turn: FoundTurn["turn"];
  const errors: { error: EventOf<"error">["error"]; will_retry: boolean }[] = [];
  const range = {
    from: (event_index ?? 1) - 1,
    to: Number.POSITIVE_INFINITY,
    types: ["turn_request", "turn", "turn_end", "error"] as const,
  };
  for await (const event of eventsBetween(events, stream, range)) {
    if (event.turn_id !== turn_id) continue;
    if (event.type === "turn_request") request = event;
    if (event.type === "turn") turn = event;
    if (event.type === "error") errors.push({ error: event.error, will_retry: event.will_retry });
    if (event.type === "turn_end") break;
  }
  if (request === undefined)
    throw new KitError({
      code: "not_found",
      message: "There is no such turn, or its events are no longer kept.",
    });
  return { request, turn, errors };
}

type Part = NonNullable<TurnDetail["missing"]>[number];

async function readPrompt(
  store: FullStore,
  {
    key,
    entries,
    request,
  }: {
    readonly key: SessionKey;
    readonly entries: readonly SessionEntry[];
    readonly request: EventOf<"turn_request">;
  },
): Promise<
  Pick<TurnDetail, "tools" | "settings"> & {
    readonly messages: readonly PromptMessage[];
    readonly missing: Set<Part>;
  }
> {
  const missing = new Set<Part>();
  const read = async (name: string | undefined): Promise<string | undefined> =>
    name === undefined ? undefined : await store.readText(name);
  const headText = await read(request.head);
  const head = headText === undefined ? undefined : (JSON.parse(headText) as PromptHead);
  const system = await read(head?.system);
  const tools = await read(head?.tools);
  if (system === undefined) missing.add("system");
  if (tools === undefined) missing.add("tools");
  const { log_position } = request;
  let prompt: readonly unknown[] = [];
  if (request.purpose === "compaction") {
    const messages = await readMessages(store, head?.messages);
    if (messages === undefined) missing.add("messages");
    else prompt = [{ role: "system", content: system ?? "" }, ...messages];
  } else if (log_position === undefined || entries.length < log_position) missing.add("messages");
  else {
    const ownPrompt = promptOf(stateOf(key, entries.slice(0, log_position)), system ?? "");
    const composed = composedAt(entries, request.turn_id);
    if (composed?.omitted) missing.add("messages");
    prompt =
      composed === undefined
        ? ownPrompt
        : [
            ...ownPrompt.slice(0, composed.head),
            ...composed.messages,
            ...ownPrompt.slice(ownPrompt.length - composed.tail),
          ];
  }
  return {
    messages: prompt
      .map((message) => toPublicMessage(message as PromptForm))
      .filter(({ role }) => role !== "system" || !missing.has("system")),
    tools: tools === undefined ? undefined : (JSON.parse(tools) as TurnDetail["tools"]),
    settings: head?.settings,
    missing,
  };
}

/** Returns messages that the store keeps outside the logs; undefined if it does not have them. */
async function readMessages(
  store: FullStore,
  name: string | undefined,
): Promise<readonly PromptForm[] | undefined> {
  const text = name === undefined ? undefined : await store.readText(name);
  return text === undefined ? undefined : (JSON.parse(text) as readonly PromptForm[]);
}

function composedAt(
  entries: readonly SessionEntry[],
  turnId: string | undefined,
): ComposedPrompt | undefined {
  for (const entry of entries) {
    if (entry.type !== "note" || entry.name !== composedNote) continue;
    const composed = entry.value as ComposedPrompt;
    if (composed.turn_id === turnId) return composed;
  }
  return undefined;
}

function answerAt(entries: readonly SessionEntry[], position: number | undefined): PromptMessage | undefined {
  const entry = position === undefined ? undefined : entries[position - 1];
  if (entry === undefined) return undefined;
  const isAside = entry.type === "note" && entry.name === asideNote;
  const message = isAside ? (entry.value as AsideNote).message : entry.type === "message" && entry.message;
  return message && message.role === "assistant"
    ? toPublicMessage(toPromptMessage(message) as PromptForm)
    : undefined;
}

/** A message in the form of the AI SDK, read back from JSON or just made. */
interface PromptForm {
  readonly role: PromptMessage["role"];
  readonly content: string | readonly Readonly<Record<string, unknown>>[];
}

/** A message as the routes give it. */
function toPublicMessage({ role, content }: PromptForm): PromptMessage {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return { role, content: parts.map(toPublicPart) };
}

type PublicPart = PromptMessage["content"][number];

function toPublicPart(part: Readonly<Record<string, unknown>>): PublicPart {
  switch (part.type) {
    case "text":
    case "reasoning":
      return { type: part.type, text: part.text };
    case "tool-call":
      return { type: "tool_call", tool_call_id: part.toolCallId, tool: part.toolName, args: part.input };
    case "tool-result": {
      const output = part.output as { readonly type: string; readonly value?: unknown };
      const { value } = output;
      return {
        type: "tool_result",
        tool_call_id: part.toolCallId,
        tool: part.toolName,
        is_error: output.type.startsWith("error"),
        content: Array.isArray(value)
          ? value.map((item) => toPublicPart(item as Readonly<Record<string, unknown>>))
          : [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }],
      };
    }
    case "file": {
      const { data: source, mediaType: media_type, filename } = part;
      const { url, data } = source as { readonly url?: URL | string; readonly data?: unknown };
      return {
        type: String(media_type).startsWith("image/") ? "image" : "file",
        media_type,
        ...(filename === undefined ? {} : { filename }),
        data: url === undefined ? data : String(url),
      };
    }
    default:
      return { ...part, type: String(part.type) };
  }
}
