import { isoTime } from "../../base/clock.ts";
import type { AssistantMessage, Message, ToolCallPart } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { MaybePromise } from "../../stores/contract.ts";
import { notRun } from "../log/operation-log.ts";
import { maskAnswer } from "../masked-parts.ts";
import type { RecordedPrompt } from "../prompt/turn-records.ts";
import { maskValue } from "../secrets.ts";
import { toUsage } from "./budget.ts";
import type { ModelReply } from "./call-model.ts";
import type { TurnLoop } from "./loop-parts.ts";

/** The facts about a model call that the entry and the event of its answer have. */
export interface Timing {
  readonly turnId: string;
  readonly started: number;
  readonly logged: RecordedPrompt["logged"];
  composed?: SessionEntry | undefined;
}

/** Appends an answer to the log. Synchronous if the store is. */
export function storeReply(
  loop: TurnLoop,
  reply: ModelReply,
  timing: Timing,
): MaybePromise<AssistantMessage> {
  const { operation, resolved } = loop;
  const { mask, log, spending } = operation;
  const now = loop.clock.now();
  const message: AssistantMessage = {
    role: "assistant",
    content: mask === undefined ? reply.content : maskAnswer(reply.content, mask),
    timestamp: isoTime(now),
    model: resolved.name,
    usage: toUsage(reply.usage, resolved.price),
    finish_reason: reply.finishReason,
  };
  spending.turns += 1;
  spending.add(message.usage);
  const entry = toEntry(loop, message);
  const turn = mask === undefined ? timing.logged : maskValue(timing.logged, mask);
  const logged = turn === undefined ? entry : withTurn(entry, turn);
  const messageEntries = loop.toEntries?.(logged, message) ?? [logged];
  const entries = timing.composed === undefined ? messageEntries : [...messageEntries, timing.composed];
  // A final answer is paid for, so it is kept in memory if the store is unavailable. An answer with calls is requested again.
  const written = callsOf(message).length === 0 ? log.commitOrKeep(entries) : log.commit(entries);
  if (written === undefined && operation.events.skip()) return message;
  const { metadata } = reply;
  const stored = { message, metadata, entries: entries.length, duration_ms: now - timing.started };
  return written === undefined
    ? emitReply(loop, timing, stored)
    : emitWhenWritten(written, [loop, timing, stored]);
}

interface StoredReply extends Pick<ModelReply, "metadata"> {
  readonly message: AssistantMessage;
  /** The number of its entries. */
  readonly entries: number;
  readonly duration_ms: number;
}

/** A function of its own: a closure would have `storeReply` keep its variables in the heap, also where the store is synchronous. */
function emitWhenWritten(
  written: Promise<void>,
  [loop, timing, stored]: Parameters<typeof emitReply>,
): Promise<AssistantMessage> {
  return written.then(() =>
    loop.operation.events.skip() ? stored.message : emitReply(loop, timing, stored),
  );
}

function emitReply(
  { operation, purpose }: TurnLoop,
  { turnId }: Timing,
  { message, metadata, entries, duration_ms }: StoredReply,
): AssistantMessage {
  const calls = callsOf(message);
  if (calls.length > 0) operation.tracing?.notifyCalls({ turn_id: turnId }, calls);
  operation.emit(
    {
      type: "turn",
      model: message.model,
      usage: message.usage,
      finish_reason: message.finish_reason,
      purpose,
      log_position: operation.state.position - entries + 1,
      ...metadata,
      duration_ms,
    },
    turnId,
  );
  return message;
}

/** Appends the part of an answer that readers have already seen; its tool calls never ran. */
export async function storePartial(loop: TurnLoop, partial: ModelReply, timing: Timing): Promise<void> {
  if (partial.content.length === 0) return;
  const message = await storeReply(loop, partial, timing);
  const calls = callsOf(message);
  if (calls.length === 0) return;
  const content = calls.map((call) =>
    notRun(call, "The call was never run: the answer that asked for it broke off."),
  );
  await loop.operation.log.commit([
    toEntry(loop, { role: "tool", content, timestamp: isoTime(loop.clock.now()) }),
  ]);
}

export function toEntry(
  loop: Pick<TurnLoop, "operation">,
  message: Message,
): Extract<SessionEntry, { type: "message" }> {
  return { version: 1, type: "message", message, operation_id: loop.operation.id };
}

/** Every field stands here: one that is added to an object lies in a second one, which the store keeps, too. */
function withTurn(
  { message, operation_id }: MessageEntry,
  turn: NonNullable<MessageEntry["turn"]>,
): MessageEntry {
  return { version: 1, type: "message", message, operation_id, turn };
}

type MessageEntry = ReturnType<typeof toEntry>;

export function callsOf({ content }: AssistantMessage): readonly ToolCallPart[] {
  if (!content.some(isCall)) return noCalls;
  return content.every(isCall) ? content : content.filter(isCall);
}

const noCalls: readonly ToolCallPart[] = [];

function isCall(part: AssistantMessage["content"][number]): part is ToolCallPart {
  return part.type === "tool_call";
}
