import { usageError } from "../report-error.ts";

const example = `Such as --payload '{"text": "…"}'.`;

/** Reads `--payload`: a JSON object. */
export function parsePayload(text: string): Readonly<Record<string, unknown>> {
  const value = parseJson(text);
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw usageError("must be a JSON object.", example);
}

/** Reads any JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`not JSON: ${error instanceof Error ? error.message : String(error)}.`, example);
  }
}
