import { parseExportFormat } from "../choices.ts";
import { type Command, defineCommand, option } from "../command.ts";
import { printDocument } from "../render/print-document.ts";
import { usageError } from "../report-error.ts";
import { withProject } from "../with-project.ts";

export const guidelinesExport: Command = defineCommand({
  options: {
    format: option("-f, --format <name>", "Claude or cursor", parseExportFormat),
  },
  examples: [
    "kit guidelines export --format claude",
    "kit guidelines export --format cursor > all.cursorrules",
  ],
  details:
    "Prints one file with every guideline of the project; 'kit guidelines sync' keeps such files up to date.",
  run: ({ options: { format } }, context) =>
    withProject(context, async ({ project }) => {
      if (format === undefined) throw usageError("--format is missing.", "It is one of claude, cursor.");
      const result = project.guidelines.export({ format });
      if (context.json) context.output.json(result);
      else printDocument(context.output, result.content);
      return 0;
    }),
});
