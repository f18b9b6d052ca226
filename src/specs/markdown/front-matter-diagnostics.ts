import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { FrontMatterProblem } from "./front-matter-problem.ts";

/** Front matter as it was spelled, for writing it back: line ends are LF; "" where it says nothing. */
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
