import { usageError } from "./report-error.ts";

/** Reads a whole number between two bounds, inclusive. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw usageError(`'${text}' is no whole number from ${least} to ${most.toLocaleString("en")}.`);
  };
}

/** A value that may be any text. */
export function asText(text: string): string {
  return text;
}

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
