import { z } from "zod";
import { KitError } from "../../../base/kit-error.ts";
import type { ProjectGuidelines } from "../../../project/project.ts";
import type { Infer } from "../../../protocol/fields.ts";
import { guidelineSchema } from "../../../protocol/guideline.ts";
import { nextPageMark, partOf } from "../bounds.ts";
import type { ReadTool } from "../read-tool.ts";
import { guidelineIdInput, nextCursor } from "./tool-fields.ts";

const input = z.strictObject({ id: guidelineIdInput, cursor: nextCursor.exactOptional() });
type Input = Infer<typeof input>;

const output = z.object({ guideline: guidelineSchema, next_cursor: z.string().exactOptional() });
type Output = Infer<typeof output>;

/** `guideline_get`: one guideline with its full content. */
export function guidelineGetTool(guidelines: ProjectGuidelines): ReadTool<Input, Output> {
  return {
    name: "guideline_get",
    title: "One guideline",
    description: "Returns one coding guideline with its full content.",
    input,
    output,
    run: ({ id, cursor }) => {
      const guideline = guidelines.get(id);
      if (guideline === undefined) throw unknownGuideline(id);
      const { content, ...rest } = partOf(guideline.content, cursor);
      return { guideline: { ...guideline, content }, ...rest };
    },
    toText: ({ guideline: { title, source_file, file_pattern, content }, next_cursor }) => {
      const pattern = file_pattern === undefined ? "" : `; for ${file_pattern}`;
      return `# ${title}\n(${source_file}${pattern})\n\n${content}${nextPageMark(next_cursor)}`;
    },
  };
}

function unknownGuideline(id: string): KitError {
  const message = `There is no guideline with the id "${id}"; guidelines_search lists them.`;
  return new KitError({ code: "guideline_not_found", message });
}
