import type { CartLine } from "../cart/cart.ts";
import { type Cents, roundCents } from "../money.ts";

/** From this many copies of one title on, the line costs a tenth less. */
export const bulkFrom = 5;

/** The sum of all discounts on a cart, as a positive amount. */
export function discountOf(cart: readonly CartLine[]): Cents {
  return cart.reduce((sum, line) => sum + bulkDiscount(line), 0);
}

function bulkDiscount(line: CartLine): Cents {
  if (line.quantity < bulkFrom) return 0;
  return roundCents(line.book.price * line.quantity * 0.1);
}
