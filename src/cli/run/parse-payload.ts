import { usageError } from "../report-error.ts";

/** Reads `--payload`: a JSON object. */
export function parsePayload(text: string): Readonly<Record<string, unknown>> {
  const example = `Such as --payload '{"text": "…"}'.`;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw usageError(`not JSON: ${error instanceof Error ? error.message : String(error)}.`, example);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw usageError("must be a JSON object.", example);
}
