import { z } from "zod";
import type { ProjectGuidelines } from "../../../project/project.ts";
import { sourceTypes } from "../../../protocol/enums.ts";
import { type Infer, textField } from "../../../protocol/fields.ts";
import type { Guideline } from "../../../protocol/guideline.ts";
import { excerptOf, nextPageMark, pageOf } from "../bounds.ts";
import type { ReadTool } from "../read-tool.ts";
import { limitInput, nextCursor, sourceInput } from "./tool-fields.ts";

const input = z.strictObject({
  q: textField(1_000).exactOptional().meta({ description: "Words that must all occur." }),
  source: sourceInput.exactOptional(),
  limit: limitInput(50).exactOptional().meta({ description: "1 to 50; default 20." }),
  cursor: nextCursor.exactOptional(),
});
type Input = Infer<typeof input>;

const output = z.object({
  total: z.int(),
  guidelines: z.array(
    z.object({
      id: z.string(),
      title: z.string(),
      source_type: z.enum(sourceTypes),
      source_file: z.string(),
      file_pattern: z.string().exactOptional(),
      excerpt: z.string(),
    }),
  ),
  next_cursor: z.string().exactOptional(),
});
type Output = Infer<typeof output>;
type Found = Output["guidelines"][number];

/** `guidelines_search`: guidelines by words and source, as a short list. */
export function guidelinesSearchTool(guidelines: ProjectGuidelines): ReadTool<Input, Output> {
  return {
    name: "guidelines_search",
    title: "Search guidelines",
    description:
      "Searches the coding guidelines of this repository by words; lists all of them without words. For the rules of one file use guidelines_for.",
    input,
    output,
    run: ({ limit = 20, cursor, ...query }) => {
      const { items, ...rest } = pageOf(guidelines.list(query).guidelines, {
        cursor,
        limit,
        toItem: toFound,
      });
      return { ...rest, guidelines: items };
    },
    toText: ({ total, guidelines: found, next_cursor }) => {
      const lines = found.map(
        ({ id, title, source_file, excerpt }) => `- ${title} (${source_file}; id ${id})\n  ${excerpt}`,
      );
      const head = `${total} ${total === 1 ? "guideline" : "guidelines"}.`;
      return `${[head, ...lines].join("\n")}${nextPageMark(next_cursor)}`;
    },
  };
}

function toFound(guideline: Guideline): Found {
  const { id, title, source_type, source_file, file_pattern, content } = guideline;
  const pattern = file_pattern === undefined ? {} : { file_pattern };
  return {
    id,
    title: excerptOf(title, 200),
    source_type,
    source_file,
    ...pattern,
    excerpt: excerptOf(content, 200),
  };
}
