import fc from "fast-check";
import { expect, test } from "vitest";
import { isServerName, toolNames } from "./tool-names.ts";

test("a tool is named after its server and itself", () => {
  expect(toolNames("github", ["create_issue", "get-me"])).toEqual([
    "mcp__github__create_issue",
    "mcp__github__get-me",
  ]);
});

test("characters that providers refuse become underscores, and an equal name gets a hash", () => {
  const [dotted, plain, slashed] = toolNames("s", ["a.b", "a_b", "a/b"]);
  expect(plain).toBe("mcp__s__a_b");
  expect(dotted).toMatch(/^mcp__s__a_b_[0-9a-f]{8}$/);
  expect(slashed).toMatch(/^mcp__s__a_b_[0-9a-f]{8}$/);
  expect(slashed).not.toBe(dotted);
  expect(toolNames("s", ["x.y"])).toEqual(["mcp__s__x_y"]);
});

test("tools of any server have unique names that providers accept, in any order", () => {
  const server = fc.constantFrom("a", "a-b", "A_1", "x".repeat(32));
  const tools = fc.uniqueArray(
    fc.oneof(
      fc.string({ unit: "binary", maxLength: 128 }),
      fc.string({ unit: fc.constantFrom("a", "_", ".", "é"), maxLength: 100 }),
    ),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(server, tools, (name, list) => {
      const names = toolNames(name, list);
      for (const complete of names) expect(complete).toMatch(/^mcp__[A-Za-z0-9_-]{1,59}$/);
      expect(new Set(names).size).toBe(list.length);
      const reversed = toolNames(name, list.toReversed()).toReversed();
      expect(reversed).toEqual(names);
    }),
  );
});

test("a server's name must leave no doubt where the tool's name begins", () => {
  for (const name of ["github", "my-server", "a_b", "A1", "x".repeat(32), "a-"])
    expect([name, isServerName(name)]).toEqual([name, true]);
  for (const name of ["", "_a", "a_", "a__b", "a b", "a.b", "ä", "x".repeat(33), "-a", "a\n"]) {
    expect([name, isServerName(name)]).toEqual([name, false]);
  }
});
