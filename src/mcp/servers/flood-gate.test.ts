import { expect, test } from "vitest";
import { createFloodGate, type FloodLimits } from "./flood-gate.ts";

const limits: FloodLimits = { burstBytes: 10_000, bytesPerSecond: 1_000, lineBytes: 100 };

/** Counts how often output passes a gate that is called every `everyMs`, up to 1,000 times. */
function passes(traffic: {
  readonly bytes: number;
  readonly lines: number;
  readonly everyMs: number;
}): number {
  let now = 0;
  const gate = createFloodGate(limits, () => now);
  for (let count = 0; count < 1_000; count += 1) {
    if (!gate.take(traffic.bytes, traffic.lines)) return count;
    now += traffic.everyMs;
  }
  return 1_000;
}

test("a burst passes up to its limit", () => {
  expect(passes({ bytes: 1_000, lines: 1, everyMs: 0 })).toBe(10);
  expect(passes({ bytes: 10_001, lines: 1, everyMs: 0 })).toBe(0);
});

test("blank and short lines count as lines", () => {
  expect(passes({ bytes: 0, lines: 1, everyMs: 0 })).toBe(100);
  expect(passes({ bytes: 1, lines: 1, everyMs: 0 })).toBe(100);
});

test("output within the rate passes for ever, and output above it is stopped", () => {
  expect(passes({ bytes: 10, lines: 1, everyMs: 100 })).toBe(1_000);
  expect(passes({ bytes: 1_000, lines: 1, everyMs: 1_000 })).toBe(1_000);
  expect(passes({ bytes: 10, lines: 1, everyMs: 90 })).toBeLessThan(1_000);
  expect(passes({ bytes: 1_100, lines: 1, everyMs: 1_000 })).toBeLessThan(100);
});

test("a pause refills the gate to one burst at most, and a clock that goes back changes nothing", () => {
  let now = 0;
  const gate = createFloodGate(limits, () => now);
  gate.take(10_000, 1);
  now = 1_000_000;
  expect(gate.take(10_000, 1)).toBe(true);
  now = 0;
  expect(gate.take(1, 0)).toBe(false);
  now = 100;
  expect(gate.take(1, 0)).toBe(true);
});
