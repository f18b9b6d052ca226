import { version } from "../../base/own-package.ts";
import type { Diagnostic, DiagnosticRule } from "../../protocol/diagnostic.ts";
import { diagnosticRules } from "../../protocol/enums.ts";
import { outputFormat, wholeNumber } from "../choices.ts";
import { type CommandOption, type ExitCode, type OptionValues, option } from "../command.ts";
import { pad, safeLine, safeLines, wrap } from "../text/safe-text.ts";
import type { Output } from "./output.ts";
import { count, formatLocation } from "./table.ts";

export const diagnosticFormats = ["text", "json", "sarif", "github"] as const;
export type DiagnosticFormat = (typeof diagnosticFormats)[number];

export interface DiagnosticReport {
  readonly diagnostics: readonly Diagnostic[];
  /** The value that `json` prints: the route's body where there is a route. */
  readonly body: unknown;
  /** The subject of the check: "42 specs". */
  readonly subject: string;
}

/** Prints the diagnostics in the chosen format, and their number on stderr. */
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

/** `path:line:column: severity: message [rule]`, as compilers write it and editors read it. */
function toLine({ path, line, column, severity, message, rule }: Diagnostic): string {
  return `${safeLine(formatLocation(path, line, column))}: ${severity}: ${safeLine(message)} [${rule}]`;
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

/**
 * A diagnostic as a workflow command of GitHub Actions, which shows it beside the line in a review.
 *
 * Escapes as the runner's own toolkit does (actions/toolkit, `command.ts`).
 */
export function toGithubAnnotation({ severity, rule, ...rest }: Diagnostic): string {
  return toGithubCommand(severity, { ...rest, title: rule });
}

/** The same for any message, mostly about a file. */
export function toGithubCommand(
  level: "error" | "warning" | "notice",
  remark: {
    readonly path?: string | undefined;
    readonly line?: number | undefined;
    readonly column?: number | undefined;
    readonly end_column?: number | undefined;
    readonly title: string;
    readonly message: string;
  },
): string {
  const properties = [
    ...(remark.path === undefined ? [] : [`file=${escapeProperty(safeLine(remark.path))}`]),
    ...(remark.line === undefined ? [] : [`line=${remark.line}`]),
    ...(remark.column === undefined ? [] : [`col=${remark.column}`]),
    // The runner's last column is the last one of the range.
    ...(remark.end_column === undefined ? [] : [`endColumn=${remark.end_column - 1}`]),
    `title=${escapeProperty(safeLine(remark.title))}`,
  ];
  return `::${level} ${properties.join(",")}::${escapeData(safeLines(remark.message))}`;
}

export const remarkFormats = ["text", "github"] as const;

/** The option of commands that can annotate a change in GitHub Actions. */
export const remarkFormat: CommandOption<(typeof remarkFormats)[number]> = option(
  "--format <format>",
  "Text (default) or github (annotations in GitHub Actions)",
  outputFormat(remarkFormats),
);

function escapeData(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}

/**
 * Diagnostics as a SARIF 2.1.0 log (OASIS, "Static Analysis Results Interchange Format"), as code
 * scanning services read it. Paths are relative to the root of the repository, percent-encoded.
 */
function toSarif(diagnostics: readonly Diagnostic[]): object {
  const rules = diagnosticRules.filter((rule) => diagnostics.some((diagnostic) => diagnostic.rule === rule));
  return {
    $schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: {
          driver: {
            name: "kit",
            version,
            rules: rules.map((id) => ({ id, shortDescription: { text: ruleDescriptions[id] } })),
          },
        },
        columnKind: "utf16CodeUnits",
        results: diagnostics.map((diagnostic) => ({
          ruleId: diagnostic.rule,
          ruleIndex: rules.indexOf(diagnostic.rule),
          level: diagnostic.severity,
          message: { text: diagnostic.message },
          locations: [
            {
              physicalLocation: {
                artifactLocation: toArtifact(diagnostic.path),
                region: regionOf(diagnostic),
              },
            },
          ],
          ...toRelated(diagnostic),
          ...toFixes(diagnostic),
          ...toProperties(diagnostic),
        })),
      },
    ],
  };
}

function toArtifact(path: string): object {
  const uri = path.toWellFormed().split("/").map(encodeURIComponent).join("/");
  return { uri, uriBaseId: "%SRCROOT%" };
}

function regionOf({ line = 1, column, end_column }: Diagnostic): object {
  return { startLine: line, ...(column !== undefined && { startColumn: column, endColumn: end_column }) };
}

function toRelated({ other }: Diagnostic): object {
  if (other === undefined) return {};
  const { path, line = 1 } = other;
  const physicalLocation = { artifactLocation: toArtifact(path), region: { startLine: line } };
  return { relatedLocations: [{ id: 0, physicalLocation }] };
}

function toFixes(diagnostic: Diagnostic): object {
  const { fix, path } = diagnostic;
  if (fix === undefined) return {};
  const replacements = [{ deletedRegion: regionOf(diagnostic), insertedContent: { text: fix.text } }];
  return { fixes: [{ artifactChanges: [{ artifactLocation: toArtifact(path), replacements }] }] };
}

function toProperties({ code, id, field }: Diagnostic): object {
  if (code === undefined && id === undefined && field === undefined) return {};
  return {
    properties: {
      code,
      id,
      field,
    },
  };
}

const ruleDescriptions: Readonly<Record<DiagnosticRule, string>> = {
  "required-field": "A required field is missing or empty.",
  enum: "A field has a value that is not allowed.",
  timestamp: "A date is not a full ISO 8601 date or date-time.",
  "summary-length": "A summary is longer than 500 characters.",
  "duplicate-id": "Two blocks declare the same id.",
  "unreadable-file": "A file cannot be read.",
  encoding: "A file is not valid UTF-8.",
  "front-matter": "Front matter cannot be parsed.",
  structure: "A document lacks the structure of its format.",
  "dangling-reference": "A reference names something that is not there.",
  "glob-no-match": "A glob matches no file of the project.",
  "duplicate-guideline": "Two sources have the same text.",
  drift: "Two copies of a text differ in a few lines.",
  contradiction: "Two rules for the same files contradict each other.",
  shadowed: "A rule never applies because another one takes its place.",
  import: "An import cannot be followed.",
  limit: "A file exceeds a limit and was read in part.",
  "skill-format": "A skill breaks a rule of the Agent Skills format.",
};

type DiagnosticOptions = {
  readonly format: CommandOption<DiagnosticFormat>;
  readonly maxWarnings: CommandOption<number>;
};

/** The options of every command that reports diagnostics. */
export const diagnosticOptions: DiagnosticOptions = {
  format: option(
    "--format <format>",
    "Text (default), json, sarif (for code scanning) or github (annotations in GitHub Actions)",
    outputFormat(diagnosticFormats),
  ),
  maxWarnings: option(
    "--max-warnings <number>",
    "Fail when there are more warnings than this",
    wholeNumber(0, 999_999),
  ),
};

/** 1 when there is an error, or more warnings than are allowed. */
export function exitCodeOf(
  diagnostics: readonly Diagnostic[],
  { maxWarnings = Number.POSITIVE_INFINITY }: OptionValues<DiagnosticOptions>,
): ExitCode {
  const errors = countErrors(diagnostics);
  return errors > 0 || diagnostics.length - errors > maxWarnings ? 1 : 0;
}
