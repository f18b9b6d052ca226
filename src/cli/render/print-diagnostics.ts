import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { toGithubAnnotation } from "../format/github-annotations.ts";
import { toSarif } from "../format/sarif.ts";
import type { Output } from "../output.ts";
import { pad } from "../text/display-width.ts";
import { safeLine } from "../text/safe-text.ts";
import { wrap } from "../text/wrap.ts";
import { count, place } from "./places.ts";

export const diagnosticFormats = ["text", "json", "sarif", "github"] as const;
export type DiagnosticFormat = (typeof diagnosticFormats)[number];

export interface DiagnosticReport {
  readonly diagnostics: readonly Diagnostic[];
  /** What `json` prints: the body of the route where there is one. */
  readonly body: unknown;
  /** What was looked at: "42 specs". */
  readonly subject: string;
}

/** Prints what was found, in the wanted format, and how much of it on stderr. */
export function printDiagnostics(output: Output, report: DiagnosticReport, format: DiagnosticFormat): void {
  const { diagnostics, body } = report;
  switch (format) {
    case "json":
      output.json(body);
      return;
    case "sarif":
      output.json(toSarif(diagnostics));
      return;
    case "github":
      for (const diagnostic of diagnostics) output.line(toGithubAnnotation(diagnostic));
      break;
    case "text":
      if (output.isTerminal) printByFile(output, diagnostics);
      else for (const diagnostic of diagnostics) output.line(toLine(diagnostic));
      break;
  }
  output.note(summarize(output, report));
}

/** `path:line: severity: message [rule]`, as compilers write it and editors read it. */
function toLine({ path, line, severity, message, rule }: Diagnostic): string {
  return `${safeLine(place(path, line))}: ${severity}: ${safeLine(message)} [${rule}]`;
}

function printByFile(output: Output, diagnostics: readonly Diagnostic[]): void {
  const lineWidth = diagnostics.reduce((most, { line = 0 }) => Math.max(most, String(line).length), 1);
  let path: string | undefined;
  for (const diagnostic of diagnostics) {
    if (diagnostic.path !== path) {
      if (path !== undefined) output.line();
      path = diagnostic.path;
      output.line(output.style("underline", safeLine(path)));
    }
    const line = pad(diagnostic.line === undefined ? "" : String(diagnostic.line), lineWidth, "right");
    const color = diagnostic.severity === "error" ? "red" : "yellow";
    const severity = output.style(color, diagnostic.severity.padEnd(7));
    const message = toMessage(output, diagnostic, lineWidth + severityWidth);
    output.line(`  ${output.style("dim", line)}  ${severity}  ${message}`);
  }
  if (path !== undefined) output.line();
}

/** Blanks around the line and the severity, and the severity itself. */
const severityWidth = 13;

/** The message with its rule behind it, wrapped below itself. */
function toMessage(output: Output, { message, rule }: Diagnostic, indent: number): string {
  const lines = wrap(`${safeLine(message)} [${rule}]`, Math.max(30, output.width - indent));
  const text = lines.join(`\n${" ".repeat(indent)}`);
  return text.slice(0, -rule.length - 2) + output.style("dim", `[${rule}]`);
}

function summarize(output: Output, { diagnostics, subject }: DiagnosticReport): string {
  const errors = countErrors(diagnostics);
  const warnings = diagnostics.length - errors;
  if (diagnostics.length === 0) return `${output.noteStyle("green", "✓")} No problems in ${subject}.`;
  const sign = errors > 0 ? output.noteStyle("red", "✗") : output.noteStyle("yellow", "!");
  return `${sign} ${count(errors, "error")}, ${count(warnings, "warning")} in ${subject}.`;
}

export function countErrors(diagnostics: readonly Diagnostic[]): number {
  return diagnostics.filter((diagnostic) => diagnostic.severity === "error").length;
}
