import { expect, test } from "vitest";
import { createKeyCheck } from "./access.ts";

test("each key is accepted, only as a bearer token", () => {
  const find = createKeyCheck(["first-key", "second-key"]);
  const [first, second, padded] = ["Bearer first-key", "bearer  second-key", "Bearer second-key "].map(find);
  expect([first, second]).toEqual([expect.stringMatching(/^key_/), expect.stringMatching(/^key_/)]);
  expect(padded).toBe(second);
  expect(first).not.toBe(second);
  for (const header of [
    undefined,
    "",
    "first-key",
    "Basic first-key",
    "Bearer",
    "Bearer first",
    "Bearer first-key x",
  ]) {
    expect(find(header), header).toBeUndefined();
  }
});

test("a key's id is the same in every process, and reveals nothing about the key", () => {
  // The start of `printf %s first-key | sha256sum`.
  expect(createKeyCheck(["first-key"])("Bearer first-key")).toBe("key_9e24b55356ef");
});

test("without keys, no token is accepted", () => {
  expect(createKeyCheck([])("Bearer ")).toBeUndefined();
  expect(createKeyCheck([])("Bearer undefined")).toBeUndefined();
});
