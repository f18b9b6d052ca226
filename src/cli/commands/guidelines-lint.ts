import { type Command, defineCommand } from "../command.ts";
import { diagnosticOptions, exitCodeOf } from "../diagnostic-options.ts";
import { count } from "../render/places.ts";
import { countErrors, printDiagnostics } from "../render/print-diagnostics.ts";
import { withProject } from "../with-project.ts";

export const guidelinesLint: Command = defineCommand({
  options: diagnosticOptions,
  examples: ["kit guidelines lint", "kit guidelines lint --format github --max-warnings 0"],
  details:
    "Finds the same rule in two sources, one heading with two meanings, globs that match no file, rules that never apply, and files that cannot be read. Ends with 1 when there is an error.",
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
