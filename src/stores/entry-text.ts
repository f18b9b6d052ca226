import * as z from "zod/mini";
import { KitError } from "../base/kit-error.ts";
import type { AssistantMessage, Cost, Message } from "../protocol/message.ts";
import { unknownCost } from "../protocol/read-records.ts";
import { type SessionEntry, sessionEntrySchema } from "../protocol/session-entry.ts";

/**
 * Encodes an entry for storage. A message becomes a list without field names, which is half as long and is read in half
 * the time; other entries, and messages with unknown fields, become plain JSON. The first element is the list's version.
 */
export function encodeEntry(entry: SessionEntry): string {
  if (entry.type !== "message" || !hasKeys(entry, 4)) return JSON.stringify(entry);
  const { message, operation_id } = entry;
  const { role, content, timestamp } = message;
  if (role === "assistant") {
    const { model, finish_reason, usage } = message;
    const { input, output, cache_read, cache_write, total_tokens, cost, reasoning } = usage;
    const tokens = [input, output, cache_read, cache_write, total_tokens];
    if (reasoning !== undefined) tokens.push(reasoning);
    if (!hasKeys(message, 6) || !hasKeys(usage, tokens.length + 1) || !hasKeys(cost, 5))
      return JSON.stringify(entry);
    const { input: sent, output: received, cache_read: read, cache_write: written, total } = cost;
    const isUnknown =
      sent === null && received === null && read === null && written === null && total === null;
    const costs = isUnknown ? 0 : [sent, received, read, written, total];
    return JSON.stringify([2, role, operation_id, timestamp, content, model, finish_reason, tokens, costs]);
  }
  if (role === "user" && message.source !== undefined) {
    if (!hasKeys(message, 4)) return JSON.stringify(entry);
    return JSON.stringify([2, role, operation_id, timestamp, content, message.source]);
  }
  return hasKeys(message, 3)
    ? JSON.stringify([2, role, operation_id, timestamp, content])
    : JSON.stringify(entry);
}

/** Decodes a text of `encodeEntry`, also of older versions. Throws `unavailable` for a damaged or unknown text. */
export function decodeEntry(text: string): SessionEntry {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw damaged(error);
  }
  if (Array.isArray(value) && value[0] === 2) {
    if (!isMessageRow(value)) throw damaged();
    return { version: 1, type: "message", message: toMessage(value), operation_id: value[2] };
  }
  const version: unknown = Array.isArray(value) ? value[0] : Object(value).version;
  if (typeof version !== "number") throw damaged();
  if (version === 1) {
    const { success, error } = z.safeParse(sessionEntrySchema, value);
    if (!success) throw damaged(error);
    // Return the value itself, because it may have fields that this kit does not know.
    return value as SessionEntry;
  }
  throw new KitError({
    code: "unavailable",
    message: "A stored session entry has a version this kit does not know.",
    hint: "Update kit: the session was written by a newer version.",
  });
}

function damaged(cause?: unknown): KitError {
  return new KitError({
    code: "unavailable",
    message: "An entry of this session's log is damaged, so its history cannot be read.",
    hint: "Restore the session store from a backup, or delete the session. Other sessions are not affected.",
    cause,
  });
}

/**
 * Checks only the fields without which `toMessage` would fail. A full schema would make reading a session of a thousand
 * turns take four times as long, and kit itself wrote the list.
 */
function isMessageRow(value: readonly unknown[]): value is MessageRow {
  const [, role, operation, timestamp, content, , , tokens] = value;
  if (typeof operation !== "string" || typeof timestamp !== "string" || !Array.isArray(content)) return false;
  return role === "assistant" ? Array.isArray(tokens) : role === "user" || role === "tool";
}

type MessageOf<Role extends Message["role"]> = Extract<Message, { readonly role: Role }>;
type Head<Role extends Message["role"]> = readonly [2, Role, string, string, MessageOf<Role>["content"]];
type CostRow = readonly [
  Cost["input"],
  Cost["output"],
  Cost["cache_read"],
  Cost["cache_write"],
  Cost["total"],
];
type MessageRow =
  | Head<"tool">
  | readonly [...Head<"user">, source?: NonNullable<MessageOf<"user">["source"]>]
  | readonly [
      ...Head<"assistant">,
      model: string,
      finish_reason: AssistantMessage["finish_reason"],
      tokens: readonly [number, number, number, number, number, reasoning?: number],
      costs: CostRow | 0,
    ];

function toMessage(row: MessageRow): Message {
  switch (row[1]) {
    case "assistant": {
      const [, role, , timestamp, content, model, finish_reason, tokens, costs] = row;
      const [input, output, cache_read, cache_write, total_tokens, reasoning] = tokens;
      const cost = costs === 0 ? unknownCost : toCost(costs);
      const counts = { input, output, cache_read, cache_write, total_tokens, cost };
      const usage = reasoning === undefined ? counts : { ...counts, reasoning };
      return { role, content, timestamp, model, usage, finish_reason };
    }
    case "user": {
      const [, role, , timestamp, content, source] = row;
      return source === undefined ? { role, content, timestamp } : { role, content, timestamp, source };
    }
    case "tool": {
      const [, role, , timestamp, content] = row;
      return { role, content, timestamp };
    }
  }
}

function toCost([input, output, cache_read, cache_write, total]: CostRow): Cost {
  return { input, output, cache_read, cache_write, total };
}

/** Whether the value has no fields beyond those of its type, which the list would lose. */
function hasKeys(value: object, count: number): boolean {
  return Object.keys(value).length === count;
}
