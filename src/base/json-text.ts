import { isRecord } from "./record.ts";

/**
 * Serializes a value as `JSON.stringify` does, and returns "" for undefined. Throws `TypeError` with the place of the
 * first value that would be lost: `items[0] is a Map`. Dates and other objects with `toJSON` are what they return there.
 */
export function toJsonText(value: unknown): string {
  const lost = findLost(value, []);
  if (lost !== undefined) throw new TypeError(lost);
  return JSON.stringify(value) ?? "";
}

/** Deeper values can exceed the stack of `JSON.stringify`. */
const maxDepth = 1_000;

/** Describes the first value that JSON cannot contain. `above` are the objects that contain the value. */
function findLost(value: unknown, above: object[]): string | undefined {
  if (typeof value === "bigint" || typeof value === "symbol" || typeof value === "function")
    return `it is a ${typeof value}`;
  if (typeof value !== "object" || value === null) return undefined;
  if (above.length === maxDepth) return `it is nested more than ${maxDepth} levels deep`;
  if (above.includes(value)) return "it contains itself";
  if ("toJSON" in value && typeof value.toJSON === "function") return undefined;
  const name = lostName(value);
  if (name !== undefined) return `it is a ${name}`;
  above.push(value);
  for (const [key, member] of Object.entries(value)) {
    // JSON leaves out fields that are functions or symbols, such as the methods of an object.
    if (!Array.isArray(value) && (typeof member === "function" || typeof member === "symbol")) continue;
    const lost = findLost(member, above);
    if (lost !== undefined) return inside(Array.isArray(value) ? `[${key}]` : key, lost);
  }
  above.pop();
  return undefined;
}

/** Adds a key to the place of a lost value: `it is a Map` in `rows` is `rows is a Map`. */
function inside(key: string, lost: string): string {
  const [, place = "", rest = ""] = /^(\S+)( .*)$/s.exec(lost) ?? [];
  if (place === "it") return `${key}${rest}`;
  return `${key}${place.startsWith("[") ? "" : "."}${place}${rest}`;
}

/** The class of an object of which JSON keeps nothing. */
function lostName(value: object): string | undefined {
  if (value instanceof Map) return "Map";
  if (value instanceof Set) return "Set";
  if (value instanceof Promise) return "Promise";
  if (value instanceof Error) return value.name;
  if (value instanceof RegExp) return "RegExp";
  if (value instanceof ArrayBuffer) return "ArrayBuffer";
  return undefined;
}

/** Returns JSON with sorted keys, to compare values: the order of keys has no meaning, and stores can change it. */
export function canonical(value: unknown): string {
  return JSON.stringify(value ?? null, (_key, part: unknown) =>
    isRecord(part)
      ? Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)))
      : part,
  );
}
