import { causeLine, type ErrorCause } from "../../protocol/error-cause.ts";
import type { EventError } from "../../protocol/event.ts";

/** Why something failed, a line each: what its record says, and what the project's code threw. */
export function failureLines(error: EventError | undefined): readonly string[] | undefined {
  if (error === undefined) return undefined;
  return [`${error.type}: ${error.message}`, ...causeLines(error.cause)];
}

/** `TypeError: no such release (src/workflows/release.ts:12)`, and each of its causes on a line of its own. */
export function causeLines(cause: ErrorCause | undefined): readonly string[] {
  if (cause === undefined) return [];
  const { cause: further, errors = [], ...own } = cause;
  // "Error" says nothing that the reader does not know.
  const name = own.name === "Error" || own.message === "" ? "" : `${own.name}: `;
  return [`${name}${causeLine(own)}`, ...causeLines(further), ...errors.flatMap(causeLines)];
}
