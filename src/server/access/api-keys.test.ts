import { expect, test } from "vitest";
import { createKeyCheck, parseApiKeys } from "./api-keys.ts";

test("keys are separated by commas or white space", () => {
  expect(parseApiKeys(" one,two\n three ,, ")).toEqual(["one", "two", "three"]);
  expect(parseApiKeys(undefined)).toEqual([]);
  expect(parseApiKeys(" , ")).toEqual([]);
});

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
