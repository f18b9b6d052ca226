import type { Project, ProjectSpecs } from "../../project/project.ts";
import { listForPerson } from "../../project/query/run-query.ts";
import { createSpecNames, type SpecNames } from "../../project/query/spec-names.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { Framework, Lifecycle, Priority, SpecBlock, SpecType } from "../../protocol/spec-block.ts";
import type { SpecPage, SpecQuery } from "../../protocol/spec-query.ts";
import { frameworkInfos } from "../../specs/frameworks.ts";
import {
  asText,
  parseFramework,
  parseLifecycle,
  parsePriority,
  parseSpecType,
  wholeNumber,
} from "../choices.ts";
import {
  type Command,
  type CommandContext,
  type CommandOption,
  defineCommand,
  flag,
  type OptionValues,
  option,
} from "../command.ts";
import { findSpec } from "../find-record.ts";
import { toProjectPath } from "../find-root.ts";
import type { Output } from "../print/output.ts";
import { type Column, count, placeColumn, printFields, printTable, specPlace } from "../print/table.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

type SpecFilterOptions = {
  readonly framework: CommandOption<Framework>;
  readonly type: CommandOption<SpecType>;
  readonly lifecycle: CommandOption<Lifecycle>;
  readonly priority: CommandOption<Priority>;
  readonly tag: CommandOption<string>;
  readonly path: CommandOption<string>;
  readonly limit: CommandOption<number>;
  readonly cursor: CommandOption<string>;
  readonly all: CommandOption<boolean>;
};

/** The filters of `list` and `query`. */
export const specFilters: SpecFilterOptions = {
  framework: option(
    "-f, --framework <name>",
    "Only specs of this framework: kiro, cursor, claude, speckit, tessl or custom",
    parseFramework,
  ),
  type: option(
    "-t, --type <type>",
    "Only specs of this type: requirement, design, task or constraint",
    parseSpecType,
  ),
  lifecycle: option(
    "--lifecycle <state>",
    "Only specs of this status: active, deprecated, legacy or obsolete; without it, all but obsolete",
    parseLifecycle,
  ),
  priority: option(
    "--priority <level>",
    "Only specs of this priority: critical, high, medium or low",
    parsePriority,
  ),
  tag: option("--tag <tag>", "Only specs with this tag", asText),
  path: option(
    "--path <path>",
    "Only specs in this file or folder, or in files that match this glob",
    asText,
  ),
  limit: option("-n, --limit <number>", "The most to list, 1 to 1,000 (default 50)", wholeNumber(1, 1000)),
  cursor: option("--cursor <cursor>", "Start at the next_cursor of an earlier --json", asText),
  all: flag("-a, --all", "List all of them"),
};

export const specsList: Command = defineCommand({
  options: {
    ...specFilters,
    rules: flag("--rules", "Also the rules of instruction files (CLAUDE.md, Cursor's rules)"),
  },
  details:
    "The table leaves out the rules of instruction files if there are other specs, unless a filter or --rules selects them. --json lists all.",
  examples: [
    "kit specs list",
    "kit specs list --framework kiro --type requirement",
    "kit specs list --path .kiro/specs/checkout --all --json",
  ],
  run: ({ options }, context) =>
    withProject(context, async ({ project }) => {
      const query = toSpecQuery(options, context);
      const list: ListSpecs =
        context.json || options.rules === true
          ? project.specs.query
          : (each) => listForPerson(project.specs, each);
      const page = readSpecs(list, query, options.all ?? false);
      const { rules_left_out: left = 0 } = page;
      if (context.json) context.output.json(page);
      else if (page.total_count > 0) {
        printSpecPage(context.output, project.specs, page);
        if (left > 0) context.output.note(`${count(left, "rule")} of instruction files left out (--rules).`);
      } else context.output.note(hasSpecs(project) ? "No spec matches these filters." : noSpecsHint());
    }),
});

export const specsQuery: Command = defineCommand({
  arguments: [{ usage: "<text...>", description: "Words to find in titles, summaries, contents and tags" }],
  options: specFilters,
  examples: ["kit specs query refund", 'kit specs query "rate limit" --type requirement --limit 5'],
  details: "The best match comes first; specs that are deprecated or of low priority come later.",
  run: ({ args, options }, context) =>
    withProject(context, async ({ project }) => {
      const query = { ...toSpecQuery(options, context), q: args.join(" ") };
      const page = readSpecs(project.specs.query, query, options.all ?? false);
      if (context.json) context.output.json(page);
      else if (page.total_count > 0) printSpecPage(context.output, project.specs, page);
      else context.output.note(hasSpecs(project) ? "No spec matches." : noSpecsHint());
    }),
});

export const specsShow: Command = defineCommand({
  arguments: [{ usage: "<id>", description: "A spec, as 'kit specs list' prints it: checkout#1, or its id" }],
  options: {},
  examples: ["kit specs show checkout#1", "kit specs show fw_a-checkout-requirements-req1"],
  run: ({ args: [id = ""] }, context) =>
    withProject(context, async ({ project }) => {
      const spec = findSpec(project, id);
      if (context.json) context.output.json(spec);
      else {
        const diagnostics = project.specs.diagnostics().filter((diagnostic) => diagnostic.id === spec.id);
        const name = createSpecNames(project.specs).nameOf(spec);
        printSpec(context.output, { spec, name, tool: project.specs.toolOf(spec), diagnostics });
      }
    }),
});

type SpecFilters = OptionValues<SpecFilterOptions>;

export function toSpecQuery(options: SpecFilters, context: CommandContext): SpecQuery {
  const { framework, type, lifecycle, priority, tag, path, limit, cursor } = options;
  return {
    framework,
    spec_type: type,
    lifecycle,
    priority,
    tag,
    ...(path === undefined ? {} : { path: toProjectPath(path, context) }),
    ...(limit === undefined ? {} : { limit }),
    ...(cursor === undefined ? {} : { cursor }),
  };
}

type ListSpecs = ProjectSpecs["query"];

/** One page, or with `all` every page as one. */
export function readSpecs(list: ListSpecs, query: SpecQuery, all: boolean): SpecPage {
  let page = list(all ? { ...query, limit: 1000 } : query);
  if (!all) return page;
  const found = [...page.specs];
  while (page.next_cursor !== undefined) {
    page = list({ ...query, limit: 1000, cursor: page.next_cursor });
    found.push(...page.specs);
  }
  const { next_cursor: _, ...rest } = page;
  return { ...rest, specs: found };
}

/** Whether the project has any spec, obsolete ones included. */
function hasSpecs(project: Project): boolean {
  return Iterator.from(project.specs.all()).some(() => true);
}

/** The hint for a repository without a spec that kit can read. */
function noSpecsHint(): string {
  const sources = frameworkInfos.map(({ label, sources }) => `  ${label.padEnd(12)} ${sources}`);
  return ["This project has no specs. At the root of the repository, kit reads:", ...sources].join("\n");
}

const columnsFor = ({ toolOf }: ProjectSpecs, { nameOf }: SpecNames): readonly Column<SpecBlock>[] => [
  { header: "SPEC", value: (spec) => spec.id, forPeople: nameOf, style: () => "cyan" },
  { header: "TOOL", value: toolOf },
  { header: "TYPE", value: (spec) => spec.spec_type },
  {
    header: "TITLE",
    value: titleOf,
    style: (spec) => (spec.lifecycle === "active" && spec.metadata.status !== "done" ? undefined : "dim"),
    wraps: true,
  },
  placeColumn(specPlace),
];

/** A page of specs as a table, and how many match in all. */
function printSpecPage(output: Output, specs: ProjectSpecs, page: SpecPage): void {
  printTable(output, page.specs, columnsFor(specs, createSpecNames(specs)));
  if (page.next_cursor !== undefined) {
    const countText = `${page.specs.length.toLocaleString("en")} of ${count(page.total_count, "spec")}`;
    output.note(output.noteStyle("dim", `${countText}; --limit shows more, --all all of them.`));
  } else if (page.total_count > 0) {
    output.note(output.noteStyle("dim", `${count(page.total_count, "spec")}.`));
  }
}

/** The title, with the unusual part of the state: a done task, an inactive spec, a priority other than medium. */
function titleOf(spec: SpecBlock): string {
  const remarks = [
    ...(spec.spec_type === "task" && spec.metadata.status ? [spec.metadata.status.replace("_", " ")] : []),
    ...(spec.lifecycle === "active" ? [] : [spec.lifecycle]),
    ...(spec.priority === "medium" ? [] : [`${spec.priority} priority`]),
  ];
  return remarks.length === 0 ? spec.title : `${spec.title} (${remarks.join(", ")})`;
}

interface ShownSpec {
  readonly spec: SpecBlock;
  readonly name: string;
  readonly tool: string;
  readonly diagnostics: readonly Diagnostic[];
}

function printSpec(output: Output, { spec, name, tool, diagnostics }: ShownSpec): void {
  const { metadata } = spec;
  const span = metadata.source;
  output.line(output.style("bold", safeLine(spec.title)));
  printFields(output, [
    ["name", name === spec.id ? undefined : name],
    ["id", spec.id],
    ["where", span ? `${spec.path}:${span.start_line}-${span.end_line}` : spec.path],
    ["also", metadata.aliases],
    ["kind", `${tool} ${spec.spec_type}`],
    ["status", metadata.status?.replace("_", " ")],
    ["lifecycle", spec.lifecycle],
    ["priority", spec.priority],
    ["tags", spec.tags.join(", ")],
    ["created", spec.created_at],
    ["updated", spec.updated_at],
    ["author", typeof metadata.author === "string" ? metadata.author : undefined],
    ["related", metadata.related_specs],
    ["code", metadata.code_refs],
    ["tests", metadata.test_refs],
    [
      "problems",
      diagnostics.map(
        ({ severity, message, line }) => `${severity}: ${message}${line ? ` (line ${line})` : ""}`,
      ),
    ],
  ]);
  output.line();
  output.line(safeLines(spec.content).trimEnd());
}
