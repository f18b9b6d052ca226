import type { Guideline, GuidelineList } from "../../protocol/guideline.ts";
import type {
  AppliedGuideline,
  Explanation,
  GuidelineQuery,
  ShadowedGuideline,
} from "../../protocol/guideline-query.ts";
import { asText, parseSource, parseTool, sourceLabel, toolLabel, wholeNumber } from "../choices.ts";
import { type Command, defineCommand, flag, option } from "../command.ts";
import { findGuideline } from "../find-record.ts";
import { toProjectPath } from "../find-root.ts";
import type { Output } from "../print/output.ts";
import { type Column, count, formatLocation, placeColumn, printFields, printTable } from "../print/table.ts";
import { usageError } from "../report-error.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const guidelinesList: Command = defineCommand({
  options: {
    source: option(
      "-s, --source <name>",
      "Only guidelines of this format: claude, cursor, steering, agents, copilot, gemini, windsurf, cline, zed or sample",
      parseSource,
    ),
    file: option("--file <path>", "Only guidelines that apply to this file; it need not exist", asText),
    search: option(
      "-q, --search <words>",
      "Only guidelines that have all of these words in their title or content",
      asText,
    ),
    limit: option("-n, --limit <number>", "The most to list (default: all)", wholeNumber(1, 1000)),
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
        source,
        ...(file === undefined ? {} : { file: toProjectPath(file, context) }),
        ...(search === undefined ? {} : { q: search }),
        ...(limit === undefined ? {} : { limit }),
        ...(cursor === undefined ? {} : { cursor }),
      };
      const list = project.guidelines.list(query);
      if (context.json) context.output.json(list);
      else printList(context.output, list);
    }),
});

export const guidelinesShow: Command = defineCommand({
  arguments: [{ usage: "<id>", description: "The id of a guideline, or the beginning of one" }],
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
    }),
});

export const guidelinesExplain: Command = defineCommand({
  arguments: [{ usage: "<file>", description: "A file of the project; it need not exist" }],
  options: {
    tool: option(
      "--tool <name>",
      "As this tool would read them: kiro, cursor, claude, codex, copilot, gemini, windsurf, cline, zed, agents, agents-nearest or agents-all",
      parseTool,
    ),
    user: flag("--user", "Include the instruction files of your home folder, such as ~/.claude/CLAUDE.md"),
  },
  examples: [
    "kit guidelines explain src/app.ts",
    "kit guidelines explain src/app.ts --tool claude",
    "kit guidelines explain src/app.ts --tool codex --user",
  ],
  details:
    "Lists the guidelines that apply, in the order in which the tool reads them, with the reason and the approximate number of tokens, and the guidelines that others shadow.",
  run: ({ args: [file = ""], options }, context) =>
    withProject(context, async ({ project }) => {
      const path = toProjectPath(file, context);
      if (path === "") throw usageError(`${file} is the folder of the project; guidelines apply to files.`);
      const explanation = project.guidelines.explain(path, options.tool, {
        user: options.user === true,
      });
      if (context.json) context.output.json(explanation);
      else printExplanation(context.output, explanation);
    }),
});

/** Commands take the beginning of an id; so many digits of it name one guideline, as in Git. */
const shortId = 8;

const columns: readonly Column<Guideline>[] = [
  { header: "ID", value: ({ id }) => id, forPeople: ({ id }) => id.slice(0, shortId), style: () => "cyan" },
  { header: "SOURCE", value: (guideline) => sourceLabel(guideline.source_type) },
  {
    header: "TITLE",
    value: (guideline) => guideline.title,
    forPeople: ({ title, is_ignored }) => (is_ignored ? `${title} (not in Git)` : title),
    wraps: true,
  },
  { header: "APPLIES TO", value: (guideline) => guideline.file_pattern ?? "", wraps: true },
  placeColumn(({ source_file }) => ({ path: source_file })),
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
    const countText = next_cursor === undefined ? all : `${guidelines.length.toLocaleString("en")} of ${all}`;
    output.note(output.noteStyle("dim", `${countText}.`));
    noteAliases(output, guidelines);
  }
}

const appliedColumns: readonly Column<AppliedGuideline>[] = [
  // A person finds a rule by its file and line.
  { header: "ID", value: ({ guideline }) => guideline.id, forPeople: () => "" },
  { header: "TITLE", value: ({ guideline }) => guideline.title, wraps: true },
  { header: "WHY", value: reasonOf, wraps: true },
  { header: "TOKENS", value: ({ tokens }) => String(tokens), align: "right" },
  {
    ...placeColumn(({ guideline, line }: AppliedGuideline) => ({ path: guideline.source_file, line })),
    inOrder: true,
  },
];

function shadowedColumns(applied: readonly AppliedGuideline[]): readonly Column<ShadowedGuideline>[] {
  /** The place of the replacement, which is named by its id or its file. */
  const placeText = (shadowedBy: string): string => {
    const replacement = applied.find(({ guideline }) => guideline.id === shadowedBy);
    return replacement ? formatLocation(replacement.guideline.source_file, replacement.line) : shadowedBy;
  };
  return [
    ...appliedColumns.filter(({ header }) => header !== "WHY" && header !== "TOKENS"),
    {
      header: "SHADOWED BY",
      value: ({ shadowed_by, rule }) => `${shadowed_by}: ${rule}`,
      forPeople: ({ shadowed_by, rule }) => `${placeText(shadowed_by)}: ${rule}`,
      wraps: true,
    },
  ];
}

function printExplanation(output: Output, explanation: Explanation): void {
  const { file, tool, applied, shadowed, tokens, notes = [] } = explanation;
  const reader = tool === undefined ? "" : `, as ${toolLabel(tool)} reads it`;
  if (output.isTerminal) output.line(output.style("bold", `${safeLine(file)}${reader}`));
  if (applied.length === 0) output.note(`No guideline applies to ${safeLine(file)}${reader}.`);
  printTable(output, applied, appliedColumns);
  const onRequestCount = applied.filter(({ reason }) => reason === "manual" || reason === "auto").length;
  const onRequest =
    onRequestCount === 0 ? "" : `, without the ${count(onRequestCount, "guideline")} on request`;
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
  printTable(output, shadowed, shadowedColumns(applied));
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

/** Prints the other names of guideline files, once per file. */
function noteAliases(output: Output, guidelines: readonly Guideline[]): void {
  const files = new Map(guidelines.map(({ source_file, aliases = [] }) => [source_file, aliases]));
  for (const [file, aliases] of files) {
    if (aliases.length === 0) continue;
    output.note(output.noteStyle("dim", safeLine(`${file} is also ${aliases.join(", ")}.`)));
  }
}
