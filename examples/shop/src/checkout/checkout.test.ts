import assert from "node:assert/strict";
import { test } from "node:test";
import { shelf } from "../catalog/shelf.ts";
import { checkOut } from "./checkout.ts";
import type { PaymentProvider } from "./payment.ts";

const bread = shelf[1];
const accepting: PaymentProvider = { charge: async () => ({ status: "paid", reference: "p1" }) };
const declining: PaymentProvider = { charge: async () => ({ status: "declined", reason: "Card expired." }) };

test("checkout#1.1 places the order once the payment went through", async () => {
  assert.ok(bread);
  const cart = [{ book: bread, quantity: 1 }];
  const result = await checkOut(cart, { id: "o1", country: "DE", payments: accepting });
  assert.equal(result.status === "placed" && result.order.total, 2840);
});

test("checkout#1.2 places nothing when the payment is declined", async () => {
  assert.ok(bread);
  const cart = [{ book: bread, quantity: 1 }];
  const result = await checkOut(cart, { id: "o2", country: "DE", payments: declining });
  assert.deepEqual(result, { status: "refused", reason: "Card expired." });
});

test("checkout#1.3 refuses an empty cart without asking for money", async () => {
  let charges = 0;
  const counting: PaymentProvider = {
    charge: async () => {
      charges += 1;
      return { status: "paid", reference: "p2" };
    },
  };
  const result = await checkOut([], { id: "o3", country: "DE", payments: counting });
  assert.equal(result.status, "refused");
  assert.equal(charges, 0);
});

test("a declined card is not charged twice with the same key", async () => {
  assert.ok(bread);
  const keys: string[] = [];
  const recording: PaymentProvider = {
    charge: async (_amount, options) => {
      keys.push(options.idempotencyKey);
      return { status: "declined", reason: "Try again." };
    },
  };
  const cart = [{ book: bread, quantity: 1 }];
  await checkOut(cart, { id: "o4", country: "DE", payments: recording });
  await checkOut(cart, { id: "o4", country: "DE", payments: recording });
  assert.deepEqual(keys, ["o4", "o4"]);
});
