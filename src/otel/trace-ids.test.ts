import { expect, test } from "vitest";
import { createIdGenerator, withSeed } from "./trace-ids.ts";

test("the subject of a span makes its id, others are random, and none is like another", () => {
  const ids = createIdGenerator();
  const idOf = (of: string): string => withSeed(of, () => ids.generateSpanId());
  expect(idOf("op 1")).toBe(idOf("op 1"));
  expect(withSeed("op 1", () => ids.generateTraceId())).toMatch(/^[0-9a-f]{32}$/);
  const seen = new Set<string>();
  for (let at = 0; at < 50_000; at += 1)
    seen.add(idOf(`op agent/${at % 7}/default op_${at} 2026-11-22T10:00:00.000Z`));
  expect(seen.size).toBe(50_000);
  expect([...seen].every((id) => /^[0-9a-f]{16}$/.test(id) && !/^0+$/.test(id))).toBe(true);
  expect(ids.generateSpanId()).not.toBe(ids.generateSpanId());
  expect(ids.generateTraceId()).toMatch(/^[0-9a-f]{32}$/);
});
