import type { PythonValue } from "../contract.ts";

/** A JSON value that can also contain bytes, dates and large integers. */
export type PlainValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | Date
  | readonly PlainValue[]
  | { readonly [key: string]: PlainValue };

/**
 * Converts dicts to objects and sets to arrays, recursively. Keys become strings; each one is an own property, also
 * `__proto__`.
 *
 * @example
 * ```ts
 * import { toPlain } from "kit/python";
 *
 * console.log(toPlain(new Map([["tea", 3]]))); // { tea: 3 }
 * ```
 */
export function toPlain(value: PythonValue): PlainValue {
  if (value === null || typeof value !== "object") return value;
  if (value instanceof Uint8Array || value instanceof Date) return value;
  if (Array.isArray(value)) return value.map(toPlain);
  if (value instanceof Set) return [...value].map(toPlain);
  const entries: Iterable<readonly [PythonValue, PythonValue]> =
    value instanceof Map ? value : Object.entries(value);
  return Object.fromEntries(Array.from(entries, ([key, part]) => [String(key), toPlain(part)]));
}
