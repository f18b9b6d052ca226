import { sourceLabel } from "../choices.ts";
import { type Command, defineCommand } from "../command.ts";
import { findGuideline } from "../find-record.ts";
import { printFields } from "../render/print-fields.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const guidelinesShow: Command = defineCommand({
  arguments: [{ usage: "<id>", description: "The id of a guideline, or enough of its beginning" }],
  options: {},
  examples: ["kit guidelines show 3f2a9c1e5b7d8046"],
  run: ({ args: [id = ""] }, context) =>
    withProject(context, async ({ project }) => {
      const { output } = context;
      const guideline = findGuideline(project, id);
      if (context.json) {
        output.json(guideline);
        return 0;
      }
      output.line(output.style("bold", safeLine(guideline.title)));
      printFields(output, [
        ["id", guideline.id],
        ["where", guideline.source_file],
        ["also", guideline.aliases],
        ["source", sourceLabel(guideline.source_type)],
        ["applies to", guideline.file_pattern],
        ["tags", guideline.tags.join(", ")],
      ]);
      output.line();
      output.line(safeLines(guideline.content).trimEnd());
      return 0;
    }),
});
