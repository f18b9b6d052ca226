import { expect, test } from "vitest";
import { copyOf, isSame } from "./same-profile.ts";

const execute = (): string => "done";

test("a profile is the same as an equal one, with the same tools and objects in it", () => {
  const url = new URL("https://kit.test");
  const pay = { name: "pay", execute };
  const make = () => ({
    model: "a/b",
    compaction: { enabled: false },
    tools: [pay],
    place: { url },
    role: undefined,
  });
  expect(isSame(copyOf(make()), make())).toBe(true);
});

test("an object with methods, symbols, hidden properties or accessors is the same only if it is the very one", () => {
  const same = (make: () => object): boolean => isSame(copyOf({ model: make() }), { model: make() });
  const symbol = Symbol("tenant");
  expect(same(() => ({ execute, said: [] }))).toBe(false);
  expect(same(() => ({ name: "pay", [symbol]: "ann" }))).toBe(false);
  expect(same(() => Object.defineProperty({ name: "pay" }, "tenant", { value: "ann" }))).toBe(false);
  expect(
    same(() => ({
      get tenant() {
        return "ann";
      },
    })),
  ).toBe(false);
  expect(same(() => ({ name: "pay", tenant: undefined }))).toBe(true);
});

test("another text, function, object, order or key makes another profile", () => {
  const same = (one: unknown, other: unknown): boolean => isSame(copyOf(one), other);
  expect(same({ model: "a" }, { model: "b" })).toBe(false);
  expect(same({ tools: [{ execute: () => 1 }] }, { tools: [{ execute: () => 1 }] })).toBe(false);
  expect(same({ at: new URL("https://a.test") }, { at: new URL("https://a.test") })).toBe(false);
  expect(same({ commands: ["a", "b"] }, { commands: ["b", "a"] })).toBe(false);
  expect(same({ commands: ["a"] }, { commands: ["a", "b"] })).toBe(false);
  expect(same({ model: "a" }, { model: "a", specs: false })).toBe(false);
  expect(same({ model: undefined }, { specs: undefined })).toBe(false);
  expect(same({ commands: { 0: "a" } }, { commands: ["a"] })).toBe(false);
});

test("a profile that was changed after it was copied is another one", () => {
  const profile = { instructions: "first", commands: ["a"], compaction: { enabled: false } };
  const copy = copyOf(profile);
  profile.commands.push("b");
  expect(isSame(copy, profile)).toBe(false);
  expect(isSame(copy, { ...profile, commands: ["a"] })).toBe(true);
});

test("a very long list counts as different each time, and a deep or cyclic value ends", () => {
  const many = Array.from({ length: 201 }, (_, index) => index);
  expect(isSame(copyOf({ many }), { many })).toBe(false);
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  expect(isSame(copyOf(cyclic), cyclic)).toBe(true);
  const deep = (): unknown => ({ a: { b: { c: { d: { e: 1 } } } } });
  expect(isSame(copyOf(deep()), deep())).toBe(false);
});
