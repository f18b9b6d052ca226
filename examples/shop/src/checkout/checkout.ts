import { type CartLine, subtotal } from "../cart/cart.ts";
import type { Cents } from "../money.ts";
import { discountOf } from "../pricing/discounts.ts";
import { type Country, shippingCost } from "../shipping/shipping.ts";
import type { PaymentProvider } from "./payment.ts";

export interface Order {
  readonly id: string;
  readonly lines: readonly CartLine[];
  readonly shipping: Cents;
  readonly discount: Cents;
  readonly total: Cents;
}

export type CheckoutResult =
  | { readonly status: "placed"; readonly order: Order }
  | { readonly status: "refused"; readonly reason: string };

/** Charges the customer and places the order. Nothing is placed when the payment is declined. */
export async function checkOut(
  cart: readonly CartLine[],
  options: { id: string; country: Country; payments: PaymentProvider },
): Promise<CheckoutResult> {
  if (cart.length === 0) return { status: "refused", reason: "The cart is empty." };
  const discount = discountOf(cart);
  const price = subtotal(cart) - discount;
  const shipping = shippingCost(cart, { country: options.country, subtotal: price });
  const total = price + shipping;
  const payment = await options.payments.charge(total, { idempotencyKey: options.id });
  if (payment.status === "declined") return { status: "refused", reason: payment.reason };
  return { status: "placed", order: { id: options.id, lines: cart, shipping, discount, total } };
}
