import { type Command, defineCommand } from "../command.ts";
import { hasSpecs, noSpecsHint } from "../render/no-specs.ts";
import { printSpecPage } from "../render/print-specs.ts";
import { readSpecs, specFilters, toSpecQuery } from "../spec-filters.ts";
import { withProject } from "../with-project.ts";

export const specsQuery: Command = defineCommand({
  arguments: [{ usage: "<text...>", description: "Words to find in titles, summaries, contents and tags" }],
  options: specFilters,
  examples: ["kit specs query refund", 'kit specs query "rate limit" --type requirement --limit 5'],
  details: "The best match comes first; specs that are deprecated or of low priority count less.",
  run: ({ args, options }, context) =>
    withProject(context, async ({ project }) => {
      const query = { ...toSpecQuery(options, context), q: args.join(" ") };
      const page = readSpecs(project.specs, query, options.all ?? false);
      if (context.json) context.output.json(page);
      else if (page.total_count > 0) printSpecPage(context.output, page);
      else context.output.note(hasSpecs(project) ? "No spec matches." : noSpecsHint());
      return 0;
    }),
});
