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
