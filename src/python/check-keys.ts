import { KitError } from "../base/kit-error.ts";
import { suggest } from "../base/suggest.ts";

/** The keys that an object may hold, and how errors call one of them: "option of a run". */
export interface KnownKeys {
  readonly of: string;
  readonly keys: readonly string[];
}

/**
 * Throws `invalid_request` for a value that is no plain object, and for a key that kit does not read: a
 * misspelled limit would limit nothing. `name` is how an error calls the object.
 */
export function checkKeys(value: unknown, name: string, known: KnownKeys): void {
  const message = faultOf(value, name, known);
  if (message !== undefined) throw new KitError({ code: "invalid_request", message });
}

/** Throws `invalid_request` for what is no plain object: the entries of a list or a Map would not be seen. */
export function checkTable(value: unknown, name: string): void {
  if (isTable(value)) return;
  throw new KitError({ code: "invalid_request", message: `${name} must be an object, by name.` });
}

function faultOf(value: unknown, name: string, { of, keys }: KnownKeys): string | undefined {
  if (!isTable(value)) return `${name} must be an object.`;
  const unknown = Object.keys(value).find((key) => !keys.includes(key));
  if (unknown === undefined) return undefined;
  const near = suggest(unknown, keys);
  const instead = near === undefined ? `there are ${keys.join(", ")}` : `did you mean ${near}?`;
  return `\`${unknown.slice(0, 100)}\` is no ${of}; ${instead}${near === undefined ? "." : ""}`;
}

function isTable(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  return !Array.isArray(value) && !(value instanceof Map) && !(value instanceof Set);
}
