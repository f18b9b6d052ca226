import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { MarkdownScan } from "../../markdown/scan-markdown.ts";

/** Two blocks of a document have the same number: both are kept, and links mean the first. */
export function duplicateNumber(path: string, line: number, message: string): Diagnostic {
  return { severity: "warning", rule: "structure", code: "number_duplicate", message, path, line };
}

/** A document that says something, and nothing of it is what such a document is for. */
export function nothingFound(scan: MarkdownScan, path: string, what: string): Diagnostic[] {
  if (scan.text.trim() === "") return [];
  return [
    {
      severity: "warning",
      rule: "structure",
      code: `no_${what}`,
      message: `No ${what} was found in this file.`,
      path,
      line: 1,
    },
  ];
}
