import type { Diagnostic } from "kit/protocol";

export interface LoadedRecord {
  readonly kind: "guideline" | "spec";
  readonly id: string;
  readonly title: string;
  readonly content: string;
  readonly path: string;
}

/** What `load-case.ts` prints. */
export interface CaseReport {
  /** Processor time of the load. */
  readonly cpu_ms: number;
  /** How much the process grew at its largest, from after the warm-up on. */
  readonly rss_growth_mb: number;
  readonly records: readonly LoadedRecord[];
  readonly diagnostics: readonly Diagnostic[];
  readonly ids_again: readonly string[];
  readonly steering: readonly {
    readonly filename: string;
    readonly frontmatter: Readonly<Record<string, unknown>>;
    readonly read_back: Readonly<Record<string, unknown>>;
  }[];
  readonly replies: readonly { readonly path: string; readonly status: number; readonly body: string }[];
  readonly polluted: boolean;
  /** What an agent gets of a case that is a skill, or why it gets nothing. */
  readonly skill?:
    | { readonly name: string; readonly description: string; readonly instructions: string }
    | { readonly problem: string };
  /** How many guidelines apply to `match_path`. */
  readonly matched?: number;
  readonly headings?: readonly (readonly [number, string])[];
  readonly frontmatter?: Readonly<Record<string, unknown>>;
}
