import type { ReceiptItem, TurnReceipt } from "./receipt.ts";

/** Reads whole lists from the receipts of a session's turns, in their order; see `TurnReceipt`. */
export function createReceiptReader(): (turnId: string, receipt: TurnReceipt) => readonly ReceiptItem[] {
  const lists = new Map<string, readonly ReceiptItem[]>();
  return (turnId, { before, added = [] }) => {
    const begun = before === undefined ? [] : (lists.get(before) ?? []);
    const list = added.length === 0 ? begun : [...begun, ...added];
    lists.set(turnId, list);
    return list;
  };
}
