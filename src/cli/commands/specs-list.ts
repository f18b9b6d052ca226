import { type Command, defineCommand } from "../command.ts";
import { hasSpecs, noSpecsHint } from "../render/no-specs.ts";
import { printSpecPage } from "../render/print-specs.ts";
import { readSpecs, specFilters, toSpecQuery } from "../spec-filters.ts";
import { withProject } from "../with-project.ts";

export const specsList: Command = defineCommand({
  options: specFilters,
  examples: [
    "kit specs list",
    "kit specs list --framework kiro --type requirement",
    "kit specs list --path .kiro/specs/checkout --all --json",
  ],
  run: ({ options }, context) =>
    withProject(context, async ({ project }) => {
      const page = readSpecs(project.specs, toSpecQuery(options, context), options.all ?? false);
      if (context.json) context.output.json(page);
      else if (page.total_count > 0) printSpecPage(context.output, page);
      else context.output.note(hasSpecs(project) ? "No spec matches these filters." : noSpecsHint());
      return 0;
    }),
});
