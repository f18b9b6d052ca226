import type { AppliedGuideline, Explanation, ShadowedGuideline } from "../../protocol/guideline-query.ts";
import { parseTool, sourceLabel, toolLabel } from "../choices.ts";
import { type Command, defineCommand, option } from "../command.ts";
import { toProjectPath } from "../find-root.ts";
import type { Output } from "../output.ts";
import { place } from "../render/places.ts";
import { usageError } from "../report-error.ts";
import { type Column, printTable } from "../table.ts";
import { safeLine } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const guidelinesExplain: Command = defineCommand({
  arguments: [{ usage: "<file>", description: "A file of the project; it need not exist" }],
  options: {
    tool: option(
      "--tool <name>",
      "As this tool reads them: kiro, cursor, claude, agents, agents-nearest or agents-all",
      parseTool,
    ),
  },
  examples: ["kit guidelines explain src/app.ts", "kit guidelines explain src/app.ts --tool claude"],
  details:
    "Lists what applies in the order in which it is read, why it applies, and what is shadowed by what.",
  run: ({ args: [file = ""], options }, context) =>
    withProject(context, async ({ project }) => {
      const path = toProjectPath(file, context);
      if (path === "") throw usageError(`${file} is the folder of the project; guidelines apply to files.`);
      const explanation = project.guidelines.explain(path, options.tool);
      if (context.json) context.output.json(explanation);
      else printExplanation(context.output, explanation);
      return 0;
    }),
});

const columns: readonly Column<AppliedGuideline>[] = [
  { header: "ID", value: ({ guideline }) => guideline.id, style: () => "cyan", cut: "end", isId: true },
  { header: "SOURCE", value: ({ guideline }) => sourceLabel(guideline.source_type) },
  { header: "TITLE", value: ({ guideline }) => guideline.title, cut: "end" },
  { header: "WHY", value: reasonOf, cut: "end" },
  {
    header: "WHERE",
    value: ({ guideline, line }) => place(guideline.source_file, line),
    style: () => "dim",
    cut: "start",
  },
];

const shadowedColumns: readonly Column<ShadowedGuideline>[] = [
  ...columns.filter((column) => column.header !== "WHY"),
  { header: "SHADOWED BY", value: ({ shadowed_by, rule }) => `${shadowed_by}: ${rule}`, cut: "end" },
];

function printExplanation(output: Output, { file, tool, applied, shadowed }: Explanation): void {
  const reader = tool === undefined ? "" : `, as ${toolLabel(tool)} reads it`;
  if (output.isTerminal) output.line(output.style("bold", `${safeLine(file)}${reader}`));
  if (applied.length === 0) output.note(`No guideline applies to ${safeLine(file)}${reader}.`);
  printTable(output, applied, columns);
  if (shadowed.length === 0) return;
  if (output.isTerminal) {
    output.line();
    output.line(output.style("bold", "Shadowed"));
  }
  printTable(output, shadowed, shadowedColumns);
}

const reasons: Readonly<Record<AppliedGuideline["reason"], string>> = {
  always: "always",
  pattern: "matches",
  nested: "in this folder",
  import: "imported by",
  manual: "only when asked for",
  auto: "when the agent finds it relevant",
};

function reasonOf({ reason, detail }: AppliedGuideline): string {
  return detail === undefined ? reasons[reason] : `${reasons[reason]} ${detail}`;
}
