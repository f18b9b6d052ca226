import { expect, test } from "vitest";
import { createKeyCheck } from "./api-keys.ts";

test("any of the keys opens, as a bearer token and in no other way", () => {
  const isKnown = createKeyCheck(["first-key", "second-key"]);
  expect(["Bearer first-key", "bearer  second-key", "Bearer second-key "].map(isKnown)).toEqual([
    true,
    true,
    true,
  ]);
  for (const header of [
    undefined,
    "",
    "first-key",
    "Basic first-key",
    "Bearer",
    "Bearer first",
    "Bearer first-key x",
  ]) {
    expect(isKnown(header), header).toBe(false);
  }
});

test("without keys nothing opens", () => {
  expect(createKeyCheck([])("Bearer ")).toBe(false);
  expect(createKeyCheck([])("Bearer undefined")).toBe(false);
});
