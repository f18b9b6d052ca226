import fc from "fast-check";
import { expect, test } from "vitest";
import { readTraceContext, traceIdsOf } from "./tracing.ts";

const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
const span = "00f067aa0ba902b7";
const parent = `00-${trace}-${span}-01`;

test("a parent is parsed with the vendors' state", () => {
  expect(readTraceContext(parent, "rojo=1, congo@eu=t61rcWkgMzE,")).toEqual({
    traceparent: parent,
    tracestate: "rojo=1,congo@eu=t61rcWkgMzE",
  });
  expect(traceIdsOf({ traceparent: parent })).toEqual({ trace_id: trace, span_id: span, isSampled: true });
  expect(traceIdsOf({ traceparent: `00-${trace}-${span}-00` }).isSampled).toBe(false);
});

test("a parent of a later version is parsed up to its known fields", () => {
  expect(readTraceContext(`cc-${trace}-${span}-01-what-the-future-adds`)).toEqual({ traceparent: parent });
});

test.each([
  ["nothing", undefined],
  ["an empty text", ""],
  ["a list", [parent]],
  ["two headers in one", `${parent}, ${parent}`],
  ["capital letters", parent.toUpperCase()],
  ["a trace of zeros", `00-${"0".repeat(32)}-${span}-01`],
  ["a span of zeros", `00-${trace}-${"0".repeat(16)}-01`],
  ["an invalid version", `ff-${trace}-${span}-01`],
  ["more than its version has", `${parent}-00`],
  ["a short trace", `00-${trace.slice(1)}-${span}-01`],
  ["10 KiB", `00-${trace}-${span}-01${"-".repeat(10_240)}`],
  ["10 KiB of a later version", `cc-${trace}-${span}-01-${"a".repeat(10_240)}`],
  ["a line break", `${parent}\r\nx-evil: 1`],
])("%s is not a parent", (_name, value) => {
  expect(readTraceContext(value)).toBeUndefined();
});

test.each([
  ["10 KiB", `a=${"b".repeat(10_240)}`],
  ["33 members", Array.from({ length: 33 }, (_, at) => `k${at}=v`).join(",")],
  ["a name twice", "a=1,a=2"],
  ["no value", "a"],
  ["a line break", "a=1\r\nx-evil: 1"],
  ["a text of another alphabet", "a=ü"],
  ["a list", ["a=1"]],
])("a state of %s is left out, and the parent is kept", (_name, state) => {
  expect(readTraceContext(parent, state)).toEqual({ traceparent: parent });
});

test("any parsed header is short, and parses to the same result again", () => {
  const value = fc.oneof(
    fc.string({ maxLength: 80 }),
    fc.constant(parent),
    fc.string().map((text) => `${parent}${text}`),
  );
  const state = fc.oneof(
    fc.string(),
    fc.array(fc.constantFrom("a=1", "b=2", "a", "=", ",", "c@d=e f")).map((all) => all.join(",")),
  );
  fc.assert(
    fc.property(value, state, (traceparent, tracestate) => {
      const read = readTraceContext(traceparent, tracestate);
      if (read === undefined) return;
      expect(`${read.traceparent}${read.tracestate ?? ""}`.length).toBeLessThanOrEqual(55 + 512);
      expect(readTraceContext(read.traceparent, read.tracestate)).toEqual(read);
    }),
  );
});
