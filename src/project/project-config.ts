import * as z from "zod/mini";
import {
  amongNames,
  amount,
  integer,
  list,
  live,
  name,
  oneOrMore,
  table,
  tableWith,
  text,
  withJsonSchema,
} from "../base/settings.ts";
import { sourceTypeOf } from "../guidelines/tools/tool-table.ts";
import {
  frameworks,
  mcpSources,
  skillSources,
  specTypes,
  syncFormats,
  syncTargets,
} from "../protocol/enums.ts";
import type { Infer } from "../protocol/fields.ts";
import type { SpecAdapter } from "../specs/adapter.ts";
import { frameworkInfos } from "../specs/frameworks.ts";

const inAnyCase = (written: string): string =>
  written.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);

/** One of some formats and tools, by any name that `sourceTypeOf` accepts, in any case. */
function formatAmong<const Format extends string>(formats: readonly Format[]) {
  const formatOf = (written: string): Format | undefined =>
    formats.find((known) => known === (sourceTypeOf(written) ?? written.toLowerCase()));
  const aliases = [...formats, ...frameworkInfos.flatMap(({ id, aliases }) => [id, ...aliases])];
  const names = aliases.filter((known, at) => formatOf(known) !== undefined && aliases.indexOf(known) === at);
  return withJsonSchema(
    z.pipe(
      z.string({ error: amongNames(formats) }),
      z.transform((written, { issues }): Format => {
        const format = formatOf(written);
        if (format !== undefined) return format;
        issues.push({ code: "custom", input: written, message: amongNames(formats)({ input: written }) });
        return z.NEVER;
      }),
    ),
    {
      // An editor suggests the names of the list.
      anyOf: [{ enum: names }, { pattern: `^(?:${names.map(inAnyCase).join("|")})$` }],
    },
  );
}

/** How `kit specs verify` judges a change. */
export const verifyTable = table({
  /** The line that runs the tests, with `{report}` and, if some files can be run alone, `{files}`; default: found by the manifests. */
  test: text,
  /** `link` (default): the installed packages are linked into each checkout; `none`; or a command that runs in it. */
  setup: text,
  /** The limit of one run of tests; default 300. */
  timeout_seconds: integer(1, 86_400),
  /** The most faults that are put into the changed code; default 24. 0: the tests need not notice one. */
  faults: integer(0, 1_000),
  /** The end of a change that is about no criterion: a person decides (`ask`, default), or the tests of the base (`suite`). */
  without_criteria: name(["ask", "suite"]),
});
export interface VerifyConfig extends Infer<typeof verifyTable> {}

const runTable = table({
  /** The agent that does tasks; default: the default agent. */
  agent: text,
  /** The agent that writes their tests first. */
  tests_by: text,
  /** Per task; default 3. */
  attempts: integer(1, 20),
  /** How many tasks that a spec marks as parallel are done at once; default 1. */
  parallel: integer(1, 8),
  /** US dollars of all model calls of a run; default: no limit. */
  max_cost: amount,
});
export interface SpecRunConfig extends Infer<typeof runTable> {}

export const specsTable = table({
  include: list(text),
  exclude: list(text),
  verify: verifyTable,
  run: runTable,
  /** Sources of the `custom` framework. */
  custom: list(tableWith({ include: text }, { spec_type: name(specTypes), tags: list(text) })),
  /** Adapters of your own; asked before the built-in ones. */
  adapters: list(
    live<SpecAdapter>(
      "an adapter with name, framework, matches and parse, and with a text for label and texts for folders if it has them (only in kit.config.ts)",
      isSpecAdapter,
    ),
  ),
});

/** A command that tells whether a change keeps a rule. */
const ruleCheckTable = tableWith(
  {
    /** A file of rules, or one rule of it by its heading: `AGENTS.md#money`. */
    rule: text,
    /** Globs of the files that the rule is about. */
    files: oneOrMore(text),
    /** A line for the shell; `{files}` stands for the files to check. Exit code 0: the rule is kept. */
    run: text,
  },
  {
    /** The limit of one run; default 60. */
    timeout_seconds: integer(1, 3_600),
  },
);
export interface RuleCheck extends Infer<typeof ruleCheckTable> {}

export const guidelinesTable = table({
  include: list(text),
  exclude: list(text),
  /** The one source of truth of `sync`. */
  source: formatAmong(syncFormats),
  /** The formats that `sync` writes; default: every other format that the project has. `codex` and `junie` get what `with` says. */
  targets: list(formatAmong(syncTargets)),
  /** The tools whose skills and MCP servers `sync` also writes; `agents`: those of `.agents/skills`; `kit`: those of `mcp.servers`. */
  with: table({ skills: formatAmong(skillSources), mcp: formatAmong(mcpSources) }),
  /** The checks of rules, for `kit guidelines check` and `kit specs verify`. */
  check: list(ruleCheckTable),
});

export const lintTable = table({
  /**
   * Findings that are not reported: files, folders and globs (`tests/fixtures`), rules and codes (`shadowed`), or a rule of some
   * files (`docs/**: drift`).
   */
  ignore: list(text),
});

const projectTable = table({ specs: specsTable, guidelines: guidelinesTable, lint: lintTable });
/** The part of the configuration that selects the files to read. Globs are project-relative. */
export interface ProjectConfig extends Infer<typeof projectTable> {
  /** The MCP servers of agents, which `sync` can write into the settings of other tools. */
  readonly mcp?: { readonly servers?: Readonly<Record<string, object>> | undefined } | undefined;
}

function isSpecAdapter(value: unknown): value is SpecAdapter {
  if (typeof value !== "object" || value === null) return false;
  const adapter: Partial<Record<keyof SpecAdapter, unknown>> = value;
  return (
    typeof adapter.name === "string" &&
    frameworks.some((framework) => framework === adapter.framework) &&
    typeof adapter.matches === "function" &&
    typeof adapter.parse === "function" &&
    (adapter.label === undefined || isText(adapter.label)) &&
    (adapter.folders === undefined || (Array.isArray(adapter.folders) && adapter.folders.every(isText)))
  );
}

export function isText(value: unknown): boolean {
  return typeof value === "string" && /\S/.test(value);
}
