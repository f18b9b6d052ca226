import { attempt } from "./attempt.ts";

// Anything can be thrown, and reading a property of it can throw again: a getter, a proxy.

/**
 * Returns the message of an error, or the text of any other thrown value, not cut. It never throws.
 */
export function thrownText(thrown: unknown): string {
  if (typeof thrown !== "object" || thrown === null) return attempt(() => String(thrown)) ?? "";
  const message = textAt(thrown, "message");
  if (message !== undefined && message !== "") return message;
  const code = textAt(thrown, "code");
  if (isThrownError(thrown)) return code ?? "";
  return code ?? attempt(() => JSON.stringify(thrown)) ?? "";
}

export function isThrownError(value: unknown): boolean {
  return attempt(() => value instanceof Error) === true;
}

export function textAt(value: unknown, field: string): string | undefined {
  const text = readField(value, field);
  return typeof text === "string" ? text : undefined;
}

/** A getter can throw, and so can a proxy. */
export function readField(value: unknown, field: string): unknown {
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return undefined;
  return attempt(() => Reflect.get(value, field) as unknown);
}
