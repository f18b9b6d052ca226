import * as z from "zod/mini";
import type { Infer } from "./fields.ts";

/** The state of the Git repository that work started in. */
export const repositoryStateSchema = z
  .object({
    commit: z.string(),
    dirty: z
      .optional(z.boolean())
      .check(
        z.meta({ description: "Whether files of the project differed from the commit; absent if unknown." }),
      ),
  })
  .check(
    z.meta({ id: "RepositoryState", description: "The commit of the repository, when the work started." }),
  );
export interface RepositoryState extends Infer<typeof repositoryStateSchema> {}
