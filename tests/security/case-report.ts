import type { Diagnostic } from "kit/protocol";

export interface LoadedRecord {
  readonly kind: "guideline" | "spec";
  readonly id: string;
  readonly title: string;
  readonly content: string;
  readonly path: string;
}

/** The output of `load-case.ts`. */
export interface CaseReport {
  /** Processor time of the load, as a machine of usual speed would take it. */
  readonly cpu_ms: number;
  /** The peak growth of the process after the warm-up. */
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
  /** For a skill: what an agent gets, or why it gets nothing. */
  readonly skill?:
    | { readonly name: string; readonly description: string; readonly instructions: string }
    | { readonly problem: string };
  /** The number of guidelines that apply to `match_path`. */
  readonly matched?: number;
  readonly headings?: readonly (readonly [number, string])[];
  readonly frontmatter?: Readonly<Record<string, unknown>>;
}
