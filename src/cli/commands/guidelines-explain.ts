import type { AppliedGuideline, Explanation, ShadowedGuideline } from "../../protocol/guideline-query.ts";
import { parseTool, toolLabel } from "../choices.ts";
import { type Command, defineCommand, flag, option } from "../command.ts";
import { toProjectPath } from "../find-root.ts";
import type { Output } from "../output.ts";
import { noteAliases } from "../render/note-aliases.ts";
import { count, place } from "../render/places.ts";
import { usageError } from "../report-error.ts";
import { type Column, printTable } from "../table.ts";
import { safeLine } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const guidelinesExplain: Command = defineCommand({
  arguments: [{ usage: "<file>", description: "A file of the project; it need not exist" }],
  options: {
    tool: option(
      "--tool <name>",
      "As this tool reads them: kiro, cursor, claude, codex, copilot, gemini, windsurf, cline, zed, agents, agents-nearest or agents-all",
      parseTool,
    ),
    user: flag("--user", "Also your own files in your home folder, such as ~/.claude/CLAUDE.md"),
  },
  examples: [
    "kit guidelines explain src/app.ts",
    "kit guidelines explain src/app.ts --tool claude",
    "kit guidelines explain src/app.ts --tool codex --user",
  ],
  details:
    "Lists what applies in the order in which it is read, why it applies, about how many tokens it costs, and what is shadowed by what.",
  run: ({ args: [file = ""], options }, context) =>
    withProject(context, async ({ project }) => {
      const path = toProjectPath(file, context);
      if (path === "") throw usageError(`${file} is the folder of the project; guidelines apply to files.`);
      const explanation = project.guidelines.explain(path, options.tool, {
        user: options.user === true,
      });
      if (context.json) context.output.json(explanation);
      else printExplanation(context.output, explanation);
      return 0;
    }),
});

const columns: readonly Column<AppliedGuideline>[] = [
  { header: "ID", value: ({ guideline }) => guideline.id, style: () => "cyan", cut: "end", isId: true },
  { header: "TITLE", value: ({ guideline }) => guideline.title, cut: "end" },
  { header: "WHY", value: reasonOf, cut: "end" },
  { header: "TOKENS", value: ({ tokens }) => String(tokens), align: "right" },
  {
    header: "WHERE",
    value: ({ guideline, line }) => place(guideline.source_file, line),
    style: () => "dim",
    cut: "middle",
  },
];

const shadowedColumns: readonly Column<ShadowedGuideline>[] = [
  ...columns.filter(({ header }) => header !== "WHY" && header !== "TOKENS"),
  { header: "SHADOWED BY", value: ({ shadowed_by, rule }) => `${shadowed_by}: ${rule}`, cut: "end" },
];

function printExplanation(output: Output, explanation: Explanation): void {
  const { file, tool, applied, shadowed, tokens, notes = [] } = explanation;
  const reader = tool === undefined ? "" : `, as ${toolLabel(tool)} reads it`;
  if (output.isTerminal) output.line(output.style("bold", `${safeLine(file)}${reader}`));
  if (applied.length === 0) output.note(`No guideline applies to ${safeLine(file)}${reader}.`);
  printTable(output, applied, columns);
  const asked = applied.filter(({ reason }) => reason === "manual" || reason === "auto").length;
  const onRequest = asked === 0 ? "" : `, without the ${count(asked, "guideline")} on request`;
  if (applied.length > 0)
    output.note(output.noteStyle("dim", `About ${count(tokens, "token")}${onRequest}.`));
  noteAliases(
    output,
    applied.map(({ guideline }) => guideline),
  );
  for (const note of notes) output.note(`${output.noteStyle("yellow", "note:")} ${safeLine(note)}`);
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

function reasonOf({ reason, detail, via }: AppliedGuideline): string {
  const why = detail === undefined ? reasons[reason] : `${reasons[reason]} ${detail}`;
  return via === undefined ? why : `${why}, as ${via}`;
}
