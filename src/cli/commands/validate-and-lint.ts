import { type Command, defineCommand } from "../command.ts";
import { toProjectPath } from "../find-root.ts";
import { countErrors, diagnosticOptions, exitCodeOf, printDiagnostics } from "../print/diagnostics.ts";
import { count } from "../print/table.ts";
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
  options: diagnosticOptions,
  examples: ["kit guidelines lint", "kit guidelines lint --format github --max-warnings 0"],
  details:
    "Finds the same rule in two sources, one heading with two meanings, globs that match no file, rules that never apply, and files that cannot be read. Exits with 1 if there is an error.",
  run: ({ options }, context) =>
    withProject(context, async ({ project }) => {
      const diagnostics = [...project.guidelines.diagnostics(), ...project.guidelines.lint()];
      const body = { valid: countErrors(diagnostics) === 0, diagnostics };
      const format = options.format ?? (context.json ? "json" : "text");
      printDiagnostics(
        context.output,
        { diagnostics, body, subject: count(project.guidelines.list({ limit: 1 }).total_count, "guideline") },
        format,
      );
      return exitCodeOf(diagnostics, options);
    }),
});
