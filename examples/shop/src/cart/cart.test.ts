import assert from "node:assert/strict";
import { test } from "node:test";
import { shelf } from "../catalog/shelf.ts";
import { addToCart, subtotal } from "./cart.ts";

const [harbour, bread, lichens] = shelf;

test("the same book twice is one line", () => {
  assert.ok(bread);
  const cart = addToCart(addToCart([], { book: bread, quantity: 1 }), { book: bread, quantity: 2 });
  assert.equal(cart.length, 1);
  assert.equal(subtotal(cart), 7350);
});

test("a cart never holds more than the stock", () => {
  assert.ok(harbour && lichens);
  assert.throws(() => addToCart([], { book: harbour, quantity: 4 }), RangeError);
  assert.throws(() => addToCart([], { book: lichens, quantity: 1 }), RangeError);
});
