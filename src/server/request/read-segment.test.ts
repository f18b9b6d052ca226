import { expect, test } from "vitest";
import { readSegment } from "./read-request.ts";

const read = (raw: string) => readSegment(raw, { name: "id" });

test("is decoded once, in any script", () => {
  expect(read("fw_a-auth-req1")).toBe("fw_a-auth-req1");
  expect(read("%E8%A6%81%E4%BB%B6")).toBe("要件");
  expect(read("100%2525")).toBe("100%25");
  expect(read("a%20b.c..d")).toBe("a b.c..d");
});

test("separators, dot segments and control characters are refused in every encoding", () => {
  for (const raw of ["%2e%2e", "..", ".", "..%2f..%2fetc", "a%5Cb", "%00", "x%0d%0ax", "a%C2%85b", "%7f"]) {
    expect(() => read(raw), raw).toThrow("not valid");
  }
});

test("a segment that is empty, not UTF-8 or longer than 128 bytes is refused", () => {
  for (const raw of ["", "%ff%fe", "%", "a".repeat(129), encodeURIComponent("要".repeat(43))]) {
    expect(() => read(raw), raw).toThrow("not valid");
  }
  expect(read("a".repeat(128))).toHaveLength(128);
});
