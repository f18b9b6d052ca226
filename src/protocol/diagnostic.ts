/** The rules a diagnostic can name. The first five are the validation rules of a spec block. */
export const diagnosticRules = [
  "required-field",
  "enum",
  "timestamp",
  "summary-length",
  "duplicate-id",
  "unreadable-file",
  "encoding",
  "front-matter",
  "structure",
  "dangling-reference",
  "glob-no-match",
  "duplicate-guideline",
  "contradiction",
  "shadowed",
  "import",
  "limit",
] as const;
export type DiagnosticRule = (typeof diagnosticRules)[number];

/** Something wrong with an input file, said once, with the place to look at. */
export interface Diagnostic {
  readonly severity: "error" | "warning";
  readonly rule: DiagnosticRule;
  /** A stable finer name where one rule has several causes, such as `frontmatter_unterminated`. */
  readonly code?: string;
  readonly message: string;
  /** POSIX, relative to the project root. */
  readonly path: string;
  /** 1-based. */
  readonly line?: number;
  /** Of the block or guideline, where there is one. */
  readonly id?: string;
  readonly field?: string;
}
