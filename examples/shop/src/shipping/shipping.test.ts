import assert from "node:assert/strict";
import { test } from "node:test";
import { shelf } from "../catalog/shelf.ts";
import { shippingCost } from "./shipping.ts";

const lights = shelf[3];

test("orders from 50 euros on ship free", () => {
  assert.equal(shippingCost([], { country: "PT", subtotal: 5000 }), 0);
});

test("a small parcel costs what its country costs", () => {
  assert.ok(lights);
  assert.equal(shippingCost([{ book: lights, quantity: 1 }], { country: "FR", subtotal: 1250 }), 590);
});
