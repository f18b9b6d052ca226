import type { Diagnostic } from "../../protocol/diagnostic.ts";

/** Diagnostics of a file as stored: for the lists of specs, of guidelines, or of both. */
export interface StoredDiagnostics {
  readonly specs?: readonly StoredDiagnostic[];
  readonly guidelines?: readonly Diagnostic[];
}

/** A diagnostic whose `id` is that of the block at a position, known only when it is read. */
export type StoredDiagnostic = Diagnostic & { readonly position?: number };
