import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { MarkdownScan } from "./scan-markdown.ts";

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
