import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { MarkdownScan } from "./scan-markdown.ts";

export type FrontMatterCode =
  | "frontmatter_unterminated"
  | "frontmatter_invalid"
  | "frontmatter_not_a_mapping"
  | "frontmatter_duplicate_key"
  | "frontmatter_too_large";

/** A problem of a front matter; `line` is 1-based, in the file. */
export interface FrontMatterProblem {
  readonly code: FrontMatterCode;
  readonly message: string;
  readonly line: number;
  readonly severity: "error" | "warning";
}

/** The result of one parser of the text between the fences; lines are 1-based, in that text. */
export interface FrontMatterReading {
  readonly data: Readonly<Record<string, unknown>>;
  readonly problems: readonly FrontMatterProblem[];
}

export function duplicateKey(key: string, line: number): FrontMatterProblem {
  const message = `The key "${quoteKey(key)}" occurs twice in the front matter; the last one counts.`;
  return { code: "frontmatter_duplicate_key", message, line, severity: "error" };
}

export function invalid(message: string, line: number): FrontMatterProblem {
  return { code: "frontmatter_invalid", message, line, severity: "error" };
}

/** A key for a message: short and without control characters. */
export function quoteKey(key: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a message
  return key.slice(0, 60).replace(/[\u0000-\u001f\u007f-\u009f]/g, " ");
}

/** Front matter as written, for writing it back: line ends are LF; "" where it is blank. */
export function frontMatterText(raw: string): string {
  return raw.trim() === "" ? "" : raw.replace(/\r\n?/g, "\n");
}

/** The problems of a file's front matter, as diagnostics of that file. */
export function frontMatterDiagnostics(path: string, problems: readonly FrontMatterProblem[]): Diagnostic[] {
  return problems.map(({ severity, code, message, line }) => ({
    severity,
    rule: "front-matter",
    code,
    message,
    path,
    line,
  }));
}

/**
 * Warnings about code fences and comments that are never closed: all behind them is text, so
 * headings and tasks there are not seen. Front matter has diagnostics of its own.
 */
export function unclosedDiagnostics(scan: MarkdownScan, path: string): Diagnostic[] {
  return scan.unclosed.flatMap(({ kind, line }): Diagnostic[] => {
    if (kind === "front_matter") return [];
    const name = kind === "fence" ? "code fence" : "comment";
    return [
      {
        severity: "warning",
        rule: "structure",
        code: `${kind}_unclosed`,
        message: `This ${name} is never closed, so the rest of the file is part of it.`,
        path,
        line,
      },
    ];
  });
}
