import type { Project } from "../../project/project.ts";
import type { SpecQuery } from "../../protocol/spec-query.ts";
import { type Command, defineCommand, flag } from "../command.ts";
import { hasSpecs, noSpecsHint } from "../render/no-specs.ts";
import { count } from "../render/places.ts";
import { printSpecPage } from "../render/print-specs.ts";
import { readSpecs, specFilters, toSpecQuery } from "../spec-filters.ts";
import { withProject } from "../with-project.ts";

export const specsList: Command = defineCommand({
  options: {
    ...specFilters,
    rules: flag("--rules", "Also the rules of instruction files (CLAUDE.md, Cursor's rules)"),
  },
  details:
    "Leaves out the rules of instruction files where there is anything else, unless a filter, --rules, --all or --json asks for them.",
  examples: [
    "kit specs list",
    "kit specs list --framework kiro --type requirement",
    "kit specs list --path .kiro/specs/checkout --all --json",
  ],
  run: ({ options }, context) =>
    withProject(context, async ({ project }) => {
      const query = toSpecQuery(options, context);
      const asked =
        query.framework ?? query.spec_type ?? query.path ?? query.tag ?? query.cursor ?? options.rules;
      const isDefault = asked === undefined && options.all !== true && !context.json;
      const left = isDefault ? rulesBeside(project, query) : 0;
      const page = readSpecs(
        project.specs,
        left > 0 ? { ...query, rules: false } : query,
        options.all ?? false,
      );
      if (context.json) context.output.json(page);
      else if (page.total_count > 0) {
        printSpecPage(context.output, page);
        if (left > 0) context.output.note(`${count(left, "rule")} of instruction files left out (--rules).`);
      } else context.output.note(hasSpecs(project) ? "No spec matches these filters." : noSpecsHint());
      return 0;
    }),
});

/** How many rules of instruction files match beside other specs; 0 where there is nothing but rules. */
function rulesBeside(project: Project, query: SpecQuery): number {
  const total = project.specs.query({ ...query, limit: 1 }).total_count;
  const without = project.specs.query({ ...query, rules: false, limit: 1 }).total_count;
  return without > 0 ? total - without : 0;
}
