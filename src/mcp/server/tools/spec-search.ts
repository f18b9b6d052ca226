import { z } from "zod";
import { textTokens } from "../../../base/text-size.ts";
import type { ProjectSpecs } from "../../../project/project.ts";
import { frameworks, lifecycles, priorities, specTypes } from "../../../protocol/enums.ts";
import { choiceField, type Infer, textField } from "../../../protocol/fields.ts";
import type { SpecBlock } from "../../../protocol/spec-block.ts";
import { excerptOf, nextPageMark, placeOf } from "../bounds.ts";
import type { ReadTool } from "../read-tool.ts";
import { frameworkInput, limitInput, nextCursor } from "./tool-fields.ts";

const input = z.strictObject({
  q: textField(1_000).exactOptional().meta({ description: "Words to look for." }),
  spec_type: choiceField(specTypes).exactOptional(),
  framework: frameworkInput.exactOptional(),
  lifecycle: choiceField(lifecycles).exactOptional().meta({ description: "Default: all except obsolete." }),
  priority: choiceField(priorities).exactOptional(),
  tag: textField(200).exactOptional(),
  path: textField(4_096)
    .exactOptional()
    .meta({ description: "A file, a folder or a glob, relative to the project root." }),
  limit: limitInput(25).exactOptional().meta({ description: "1 to 25; default 10." }),
  cursor: nextCursor.exactOptional(),
});
type Input = Infer<typeof input>;

const output = z.object({
  total: z.int(),
  specs: z.array(
    z.object({
      id: z.string(),
      title: z.string(),
      spec_type: z.enum(specTypes),
      framework: z.enum(frameworks),
      lifecycle: z.enum(lifecycles),
      priority: z.enum(priorities),
      path: z.string(),
      line: z.int().exactOptional(),
      excerpt: z.string(),
    }),
  ),
  next_cursor: z.string().exactOptional(),
});
type Output = Infer<typeof output>;
type Found = Output["specs"][number];

/** `spec_search`: spec blocks by words and filters, as a short list. */
export function specSearchTool(specs: ProjectSpecs): ReadTool<Input, Output> {
  return {
    name: "spec_search",
    title: "Search specs",
    description:
      "Searches the specifications of this repository (requirements, designs, tasks, constraints), best match first. Use it to find out what a feature must do before you change it.",
    input,
    output,
    run: (query) => {
      const page = specs.query({ ...query, limit: query.limit ?? 10 });
      const next = page.next_cursor === undefined ? {} : { next_cursor: page.next_cursor };
      return { total: page.total_count, specs: page.specs.map(toFound), ...next };
    },
    shows: ({ specs: found }) =>
      found.map(({ id, title, path, line, excerpt }) => ({
        kind: "spec",
        id,
        file: path,
        ...(line === undefined ? {} : { line }),
        why: "found by spec_search",
        tokens: textTokens(title + excerpt),
      })),
    toText: ({ total, specs: found, next_cursor }) => {
      const lines = found.map(
        ({ id, title, spec_type, path, line, excerpt }) =>
          `- ${title} (${spec_type}, ${placeOf(path, line)}; id ${id})\n  ${excerpt}`,
      );
      const head = `${total} ${total === 1 ? "spec block" : "spec blocks"}.`;
      return `${[head, ...lines].join("\n")}${nextPageMark(next_cursor)}`;
    },
  };
}

function toFound(block: SpecBlock): Found {
  const { id, title, spec_type, framework, lifecycle, priority, path, metadata } = block;
  const line = metadata.source === undefined ? {} : { line: metadata.source.start_line };
  const excerpt = excerptOf(block.summary ?? block.content, 300);
  return {
    id,
    title: excerptOf(title, 200),
    spec_type,
    framework,
    lifecycle,
    priority,
    path,
    ...line,
    excerpt,
  };
}
