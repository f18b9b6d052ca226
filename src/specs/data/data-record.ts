import type { Diagnostic } from "../../protocol/diagnostic.ts";

/** A record of a data file, and where it lies. */
export interface DataRecord {
  readonly value: unknown;
  readonly startLine: number;
  readonly endLine: number;
  /** The line of a field, or of the record where it has no such field. */
  lineOf(field: string): number;
}

export interface DataProblem {
  readonly message: string;
  readonly line?: number;
  readonly field?: string;
  /** Set where a size or depth is more than is read. */
  readonly isLimit?: boolean;
}

export interface DataFile {
  readonly records: readonly DataRecord[];
  readonly problems: readonly DataProblem[];
}

/** The keys below which a file may hold its records. */
const listKeys = ["specs", "blocks"];

/** The list of records in an object, and its key. */
export function listIn(value: unknown): { key: string; items: readonly unknown[] } | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const found = Object.entries(value).find(([key, items]) => listKeys.includes(key) && Array.isArray(items));
  return found === undefined ? undefined : { key: found[0], items: found[1] };
}

export function duplicateKey(key: string, line: number): DataProblem {
  return {
    message: `The key ${JSON.stringify(key.slice(0, 60))} occurs twice; the last one counts.`,
    line,
    field: key,
  };
}

/** A file that is wrong in more places than these is wrong as a whole. */
const maxDiagnostics = 100;

/** The first diagnostics of a file, and how many more there are. */
export function atMost(diagnostics: readonly Diagnostic[], path: string): readonly Diagnostic[] {
  const more = diagnostics.length - maxDiagnostics;
  if (more <= 0) return diagnostics;
  const message = `${more} more problems of this file are not listed.`;
  return [...diagnostics.slice(0, maxDiagnostics), { severity: "error", rule: "limit", message, path }];
}
