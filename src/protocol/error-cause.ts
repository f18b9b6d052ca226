import { KitError } from "../base/kit-error.ts";
import { isThrownError, readField, textAt, thrownText } from "../base/thrown.ts";
import type { ErrorCause, EventError } from "./errors.ts";
import {
  hideRepeatedKeys,
  isProviderError,
  type ProviderFault,
  providerErrorName,
  readProviderFault,
} from "./provider-fault.ts";

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

/** The causes of these errors come from the provider of a model. Of its answer, kit stores only the error's words and code. */
const modelCodes: ReadonlySet<string> = new Set(["model_error", "model_timeout", "context_overflow"]);

/**
 * Returns the cause of an error, for a record that already has its code and message; undefined if the cause adds
 * nothing. It never throws, whatever value was thrown.
 */
export function causeOf(error: unknown, reader: CauseReader): ErrorCause | undefined {
  const origin = originOf(error);
  if (!(origin instanceof KitError)) return toErrorCause(origin, reader);
  const cause = readField(origin, "cause");
  if (cause !== undefined) return toCauseBelow(origin, cause, { reader, above: [] });
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

/**
 * The words for what went wrong: those of the provider or of the code that threw, where the error has them.
 *
 * @example
 * ```ts
 * import { explainError } from "kit/client";
 *
 * const cause = { name: "ProviderError", message: "Incorrect API key provided.", status: 401 };
 * explainError({ type: "model_error", message: "The provider refused the call.", cause });
 * ```
 */
export function explainError({ message, cause }: EventError): string {
  return cause === undefined ? message : causeLine(cause);
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
export function fromErrorCause(record: ErrorCause): Error {
  const { name, message, path, line, status, code, cause, errors } = record;
  const options = cause === undefined ? undefined : { cause: fromErrorCause(cause) };
  const error =
    errors === undefined
      ? new Error(message, options)
      : new AggregateError(errors.map(fromErrorCause), message, options);
  const place = path === undefined ? "" : `\n    at ${path}:${line ?? 1}`;
  const fields = { name, stack: `${name}: ${message}${place}`, status, code };
  for (const [field, value] of Object.entries(fields)) {
    if (value !== undefined)
      Object.defineProperty(error, field, { value, configurable: true, writable: true });
  }
  return error;
}

/** Returns the original error: kit wraps it in other errors with the same message. */
function originOf(error: unknown): unknown {
  let origin = error;
  for (let depth = 0; depth < 2 * maxDepth && origin instanceof KitError; depth += 1) {
    const cause: unknown = readField(origin, "cause");
    if (!(cause instanceof KitError) || cause.message !== origin.message) break;
    origin = cause;
  }
  return origin;
}

/** `above` holds the errors whose cause this is, outermost first. */
function toErrorCause(thrown: unknown, reader: CauseReader, above: readonly unknown[] = []): ErrorCause {
  // An error that `fromErrorCause` made.
  if (textAt(thrown, "name") === providerErrorName) return toProviderCause(readProviderFault(thrown), reader);
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
      : [toCauseBelow(thrown, value, { reader, above: trail })];
  const [cause] = below(readField(thrown, "cause"));
  const joined = readField(thrown, "errors");
  const errors =
    Array.isArray(joined) && isThrownError(thrown) ? joined.slice(0, maxErrors).flatMap(below) : [];
  return {
    name: cut(reader.clean(nameOf(thrown).slice(0, maxReadChars)), maxNameChars),
    message: cut(reader.clean(message.slice(0, maxReadChars)), maxMessageChars),
    ...place,
    cause,
    ...(errors.length === 0 ? {} : { errors }),
  };
}

/** Whether the cause of an error is what a provider sent, which can contain keys and whole prompts. */
export function hasProviderCause(error: unknown): boolean {
  return (
    error instanceof KitError && modelCodes.has(error.code) && isProviderError(readField(error, "cause"))
  );
}

/** Reads the cause of an error: what a provider sends can also contain keys and whole prompts. */
function toCauseBelow(
  error: unknown,
  cause: unknown,
  { reader, above }: { readonly reader: CauseReader; readonly above: readonly unknown[] },
): ErrorCause {
  if (!(error instanceof KitError) || !modelCodes.has(error.code)) return toErrorCause(cause, reader, above);
  const clean = (text: string): string => hideRepeatedKeys(reader.clean(text));
  const modelReader: CauseReader = { clean, place: (stack) => reader.place(stack) };
  if (!isProviderError(cause)) return toErrorCause(cause, modelReader, above);
  // A copy of the error without its secrets has lost the fields of its cause.
  const { hint, meta } = error;
  const { message, status, code } = readProviderFault(cause);
  const { provider_status = status, provider_code = code } = meta ?? {};
  return toProviderCause(
    {
      message: hint ?? message,
      status: typeof provider_status === "number" ? provider_status : undefined,
      code: typeof provider_code === "string" ? provider_code : undefined,
    },
    modelReader,
  );
}

function toProviderCause({ message, status, code }: ProviderFault, reader: CauseReader): ErrorCause {
  return {
    name: providerErrorName,
    message: cut(reader.clean(message.slice(0, maxReadChars)), maxMessageChars),
    ...(status === undefined ? {} : { status }),
    ...(code === undefined ? {} : { code: reader.clean(code) }),
  };
}

function nameOf(thrown: unknown): string {
  if (thrown === null) return "null";
  if (typeof thrown !== "object") return typeof thrown;
  const name = textAt(thrown, "name");
  if (name !== undefined && name !== "" && name !== "Error") return name;
  // A class that extends Error without setting `name`.
  return textAt(readField(thrown, "constructor"), "name") || name || "object";
}

function cut(text: string, limit: number): string {
  return (text.length > limit ? `${text.slice(0, limit - 1)}…` : text).toWellFormed();
}
