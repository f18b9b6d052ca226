import assert from "node:assert/strict";
import { test } from "node:test";
import { shelf } from "../catalog/shelf.ts";
import { discountOf } from "./discounts.ts";

const bread = shelf[1];

test("five copies of one title cost a tenth less", () => {
  assert.ok(bread);
  assert.equal(discountOf([{ book: bread, quantity: 4 }]), 0);
  assert.equal(discountOf([{ book: bread, quantity: 5 }]), 1225);
});
