/**
 * A value between kit and its Python process, and in a dump, as JSON. An array is a list; every object is
 * one of the tagged ones, so that no key of a dict is ever a key of a JavaScript object.
 */
export type WireValue = null | boolean | number | string | readonly WireValue[] | WireTagged;

export type WireTagged =
  /** A float that JSON has no number for. */
  | { readonly t: "number"; readonly v: "NaN" | "Infinity" | "-Infinity" | "-0" }
  /** As text, or as a number beyond what JSON says exactly, which is an integer as it stands. */
  | { readonly t: "int"; readonly v: string | number }
  /** Base64. */
  | { readonly t: "bytes"; readonly v: string }
  | { readonly t: "tuple"; readonly v: readonly WireValue[] }
  | { readonly t: "dict"; readonly v: readonly (readonly [WireValue, WireValue])[] }
  | { readonly t: "set"; readonly v: readonly WireValue[] }
  | { readonly t: "time"; readonly v: WireTime }
  | WireDataclass;

/** It says its fields itself, so that it can be read where the dataclass is not registered. */
export interface WireDataclass {
  readonly t: "dataclass";
  readonly name: string;
  readonly frozen: boolean;
  readonly fields: readonly string[];
  readonly v: readonly WireValue[];
}

/** The values of Python's `datetime` module, as Monty takes and gives them. */
export type WireTime =
  | {
      readonly kind: "DateTime";
      readonly year: number;
      readonly month: number;
      readonly day: number;
      readonly hour: number;
      readonly minute: number;
      readonly second: number;
      readonly microsecond: number;
      /** Absent for a naive datetime. */
      readonly offsetSeconds?: number;
      readonly timezoneName?: string;
    }
  | { readonly kind: "Date"; readonly year: number; readonly month: number; readonly day: number }
  | {
      readonly kind: "TimeDelta";
      readonly days: number;
      readonly seconds: number;
      readonly microseconds: number;
    }
  | { readonly kind: "TimeZone"; readonly offsetSeconds: number; readonly name?: string };

export interface ValueLimits {
  /** Lists and dicts inside each other. */
  readonly depth: number;
  readonly nodes: number;
  readonly chars: number;
}

/** The limits of one value of the host. */
export const toPythonLimits: ValueLimits = { depth: 100, nodes: 1_000_000, chars: 16_000_000 };

/** The limits of one value of Python: decoding it takes time on the host's own thread. */
export const fromPythonLimits: ValueLimits = { depth: 100, nodes: 200_000, chars: 4_000_000 };

/** Counts what a value holds while it is walked. `report` throws, and is told what is too much. */
export interface ValueBudget {
  enter(depth: number): void;
  /** Fails for a list of `length` before it is walked; what it holds is counted by `enter`. */
  count(length: number): void;
  text(length: number): void;
}

export function createValueBudget(report: (problem: string) => never, limits: ValueLimits): ValueBudget {
  let nodes = 0;
  let chars = 0;
  const count = (more: number): void => {
    if (nodes + more > limits.nodes) report(`has more than ${limits.nodes.toLocaleString("en")} parts`);
  };
  return {
    count,
    enter(depth) {
      count(1);
      nodes += 1;
      if (depth > limits.depth) report(`is nested deeper than ${limits.depth} levels`);
    },
    text(length) {
      chars += length;
      if (chars > limits.chars) report(`holds more than ${limits.chars.toLocaleString("en")} characters`);
    },
  };
}

/** A float as JSON can carry it. */
export function toWireNumber(value: number): WireValue {
  if (Number.isFinite(value)) return Object.is(value, -0) ? { t: "number", v: "-0" } : value;
  return { t: "number", v: Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity" };
}

export function isWireList(wire: WireValue): wire is readonly WireValue[] {
  return Array.isArray(wire);
}
