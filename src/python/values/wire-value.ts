/**
 * A value as JSON, between kit and its Python process and in dumps. An array is a list; every object is a tagged value, so
 * that a key of a dict is never a key of a JavaScript object.
 */
export type WireValue = null | boolean | number | string | readonly WireValue[] | WireTagged;

export type WireTagged =
  /** A float that JSON cannot express. */
  | { readonly t: "number"; readonly v: "NaN" | "Infinity" | "-Infinity" | "-0" }
  /** As text, or as a number beyond JSON's exact range, which is an integer. */
  | { readonly t: "int"; readonly v: string | number }
  /** Base64. */
  | { readonly t: "bytes"; readonly v: string }
  | { readonly t: "tuple"; readonly v: readonly WireValue[] }
  | { readonly t: "dict"; readonly v: readonly (readonly [WireValue, WireValue])[] }
  | { readonly t: "set"; readonly v: readonly WireValue[] }
  | { readonly t: "time"; readonly v: WireTime }
  | WireDataclass;

/** Contains the names of its fields, so that it can be read without the registered dataclass. */
export interface WireDataclass {
  readonly t: "dataclass";
  readonly name: string;
  readonly frozen: boolean;
  readonly fields: readonly string[];
  readonly v: readonly WireValue[];
}

/** The values of Python's `datetime` module in Monty's form. */
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
  /** Nesting of lists and dicts. */
  readonly depth: number;
  readonly nodes: number;
  readonly chars: number;
}

/** The limits of one value from the host. */
export const toPythonLimits: ValueLimits = { depth: 100, nodes: 1_000_000, chars: 16_000_000 };

/** The limits of one value from Python, because decoding takes time on the host's main thread. */
export const fromPythonLimits: ValueLimits = { depth: 100, nodes: 200_000, chars: 4_000_000 };

/** Counts the parts of a value during a walk. `report` gets the exceeded limit, and throws. */
export interface ValueBudget {
  enter(depth: number): void;
  /** Checks a list of `length` before its elements are walked; `enter` counts the elements. */
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

/** Converts a float to JSON. */
export function toWireNumber(value: number): WireValue {
  if (Number.isFinite(value)) return Object.is(value, -0) ? { t: "number", v: "-0" } : value;
  return { t: "number", v: Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity" };
}

export function isWireList(wire: WireValue): wire is readonly WireValue[] {
  return Array.isArray(wire);
}
