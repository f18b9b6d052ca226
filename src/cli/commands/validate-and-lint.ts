import { ignoreEntryFor } from "../../guidelines/lint/ignore-findings.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { type Command, defineCommand, flag } from "../command.ts";
import { toProjectPath } from "../find-root.ts";
import {
  countErrors,
  type DiagnosticFormat,
  diagnosticOptions,
  exitCodeOf,
  printDiagnostics,
} from "../print/diagnostics.ts";
import type { Output } from "../print/output.ts";
import { count, formatLocation } from "../print/table.ts";
import { safeLine } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const specsValidate: Command = defineCommand({
  arguments: [{ usage: "[paths...]", description: "Only problems of these files and folders" }],
  options: diagnosticOptions,
  examples: [
    "kit specs validate",
    "kit specs validate .kiro/specs/checkout",
    "kit specs validate --format sarif > specs.sarif",
    "kit specs validate --format github --max-warnings 0",
  ],
  details: "Exits with 1 if there is an error.",
  run: ({ args, options }, context) =>
    withProject(context, async ({ project }) => {
      const paths = args.map((path) => toProjectPath(path, context));
      const isMeant = (path: string): boolean =>
        paths.length === 0 ||
        paths.some((selected) => selected === "" || path === selected || path.startsWith(`${selected}/`));
      const diagnostics = project.specs.diagnostics().filter((diagnostic) => isMeant(diagnostic.path));
      const format = options.format ?? (context.json ? "json" : "text");
      const body = { valid: countErrors(diagnostics) === 0, diagnostics };
      printDiagnostics(
        context.output,
        { diagnostics, body, subject: count(project.specs.query({ limit: 1 }).total_count, "spec") },
        format,
      );
      return exitCodeOf(diagnostics, options);
    }),
});

export const guidelinesLint: Command = defineCommand({
  options: {
    ...diagnosticOptions,
    fix: flag("--fix", "Write the corrections that findings suggest into the files"),
  },
  examples: [
    "kit guidelines lint",
    "kit guidelines lint --fix",
    "kit guidelines lint --format github --max-warnings 0",
  ],
  details:
    "Finds copies that differ, rules that contradict each other, globs and links that lead to no file, rules without effect, and files that cannot be read. Exits with 1 if there is an error. The configuration can leave findings out: lint.ignore.",
  run: ({ options }, context) =>
    withProject(context, async ({ project }) => {
      const { output } = context;
      const { fixed } = options.fix === true ? await project.guidelines.fix() : { fixed: [] };
      const diagnostics = [...project.guidelines.diagnostics(), ...project.guidelines.lint()];
      const body = {
        valid: countErrors(diagnostics) === 0,
        diagnostics,
        ...(options.fix === true && { fixed }),
      };
      const format = options.format ?? (context.json ? "json" : "text");
      for (const { path, line, column, fix } of fixed)
        output.note(
          `${output.noteStyle("green", "fixed:")} ${safeLine(`${formatLocation(path, line, column)}: now ${fix?.text ?? ""}`)}`,
        );
      printDiagnostics(
        output,
        { diagnostics, body, subject: count(project.guidelines.list({ limit: 1 }).total_count, "guideline") },
        format,
      );
      noteRemedies(output, diagnostics, format);
      return exitCodeOf(diagnostics, options);
    }),
});

/** Names the two answers to findings: kit mends them, or the configuration leaves them out. */
function noteRemedies(output: Output, diagnostics: readonly Diagnostic[], format: DiagnosticFormat): void {
  const [first] = diagnostics.filter(({ severity }) => severity === "warning");
  if (first === undefined || (format !== "text" && format !== "github")) return;
  const fixable = diagnostics.filter(({ fix }) => fix !== undefined).length;
  if (fixable > 0)
    output.note(`--fix mends ${fixable === diagnostics.length ? "all of them" : `${fixable} of them`}.`);
  const entry = JSON.stringify(ignoreEntryFor(first));
  output.note(
    safeLine(`To ignore findings, list paths, rules or both in kit.toml: [lint] ignore = [${entry}]`),
  );
}
