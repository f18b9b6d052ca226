import type { DeepPartial } from "../base/record.ts";
import type { KitEvent } from "./event.ts";
import type { Cost, Message, Usage } from "./message.ts";
import type { ReceiptItem, TurnReceipt } from "./receipt.ts";

// Functions over the records of the wire. They are separate from the schemas, so that browsers and programs that
// import them load no schema library.

/** Joins the text parts of a message. */
export function textOf(message: Message): string {
  let text = "";
  for (const part of message.content) if (part.type === "text") text += part.text;
  return text;
}

export const unknownCost: Cost = {
  input: null,
  output: null,
  cache_read: null,
  cache_write: null,
  total: null,
};

export const noUsage: Usage = {
  input: 0,
  output: 0,
  cache_read: 0,
  cache_write: 0,
  total_tokens: 0,
  cost: { input: 0, output: 0, cache_read: 0, cache_write: 0, total: 0 },
};

/** Adds two usages. A cost that is unknown on one side is unknown in the sum. */
export function addUsage(left: Usage, right: Usage): Usage {
  const sum = {
    input: left.input + right.input,
    output: left.output + right.output,
    cache_read: left.cache_read + right.cache_read,
    cache_write: left.cache_write + right.cache_write,
    total_tokens: left.total_tokens + right.total_tokens,
    cost: addCosts(left.cost, right.cost),
  };
  return left.reasoning === undefined && right.reasoning === undefined
    ? sum
    : { ...sum, reasoning: (left.reasoning ?? 0) + (right.reasoning ?? 0) };
}

function addCosts(left: Cost, right: Cost): Cost {
  if (left === unknownCost || right === unknownCost) return unknownCost;
  return {
    input: addCost(left.input, right.input),
    output: addCost(left.output, right.output),
    cache_read: addCost(left.cache_read, right.cache_read),
    cache_write: addCost(left.cache_write, right.cache_write),
    total: addCost(left.total, right.total),
  };
}

function addCost(left: number | null, right: number | null): number | null {
  return left === null || right === null ? null : left + right;
}

/** Yields the growing typed result of the prompt itself, not of its tasks: each value replaces the one before. */
export async function* partialResults<Result>(
  events: AsyncIterable<KitEvent>,
): AsyncGenerator<DeepPartial<Result>, void> {
  for await (const event of events) {
    if (event.type !== "text_delta" || event.task_id !== undefined) continue;
    // The model's text so far, unchecked by the schema.
    if (event.partial_result !== undefined) yield event.partial_result as DeepPartial<Result>;
  }
}

/**
 * Whether an item of a receipt is a rule of the project; an agent's own instructions are none.
 *
 * @example
 * ```ts
 * import { isRule, type TurnDetail } from "kit/client";
 *
 * export const rulesOf = ({ receipt = [] }: TurnDetail) => receipt.filter(isRule).map(({ id }) => id);
 * ```
 */
export function isRule({ kind, id, file }: Pick<ReceiptItem, "kind" | "id" | "file">): boolean {
  if (kind !== "instructions") return kind === "guideline";
  return file !== undefined && (id === file || id.startsWith(`${file}#`));
}

/**
 * Creates a reader that restores the whole list of each turn. Pass it the receipts of a session in order; see `TurnReceipt`.
 *
 * @example
 * ```ts
 * import type { KitEvent } from "kit";
 * import { createReceiptReader } from "kit/protocol";
 *
 * export function titles(events: readonly KitEvent[]): readonly string[] {
 *   const read = createReceiptReader();
 *   return events.flatMap((event) =>
 *     event.type === "turn_request" && event.turn_id !== undefined && event.receipt !== undefined
 *       ? read(event.turn_id, event.receipt).map(({ kind }) => kind)
 *       : [],
 *   );
 * }
 * ```
 */
export function createReceiptReader(): (turnId: string, receipt: TurnReceipt) => readonly ReceiptItem[] {
  const lists = new Map<string, readonly ReceiptItem[]>();
  return (turnId, { before, added = [] }) => {
    const begun = before === undefined ? [] : (lists.get(before) ?? []);
    const list = added.length === 0 ? begun : [...begun, ...added];
    lists.set(turnId, list);
    return list;
  };
}
