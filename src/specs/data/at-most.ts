import type { Diagnostic } from "../../protocol/diagnostic.ts";

/** A file that is wrong in more places than these is wrong as a whole. */
const maxDiagnostics = 100;

/** The first diagnostics of a file, and how many more there are. */
export function atMost(diagnostics: readonly Diagnostic[], path: string): readonly Diagnostic[] {
  const more = diagnostics.length - maxDiagnostics;
  if (more <= 0) return diagnostics;
  const message = `${more} more problems of this file are not listed.`;
  return [...diagnostics.slice(0, maxDiagnostics), { severity: "error", rule: "limit", message, path }];
}
