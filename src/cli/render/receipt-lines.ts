import type { KitEvent } from "../../protocol/event.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import { createReceiptReader } from "../../protocol/receipt-reader.ts";
import { count } from "./places.ts";

/** Items that are named on the one line of what has come before a model. */
const maxNamed = 5;

/**
 * Makes the lines that say what is in front of the model in a turn: what is new in it, on one line, or with `whole`
 * every item on a line of its own. And what has begun a prompt anew, so that its cache was of no use.
 */
export function createReceiptLines({
  whole,
}: {
  readonly whole: boolean;
}): (event: KitEvent) => readonly string[] {
  // Turns of sessions and of their tasks have ids of their own: one reader knows them all.
  const read = createReceiptReader();
  return (event) => {
    if (event.type !== "turn_request" || event.receipt === undefined) return [];
    const { receipt, prefix, turn_id = "" } = event;
    const list = read(turn_id, receipt);
    const changed = prefix?.changed ?? [];
    const lines = changed.length === 0 ? [] : [`  prompt begins anew: ${changed.join(", ")}`];
    const total = `${count(receipt.items, "item")}, about ${receipt.tokens.toLocaleString("en")} tokens`;
    if (whole) {
      const missing = receipt.items - list.length;
      const more = missing > 0 ? [`    and ${missing} more`] : [];
      return [
        ...lines,
        `  in front of the model: ${total}`,
        ...list.map((item) => `    ${itemLine(item)}`),
        ...more,
      ];
    }
    const added = receipt.added ?? [];
    if (added.length === 0) return lines;
    const named = added.slice(0, maxNamed).map(placeOf).join(", ");
    const rest = added.length + (receipt.omitted ?? 0) - Math.min(added.length, maxNamed);
    const word = receipt.before === undefined ? "in front of the model" : "new in front of the model";
    return [...lines, `  ${word}: ${named}${rest > 0 ? ` and ${rest} more` : ""} (in all ${total})`];
  };
}

function itemLine(item: ReceiptItem): string {
  const name = item.file === undefined || item.file === item.id ? "" : ` ${item.id}`;
  return `${item.kind}${name} ${placeOf(item)}: ${item.why}, about ${item.tokens.toLocaleString("en")} tokens`;
}

function placeOf({ file, id, line }: ReceiptItem): string {
  return file === undefined ? id : line === undefined ? file : `${file}:${line}`;
}
