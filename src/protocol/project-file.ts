import { z } from "zod";
import { countField, type Infer, projectPathField } from "./fields.ts";

/** The query of `GET /api/files`. */
export const fileLinesQuerySchema = z.strictObject({
  path: projectPathField,
  start_line: countField(10_000_000).optional().meta({ description: "From 1; default 1." }),
  end_line: countField(10_000_000)
    .optional()
    .meta({ description: "The last line of the reply; default: as many lines as fit into one reply." }),
});
export interface FileLinesQuery extends Infer<typeof fileLinesQuerySchema> {}

/** Lines of a text file of the project. */
export const fileLinesSchema = z
  .object({
    path: z.string().meta({ description: "POSIX, relative to the project root, with links resolved." }),
    start_line: z.int().min(1),
    lines: z
      .array(z.string())
      .meta({ description: "Without their line breaks; at most 2,000, and 256 KiB." }),
    total_lines: z.int(),
    cut: z.literal(true).optional().meta({ description: "Set if a line was cut at 4,000 characters." }),
  })
  .meta({ id: "FileLines" });
export interface FileLines extends Infer<typeof fileLinesSchema> {}
