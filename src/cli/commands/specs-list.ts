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
    "Leaves out the rules of instruction files where there is anything else, unless a filter or --rules asks for them; so does --json.",
  examples: [
    "kit specs list",
    "kit specs list --framework kiro --type requirement",
    "kit specs list --path .kiro/specs/checkout --all --json",
  ],
  run: ({ options }, context) =>
    withProject(context, async ({ project }) => {
      const query = toSpecQuery(options, context);
      const asked = options.rules === true ? { ...query, rules: true } : query;
      const page = readSpecs(project.specs, asked, options.all ?? false);
      const { rules_left_out: left = 0 } = page;
      if (context.json) context.output.json(page);
      else if (page.total_count > 0) {
        printSpecPage(context.output, page);
        if (left > 0) context.output.note(`${count(left, "rule")} of instruction files left out (--rules).`);
      } else context.output.note(hasSpecs(project) ? "No spec matches these filters." : noSpecsHint());
      return 0;
    }),
});
