import { usageError } from "../report-error.ts";

/** Reads `--payload`: a JSON object. */
export function parsePayload(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch (error) {
    throw usageError(`--payload is not JSON: ${error instanceof Error ? error.message : String(error)}.`);
  }
  throw usageError("--payload must be a JSON object.", `Such as --payload '{"text": "…"}'.`);
}
