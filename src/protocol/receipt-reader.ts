import type { ReceiptItem, TurnReceipt } from "./receipt.ts";

/**
 * Reads whole lists from the receipts of a session's turns, in their order; see `TurnReceipt`.
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
