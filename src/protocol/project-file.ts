import { z } from "zod";
import { countField, type Infer, projectPathField } from "./fields.ts";

/** The query of `GET /api/files`. */
export const fileLinesQuerySchema = z.strictObject({
  path: projectPathField,
  start_line: countField(10_000_000).optional().meta({ description: "From 1; default 1." }),
  end_line: countField(10_000_000)
    .optional()
    .meta({ description: "The last line that is wanted; default: as many as one reply has." }),
});
export interface FileLinesQuery extends Infer<typeof fileLinesQuerySchema> {}

/** Lines of a text file of the project. */
export const fileLinesSchema = z
  .object({
    path: z.string().meta({ description: "POSIX, relative to the project root, with links followed." }),
    start_line: z.int().min(1),
    lines: z
      .array(z.string())
      .meta({ description: "Without their line breaks; at most 2,000, and 256 KiB." }),
    total_lines: z.int(),
    cut: z
      .literal(true)
      .optional()
      .meta({ description: "Set where a line is longer than 4,000 characters and its rest is left out." }),
  })
  .meta({ id: "FileLines" });
export interface FileLines extends Infer<typeof fileLinesSchema> {}
