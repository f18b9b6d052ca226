import { KitError } from "../../base/kit-error.ts";
import type { DataclassRegistry } from "../dataclass-registry.ts";
import {
  createValueBudget,
  toPythonLimits,
  toWireNumber,
  type ValueBudget,
  type WireValue,
} from "./wire-value.ts";

interface Encoding {
  readonly registry: DataclassRegistry;
  readonly budget: ValueBudget;
  readonly fail: (problem: string, path: string) => never;
}

/**
 * Encodes a value of the host for Python. `name` is its name in errors, such as `inputs.rows`. Throws `invalid_request` for
 * a value without a Python counterpart (functions, symbols, instances of unregistered classes, cycles), and for a value
 * that is too deep or too large.
 */
export function encodeValue(value: unknown, name: string, registry: DataclassRegistry): WireValue {
  const fail = (problem: string, path: string): never => {
    throw new KitError({
      code: "invalid_request",
      message: `Python cannot accept ${path}: it ${problem}.`,
      hint: "See docs/python.md for the values that Python accepts.",
    });
  };
  const budget = createValueBudget((problem) => fail(problem, name), toPythonLimits);
  try {
    return encode(value, { path: name, depth: 0 }, { registry, budget, fail });
  } catch (cause) {
    throw cause instanceof KitError ? cause : unreadable(name, cause);
  }
}

/** The error of a value whose getter, proxy or iterator throws. */
function unreadable(name: string, cause: unknown): KitError {
  const message = `Python cannot accept ${name}: reading it failed.`;
  return new KitError({ code: "invalid_request", message, cause });
}

interface Place {
  readonly path: string;
  readonly depth: number;
}

function encode(value: unknown, place: Place, encoding: Encoding): WireValue {
  encoding.budget.enter(place.depth);
  switch (typeof value) {
    case "undefined":
      return null;
    case "boolean":
      return value;
    case "number":
      // Python's int has any size, so every number without a fraction becomes one, also beyond JSON's exact range.
      return Number.isInteger(value) && !Number.isSafeInteger(value)
        ? { t: "int", v: value }
        : toWireNumber(value);
    case "bigint":
      encoding.budget.text(digitsOf(value));
      return { t: "int", v: value.toString() };
    case "string":
      encoding.budget.text(value.length);
      return value;
    case "object":
      return value === null ? null : encodeObject(value, place, encoding);
    default:
      return encoding.fail(`is a ${typeof value}`, place.path);
  }
}

function encodeObject(value: object, place: Place, encoding: Encoding): WireValue {
  const { budget, registry } = encoding;
  const inside = (part: unknown, step: string): WireValue =>
    encode(part, { path: `${place.path}${step}`, depth: place.depth + 1 }, encoding);
  // Count holes too, which a sparse array of any length can have.
  if (Array.isArray(value)) {
    budget.count(value.length);
    return Array.from(value, (part, index) => inside(part, `[${index}]`));
  }
  if (value instanceof Uint8Array) {
    budget.text(Math.ceil(value.byteLength / 3) * 4);
    return {
      t: "bytes",
      v: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64"),
    };
  }
  const hashed = (part: unknown, step: string): WireValue => {
    if (!isHashable(part, registry)) encoding.fail("cannot be hashed", `${place.path}${step}`);
    return inside(part, step);
  };
  if (value instanceof Map) {
    const entries = [...value].map(
      ([key, part]) => [hashed(key, " (a key)"), inside(part, stepOf(key))] as const,
    );
    return { t: "dict", v: entries };
  }
  if (value instanceof Set) return { t: "set", v: [...value].map((part) => hashed(part, " (an element)")) };
  if (value instanceof Date) return encodeDate(value, place, encoding);
  const dataclass = registry.dataclassOf(value);
  if (dataclass !== undefined) {
    // Every instance contains its field names, so that it can be read without the registered dataclass.
    budget.text(dataclass.fields.reduce((sum, field) => sum + field.name.length, dataclass.name.length));
    const fields = dataclass.fields.map((field) => inside(Reflect.get(value, field.name), `.${field.name}`));
    return {
      t: "dataclass",
      name: dataclass.name,
      frozen: dataclass.frozen,
      fields: dataclass.fields.map((field) => field.name),
      v: fields,
    };
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    return encoding.fail("is an instance of a class that is not a registered dataclass", place.path);
  }
  const pairs = Object.entries(value).map(([key, part]) => {
    budget.text(key.length);
    return [key, inside(part, stepOf(key))] as const;
  });
  return { t: "dict", v: pairs };
}

/** Whether the value can be a key in Python, where an array becomes a tuple. Does not check the depth. */
function isHashable(value: unknown, registry: DataclassRegistry, depth = 0): boolean {
  if (typeof value !== "object" || value === null || depth > toPythonLimits.depth) return true;
  if (Array.isArray(value)) return value.every((part) => isHashable(part, registry, depth + 1));
  if (value instanceof Date || value instanceof Uint8Array) return true;
  return registry.dataclassOf(value)?.frozen === true;
}

function encodeDate(value: Date, place: Place, { fail }: Encoding): WireValue {
  const year = value.getUTCFullYear();
  // Python's datetime supports these years only; the year of an invalid date is NaN.
  if (!(year >= 1 && year <= 9999)) return fail("is a date that Python cannot express", place.path);
  return {
    t: "time",
    v: {
      kind: "DateTime",
      year,
      month: value.getUTCMonth() + 1,
      day: value.getUTCDate(),
      hour: value.getUTCHours(),
      minute: value.getUTCMinutes(),
      second: value.getUTCSeconds(),
      microsecond: value.getUTCMilliseconds() * 1000,
      offsetSeconds: 0,
    },
  };
}

function stepOf(key: unknown): string {
  const text = typeof key === "string" ? key : typeof key === "object" ? "…" : String(key);
  return /^[\w$]{1,40}$/.test(text) ? `.${text}` : `[${JSON.stringify(text.slice(0, 40))}]`;
}

// Check the size first, because the conversion of a huge number takes very long.
function digitsOf(value: bigint): number {
  const bits = value < 0n ? -value : value;
  return Math.ceil(bits.toString(16).length * 1.21);
}
