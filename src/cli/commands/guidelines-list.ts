import type { Guideline, GuidelineList } from "../../protocol/guideline.ts";
import type { GuidelineQuery } from "../../protocol/guideline-query.ts";
import { parseSource, sourceLabel } from "../choices.ts";
import { type Command, defineCommand, option } from "../command.ts";
import { toProjectPath } from "../find-root.ts";
import type { Output } from "../output.ts";
import { noteAliases } from "../render/note-aliases.ts";
import { count } from "../render/places.ts";
import { type Column, printTable } from "../table.ts";
import { asText, wholeNumber } from "../values.ts";
import { withProject } from "../with-project.ts";

export const guidelinesList: Command = defineCommand({
  options: {
    source: option(
      "-s, --source <name>",
      "Only from claude, cursor, steering, agents, copilot, gemini, windsurf, cline, zed or sample",
      parseSource,
    ),
    file: option("--file <path>", "Only what applies to this file; it need not exist", asText),
    search: option("-q, --search <words>", "Only with all of these words in title or content", asText),
    limit: option("-n, --limit <number>", "At most so many (default: all)", wholeNumber(1, 1000)),
    cursor: option("--cursor <cursor>", "Start at the next_cursor of an earlier --json", asText),
  },
  examples: [
    "kit guidelines list",
    "kit guidelines list --source claude",
    'kit guidelines list --file src/app.ts --search "error handling" --json',
  ],
  run: ({ options }, context) =>
    withProject(context, async ({ project }) => {
      const { source, file, search, limit, cursor } = options;
      const query: GuidelineQuery = {
        ...(source === undefined ? {} : { source }),
        ...(file === undefined ? {} : { file: toProjectPath(file, context) }),
        ...(search === undefined ? {} : { q: search }),
        ...(limit === undefined ? {} : { limit }),
        ...(cursor === undefined ? {} : { cursor }),
      };
      const list = project.guidelines.list(query);
      if (context.json) context.output.json(list);
      else printList(context.output, list);
      return 0;
    }),
});

const columns: readonly Column<Guideline>[] = [
  { header: "ID", value: (guideline) => guideline.id, style: () => "cyan", cut: "end", isId: true },
  { header: "SOURCE", value: (guideline) => sourceLabel(guideline.source_type) },
  { header: "TITLE", value: (guideline) => guideline.title, cut: "end" },
  { header: "APPLIES TO", value: (guideline) => guideline.file_pattern ?? "", cut: "end" },
  { header: "WHERE", value: (guideline) => guideline.source_file, style: () => "dim", cut: "middle" },
];

function printList(output: Output, list: GuidelineList): void {
  const { guidelines, total_count, next_cursor } = list;
  if (total_count === 0) {
    output.note("No guideline matches.");
    return;
  }
  printTable(output, guidelines, columns);
  if (guidelines.some((guideline) => guideline.is_sample)) {
    output.note(
      "These are samples: this project has no guideline of its own (CLAUDE.md, AGENTS.md, .cursorrules, …).",
    );
  } else {
    const all = count(total_count, "guideline");
    const shown = next_cursor === undefined ? all : `${guidelines.length.toLocaleString("en")} of ${all}`;
    output.note(output.noteStyle("dim", `${shown}.`));
    noteAliases(output, guidelines);
  }
}
