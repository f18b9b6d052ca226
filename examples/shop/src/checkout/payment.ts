import type { Cents } from "../money.ts";

/** The answer of a payment provider. */
export type Payment =
  | { readonly status: "paid"; readonly reference: string }
  | { readonly status: "declined"; readonly reason: string };

/** A payment provider. The shop has one per country; tests pass their own. */
export interface PaymentProvider {
  charge(amount: Cents, options: { idempotencyKey: string }): Promise<Payment>;
}
