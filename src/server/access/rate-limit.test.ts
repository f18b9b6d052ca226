import fc from "fast-check";
import { expect, test } from "vitest";
import { createRateLimiter } from "./access.ts";

const allowed = (take: () => void): boolean => {
  try {
    take();
    return true;
  } catch {
    return false;
  }
};

test("a burst passes, then one request for each interval", () => {
  let now = 0;
  const take = createRateLimiter({ requests: 2, per_seconds: 1, burst: 3 }, () => now);
  const tries = (count: number): boolean[] => Array.from({ length: count }, () => allowed(() => take("a")));
  expect(tries(4)).toEqual([true, true, true, false]);
  now = 500;
  expect(tries(2)).toEqual([true, false]);
  expect(allowed(() => take("b"))).toBe(true);
});

test("a refusal names the time to retry after, in whole seconds", () => {
  let now = 0;
  const take = createRateLimiter({ requests: 6 }, () => now);
  for (let count = 0; count < 6; count += 1) take("a");
  expect(() => take("a")).toThrow(
    expect.objectContaining({ code: "too_many_requests", meta: { retry_after_s: 10 } }),
  );
  now = 5_001;
  expect(() => take("a")).toThrow(
    expect.objectContaining({ message: expect.stringContaining("requests"), meta: { retry_after_s: 5 } }),
  );
  now = 10_000;
  expect(() => take("a")).not.toThrow();
});

test("a hundred thousand callers are remembered, and beyond that the least recent one is forgotten", () => {
  const take = createRateLimiter({ requests: 1 }, () => 0);
  const tries = (client: string): boolean => allowed(() => take(client));
  for (let count = 0; count < 100_000; count += 1) take(String(count));
  expect(tries("0")).toBe(false);
  expect(tries("one more")).toBe(true);
  expect(tries("1")).toBe(true);
  expect(tries("0")).toBe(false);
  expect(tries("3")).toBe(false);
});

test("the default clock is that of the machine", () => {
  const take = createRateLimiter({ requests: 1, per_seconds: 3_600 });
  take("a");
  expect(() => take("a")).toThrow(expect.objectContaining({ meta: { retry_after_s: expect.any(Number) } }));
});

test("within any interval, no more requests pass than the burst and what was earned in it", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 700 }), { maxLength: 60 }), (pauses) => {
      let now = 0;
      const take = createRateLimiter({ requests: 3, per_seconds: 1, burst: 4 }, () => now);
      const passed: number[] = [];
      for (const pause of pauses) {
        now += pause;
        if (allowed(() => take("a"))) passed.push(now);
      }
      for (const [first, from] of passed.entries()) {
        for (let last = first; last < passed.length; last += 1) {
          const earned = (((passed[last] ?? 0) - from) * 3) / 1_000;
          expect(last - first + 1).toBeLessThanOrEqual(4 + earned + 1e-6);
        }
      }
    }),
  );
});
