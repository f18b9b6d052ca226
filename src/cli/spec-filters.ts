import type { ProjectSpecs } from "../project/project.ts";
import { listSpecs } from "../project/query/whole-answers.ts";
import type { Framework, Lifecycle, Priority, SpecType } from "../protocol/spec-block.ts";
import type { SpecPage, SpecQuery } from "../protocol/spec-query.ts";
import { parseFramework, parseLifecycle, parsePriority, parseSpecType } from "./choices.ts";
import { type CommandContext, type CommandOption, flag, type OptionValues, option } from "./command.ts";
import { toProjectPath } from "./find-root.ts";
import { asText, wholeNumber } from "./values.ts";

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

/** Which blocks are meant; the same for a list and for a search. */
export const specFilters: SpecFilterOptions = {
  framework: option(
    "-f, --framework <name>",
    "Only this one: kiro, cursor, claude, speckit, tessl or custom",
    parseFramework,
  ),
  type: option("-t, --type <type>", "Only this one: requirement, design, task or constraint", parseSpecType),
  lifecycle: option(
    "--lifecycle <state>",
    "Only active, deprecated, legacy or obsolete; without it, all but obsolete",
    parseLifecycle,
  ),
  priority: option("--priority <level>", "Only critical, high, medium or low", parsePriority),
  tag: option("--tag <tag>", "Only blocks with this tag", asText),
  path: option("--path <path>", "Only blocks of this file, folder or glob", asText),
  limit: option("-n, --limit <number>", "At most so many, 1 to 1,000 (default 50)", wholeNumber(1, 1000)),
  cursor: option("--cursor <cursor>", "Start at the next_cursor of an earlier --json", asText),
  all: flag("-a, --all", "As many as there are"),
};

export type SpecFilters = OptionValues<SpecFilterOptions>;

export function toSpecQuery(options: SpecFilters, context: CommandContext): SpecQuery {
  const { framework, type, lifecycle, priority, tag, path, limit, cursor } = options;
  return {
    ...(framework === undefined ? {} : { framework }),
    ...(type === undefined ? {} : { spec_type: type }),
    ...(lifecycle === undefined ? {} : { lifecycle }),
    ...(priority === undefined ? {} : { priority }),
    ...(tag === undefined ? {} : { tag }),
    ...(path === undefined ? {} : { path: toProjectPath(path, context) }),
    ...(limit === undefined ? {} : { limit }),
    ...(cursor === undefined ? {} : { cursor }),
  };
}

/** One page, or with `all` every page as one. */
export function readSpecs(specs: ProjectSpecs, query: SpecQuery, all: boolean): SpecPage {
  let page = listSpecs(specs, all ? { ...query, limit: 1000 } : query);
  if (!all) return page;
  const found = [...page.specs];
  while (page.next_cursor !== undefined) {
    page = listSpecs(specs, { ...query, limit: 1000, cursor: page.next_cursor });
    found.push(...page.specs);
  }
  const { next_cursor: _, ...whole } = page;
  return { ...whole, specs: found };
}
