import { type KnownKeys, toSentence, unknownKey } from "../base/error-text.ts";
import { KitError } from "../base/kit-error.ts";

/**
 * Throws `invalid_request` for a value that is not a plain object, and for a key that kit does not read: a
 * misspelled limit would limit nothing. `name` is how an error calls the object.
 */
export function checkKeys(value: unknown, name: string, known: KnownKeys): void {
  const fault = isTable(value) ? unknownKey(value, known) : `${name} must be an object`;
  if (fault !== undefined) throw new KitError({ code: "invalid_request", message: toSentence(fault) });
}

/** Throws `invalid_request` for what is not a plain object: the entries of a list or a Map would not be seen. */
export function checkTable(value: unknown, name: string): void {
  if (isTable(value)) return;
  throw new KitError({ code: "invalid_request", message: `${name} must be an object, by name.` });
}

function isTable(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  return !Array.isArray(value) && !(value instanceof Map) && !(value instanceof Set);
}
