import { suggest } from "../../base/suggest.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";

/** Collects what is wrong with a configuration, one issue per key. */
export interface Report {
  readonly issues: ErrorIssue[];
}

/** Reads one value of a configuration; undefined when it is wrong, which the report then says. */
export type Reader<T> = (value: unknown, path: string, report: Report) => T | undefined;

/** A text of 1 to 4,096 characters. */
export const text: Reader<string> = (value, path, report) => {
  if (typeof value === "string" && value !== "" && value.length <= 4096 && !value.includes("\0"))
    return value;
  return wrong(report, path, `must be a text, not ${describe(value)}`);
};

/** A text of several lines, such as instructions. */
export const longText: Reader<string> = (value, path, report) => {
  if (typeof value === "string" && value.length <= 100_000 && !value.includes("\0")) return value;
  return wrong(report, path, `must be a text, not ${describe(value)}`);
};

/** A number from 0 up, such as dollars. */
export const amount: Reader<number> = (value, path, report) => {
  if (typeof value === "number" && Number.isFinite(value) && value >= 0) return value;
  return wrong(report, path, `must be a number from 0 up, not ${describe(value)}`);
};

/** Variables for a program: a list of names to hand on, or names with values. */
export const variables: Reader<readonly string[] | Readonly<Record<string, string>>> = (
  value,
  path,
  report,
) => (isTable(value) ? dictionary(text)(value, path, report) : list(text)(value, path, report));

/** A table whose keys are names of the user's own. */
export function dictionary<T>(item: Reader<T>): Reader<Readonly<Record<string, T>>> {
  return (value, path, report) => {
    if (!isTable(value)) return wrong(report, path, `must be a table, not ${describe(value)}`);
    const entries: [string, T][] = [];
    for (const [key, entry] of Object.entries(value)) {
      const read = item(entry, `${path}.${key}`, report);
      if (read !== undefined) entries.push([key, read]);
    }
    return Object.fromEntries(entries);
  };
}

export const flag: Reader<boolean> = (value, path, report) => {
  if (typeof value === "boolean") return value;
  return wrong(report, path, `must be true or false, not ${describe(value)}`);
};

/** A whole number between `min` and `max`. */
export function integer(min: number, max: number): Reader<number> {
  return (value, path, report) => {
    // A TOML reader may give large whole numbers as bigint.
    const number = typeof value === "bigint" ? Number(value) : value;
    if (typeof number === "number" && Number.isInteger(number) && number >= min && number <= max)
      return number;
    return wrong(report, path, `must be a whole number from ${min} to ${max}, not ${describe(value)}`);
  };
}

export function list<T>(item: Reader<T>): Reader<readonly T[]> {
  return (value, path, report) => {
    if (!Array.isArray(value)) return wrong(report, path, `must be a list, not ${describe(value)}`);
    const items = value.map((entry: unknown, index) => item(entry, `${path}[${index}]`, report));
    return items.filter((entry) => entry !== undefined);
  };
}

/** A value, or a list of at least one. */
export function oneOrMore<T>(item: Reader<T>): Reader<T | readonly T[]> {
  return (value, path, report) => {
    if (!Array.isArray(value)) return item(value, path, report);
    return value.length === 0 ? wrong(report, path, "must not be empty") : list(item)(value, path, report);
  };
}

/**
 * One of a closed set of names; `toName` knows the aliases and answers undefined for others. Those of
 * `later` are told apart from slips of the pen.
 */
export function name<T extends string>(
  names: readonly T[],
  toName: (written: string) => T | undefined = among(names),
  later: readonly string[] = [],
): Reader<T> {
  return (value, path, report) => {
    const known = typeof value === "string" ? toName(value) : undefined;
    if (known !== undefined) return known;
    if (typeof value === "string" && later.includes(value)) {
      return wrong(report, path, `cannot be ${value} yet: this version of kit has ${names.join(", ")}`);
    }
    const given = typeof value === "string" ? JSON.stringify(value.slice(0, 80)) : describe(value);
    const near = typeof value === "string" ? suggest(value, names) : undefined;
    const meant = near === undefined ? "" : `; did you mean ${near}?`;
    return wrong(report, path, `must be one of ${names.join(", ")}, not ${given}${meant}`);
  };
}

function among<T extends string>(names: readonly T[]): (written: string) => T | undefined {
  return (written) => names.find((known) => known === written);
}

/** A value that `accepts` accepts; `what` completes the sentence "must be …". */
export function guarded<T>(what: string, accepts: (value: unknown) => value is T): Reader<T> {
  return (value, path, report) =>
    accepts(value) ? value : wrong(report, path, `must be ${what}, not ${describe(value)}`);
}

/** A table with these keys and no others; none is required but those of `required`. */
export function table<T extends object>(
  readers: { readonly [K in keyof T]-?: Reader<NonNullable<T[K]>> },
  options: { readonly required?: readonly (keyof T & string)[] } = {},
): Reader<T> {
  const known = new Map<string, Reader<unknown>>(Object.entries(readers));
  return (value, path, report) => {
    if (!isTable(value))
      return wrong(report, path || "the configuration", `must be a table, not ${describe(value)}`);
    const result: Record<string, unknown> = {};
    for (const [key, entry] of Object.entries(value)) {
      const keyPath = path === "" ? key : `${path}.${key}`;
      const reader = known.get(key);
      if (reader === undefined) report.issues.push(unknownKey(keyPath, { key, known: known.keys() }));
      else if (entry !== undefined) result[key] = reader(entry, keyPath, report);
    }
    for (const key of options.required ?? []) {
      if (value[key] === undefined) wrong(report, path === "" ? key : `${path}.${key}`, "is required");
    }
    return result as T;
  };
}

function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function unknownKey(
  path: string,
  { key, known }: { readonly key: string; readonly known: Iterable<string> },
): ErrorIssue {
  const near = suggest(key, known);
  const parent = path.slice(0, path.length - key.length);
  return {
    path,
    message: near === undefined ? "is no key of kit" : `is no key of kit; did you mean ${parent}${near}?`,
  };
}

function wrong(report: Report, path: string, message: string): undefined {
  report.issues.push({ path, message });
}

function describe(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  // Never the text itself: it may be a key.
  if (typeof value === "string") return value === "" ? "an empty text" : "a text";
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean")
    return String(value);
  return typeof value === "function" ? "a function" : "a table";
}
