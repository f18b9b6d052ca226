import { z } from "zod";
import { conversionNames, parseConversionFormat, parseExportFormat } from "../choices.ts";
import { type Command, defineCommand, flag, option } from "../command.ts";
import { findGuideline } from "../find-record.ts";
import { noteLosses, printDocument } from "../print/table.ts";
import { readPreview } from "../read-preview.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

const planSchema = z.object({ change: z.object({ digest: z.string() }) });

export const guidelinesConvert: Command = defineCommand({
  arguments: [{ usage: "<id>", description: "The id of a guideline, or the beginning of one" }],
  options: {
    to: option("-t, --to <name>", `The format to convert to: ${conversionNames}`, parseConversionFormat),
    write: flag("-w, --write", "Write the result into the project instead of printing it"),
    plan: option(
      "--plan <file>",
      "With --write: the output of an earlier --json; writes nothing if the result would differ from it",
      String,
    ),
    overwrite: flag("--overwrite", "Replace a steering file that has other content"),
  },
  examples: [
    "kit guidelines convert 3f2a9c1e5b7d8046 --to steering",
    "kit guidelines convert 3f2a9c1e5b7d8046 --to claude --write",
  ],
  details:
    "Prints the result; with --write, a steering file goes to .kiro/steering, and a section into CLAUDE.md or .cursorrules, whose other text stays unchanged.",
  run: ({ args: [id = ""], options }, context) =>
    withProject(context, async ({ project }) => {
      const { output } = context;
      const { to: format, plan, write = false, overwrite = false } = options;
      if (format === undefined) throw usageError("--to is missing.", `It is one of ${conversionNames}.`);
      if (plan !== undefined && !write) throw usageError("--plan needs --write.");
      const expected =
        plan === undefined
          ? undefined
          : readPreview(planSchema, { file: plan, cwd: context.cwd }).change.digest;
      const { id: guideline_id } = findGuideline(project, id);
      const result = await project.guidelines.convert({
        guideline_id,
        format,
        preview: !write,
        overwrite,
        expected,
      });
      if (context.json) {
        output.json(result);
        return 0;
      }
      if (result.written_to === undefined) printDocument(output, result.content);
      else output.line(`Written to ${safeLine(result.written_to)}.`);
      noteLosses(output, result.losses);
    }),
});

export const guidelinesExport: Command = defineCommand({
  options: {
    to: option("-t, --to <name>", "The format to export to: claude or cursor", parseExportFormat),
  },
  examples: ["kit guidelines export --to claude", "kit guidelines export --to cursor > all.cursorrules"],
  details:
    "Prints one file with every guideline of the project; 'kit guidelines sync' keeps such files up to date.",
  run: ({ options: { to: format } }, context) =>
    withProject(context, async ({ project }) => {
      if (format === undefined) throw usageError("--to is missing.", "It is one of claude, cursor.");
      const result = project.guidelines.export({ format });
      if (context.json) context.output.json(result);
      else printDocument(context.output, result.content);
    }),
});
