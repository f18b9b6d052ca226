import { KitError } from "../base/kit-error.ts";
import type { ErrorCause } from "./errors.ts";

export type { ErrorCause } from "./errors.ts";

/** Reads errors of a project on this machine. */
export interface CauseReader {
  /** Removes secrets and paths of the machine from a text. */
  clean(text: string): string;
  /** Returns the first place in the project's files that a stack names. */
  place(stack: string): { readonly path: string; readonly line: number } | undefined;
}

const maxNameChars = 100;
const maxMessageChars = 2_000;
/** A longer text is cut before it is masked, which would take time. */
const maxReadChars = 1_000_000;
const maxDepth = 5;
const maxErrors = 5;

/** The causes of these errors are answers of a provider, which kit does not store. */
const opaqueCodes: ReadonlySet<string> = new Set(["model_error", "model_timeout", "context_overflow"]);

/**
 * Returns the cause of an error, for a record that already has its code and message; undefined if the cause adds
 * nothing. It never throws, whatever value was thrown.
 */
export function causeOf(error: unknown, reader: CauseReader): ErrorCause | undefined {
  const origin = originOf(error);
  if (!(origin instanceof KitError)) return toErrorCause(origin, reader);
  const cause = opaqueCodes.has(origin.code) ? undefined : read(origin, "cause");
  if (cause !== undefined) return toErrorCause(cause, reader);
  const { cause: _, errors: __, ...own } = toErrorCause(origin, reader);
  return own.path === undefined ? undefined : own;
}

/** Formats a cause on one line: `GitHub said 500 (src/workflows/release.ts:12)`, followed by its own causes. */
export function causeLine(cause: ErrorCause): string {
  const { name, message, path, line } = cause;
  const place = path === undefined ? "" : ` (${path}${line === undefined ? "" : `:${line}`})`;
  const further = [...(cause.cause === undefined ? [] : [cause.cause]), ...(cause.errors ?? [])];
  return [`${message === "" ? name : message}${place}`, ...further.map(causeLine)].join("; caused by: ");
}

/** Returns the messages of an error and of its causes. */
export function messagesOf(error: unknown): readonly string[] {
  const all = (cause: ErrorCause): readonly string[] => [
    cause.message === "" ? cause.name : cause.message,
    ...[...(cause.cause === undefined ? [] : [cause.cause]), ...(cause.errors ?? [])].flatMap(all),
  ];
  return all(toErrorCause(error, { clean: (text) => text, place: () => undefined }));
}

/** Converts a cause to an error for code outside kit; `causeOf` converts it back. */
export function fromErrorCause({ name, message, path, line, cause, errors }: ErrorCause): Error {
  const options = cause === undefined ? undefined : { cause: fromErrorCause(cause) };
  const error =
    errors === undefined
      ? new Error(message, options)
      : new AggregateError(errors.map(fromErrorCause), message, options);
  const place = path === undefined ? "" : `\n    at ${path}:${line ?? 1}`;
  for (const [field, value] of Object.entries({ name, stack: `${name}: ${message}${place}` })) {
    Object.defineProperty(error, field, { value, configurable: true, writable: true });
  }
  return error;
}

/** Returns the original error: kit wraps it in other errors with the same message. */
function originOf(error: unknown): unknown {
  let origin = error;
  for (let depth = 0; depth < 2 * maxDepth && origin instanceof KitError; depth += 1) {
    const cause: unknown = read(origin, "cause");
    if (!(cause instanceof KitError) || cause.message !== origin.message) break;
    origin = cause;
  }
  return origin;
}

/** `above` holds the errors whose cause this is, outermost first. */
function toErrorCause(thrown: unknown, reader: CauseReader, above: readonly unknown[] = []): ErrorCause {
  const message = thrownText(thrown);
  const stack = textAt(thrown, "stack") ?? "";
  // Remove the message from the stack: its text can look like a place.
  const at = message === "" ? -1 : stack.indexOf(message);
  const frames = at === -1 ? stack : `${stack.slice(0, at)}${stack.slice(at + message.length)}`;
  const place = reader.place(frames.slice(0, maxReadChars));
  const trail = [...above, thrown];
  const below = (value: unknown): readonly ErrorCause[] =>
    value === undefined || value === null || trail.includes(value) || above.length >= maxDepth
      ? []
      : [toErrorCause(value, reader, trail)];
  const [cause] = below(read(thrown, "cause"));
  const joined = read(thrown, "errors");
  const errors = Array.isArray(joined) && isError(thrown) ? joined.slice(0, maxErrors).flatMap(below) : [];
  return {
    name: cut(reader.clean(nameOf(thrown).slice(0, maxReadChars)), maxNameChars),
    message: cut(reader.clean(message.slice(0, maxReadChars)), maxMessageChars),
    ...place,
    cause,
    ...(errors.length === 0 ? {} : { errors }),
  };
}

function nameOf(thrown: unknown): string {
  if (thrown === null) return "null";
  if (typeof thrown !== "object") return typeof thrown;
  const name = textAt(thrown, "name");
  if (name !== undefined && name !== "" && name !== "Error") return name;
  // A class that extends Error without setting `name`.
  return textAt(read(thrown, "constructor"), "name") || name || "object";
}

/**
 * Returns the message of an error, or the text of any other thrown value, not cut. It never throws.
 */
export function thrownText(thrown: unknown): string {
  if (typeof thrown !== "object" || thrown === null) return safely(() => String(thrown)) ?? "";
  const message = textAt(thrown, "message");
  if (message !== undefined && message !== "") return message;
  const code = textAt(thrown, "code");
  if (isError(thrown)) return code ?? "";
  return code ?? safely(() => JSON.stringify(thrown)) ?? "";
}

function isError(value: unknown): boolean {
  return safely(() => value instanceof Error) === true;
}

function textAt(value: unknown, field: string): string | undefined {
  const text = read(value, field);
  return typeof text === "string" ? text : undefined;
}

/** A getter can throw, and so can a proxy. */
function read(value: unknown, field: string): unknown {
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return undefined;
  return safely(() => Reflect.get(value, field) as unknown);
}

function safely<Value>(readValue: () => Value): Value | undefined {
  try {
    return readValue();
  } catch {
    return undefined;
  }
}

function cut(text: string, limit: number): string {
  return (text.length > limit ? `${text.slice(0, limit - 1)}…` : text).toWellFormed();
}
