import { type Command, defineCommand } from "../command.ts";
import { diagnosticOptions, exitCodeOf } from "../diagnostic-options.ts";
import { toProjectPath } from "../find-root.ts";
import { count } from "../render/places.ts";
import { countErrors, printDiagnostics } from "../render/print-diagnostics.ts";
import { withProject } from "../with-project.ts";

export const specsValidate: Command = defineCommand({
  arguments: [{ usage: "[paths...]", description: "Only what concerns these files and folders" }],
  options: diagnosticOptions,
  examples: [
    "kit specs validate",
    "kit specs validate .kiro/specs/checkout",
    "kit specs validate --format sarif > specs.sarif",
    "kit specs validate --format github --max-warnings 0",
  ],
  details: "Ends with 1 when there is an error.",
  run: ({ args, options }, context) =>
    withProject(context, async ({ project }) => {
      const paths = args.map((path) => toProjectPath(path, context));
      const isMeant = (path: string): boolean =>
        paths.length === 0 ||
        paths.some((meant) => meant === "" || path === meant || path.startsWith(`${meant}/`));
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
