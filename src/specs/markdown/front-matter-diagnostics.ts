import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { FrontMatterProblem } from "./front-matter-problem.ts";

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
