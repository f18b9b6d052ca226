import { z } from "zod";
import type { ProjectGuidelines } from "../../../project/project.ts";
import type { Infer } from "../../../protocol/fields.ts";
import { nextPageMark, partOf } from "../bounds.ts";
import type { ReadTool } from "../read-tool.ts";
import { formatInput, guidelineIdInput, nextCursor } from "./tool-fields.ts";

const input = z.strictObject({
  id: guidelineIdInput,
  format: formatInput,
  cursor: nextCursor.exactOptional(),
});
type Input = Infer<typeof input>;

const output = z.object({
  filename: z.string(),
  content: z.string(),
  frontmatter: z.record(z.string(), z.unknown()),
  source_id: z.string(),
  losses: z.array(z.string()).meta({ description: "What the format cannot express." }),
  next_cursor: z.string().exactOptional(),
});
type Output = Infer<typeof output>;

/** `guideline_convert`: a guideline in another tool's format, as a preview. */
export function guidelineConvertTool(guidelines: ProjectGuidelines): ReadTool<Input, Output> {
  return {
    name: "guideline_convert",
    title: "Convert a guideline",
    description:
      "Shows a guideline in another tool's format, and what that format cannot express. Writes nothing.",
    input,
    output,
    run: async ({ id, format, cursor }) => {
      const { change: _change, ...result } = await guidelines.convert({
        guideline_id: id,
        format,
        preview: true,
      });
      return { ...result, ...partOf(result.content, cursor) };
    },
    toText: ({ filename, content, losses, next_cursor }) => {
      const lossText =
        losses.length === 0 ? "" : `\n\nLost:\n${losses.map((loss) => `- ${loss}`).join("\n")}`;
      return `${filename}:\n\n${content}${lossText}${nextPageMark(next_cursor)}`;
    },
  };
}
