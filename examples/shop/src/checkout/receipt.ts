import { formatEuro } from "../money.ts";
import type { Order } from "./checkout.ts";

/** The receipt as plain text, one line per title. */
export function printReceipt(order: Order): string {
  const lines = order.lines.map(
    (line) => `${line.quantity} × ${line.book.title}  ${formatEuro(line.book.price * line.quantity)}`,
  );
  if (order.discount > 0) lines.push(`Discount  ${formatEuro(-order.discount)}`);
  return [...lines, `Shipping  ${formatEuro(order.shipping)}`, `Total  ${formatEuro(order.total)}`].join(
    "\n",
  );
}
