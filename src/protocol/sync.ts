import { z } from "zod";
import { mcpSources, skillSources, syncFormats, syncTargets } from "./enums.ts";
import { choiceField, type Infer, maxRequestItems, needed, textField } from "./fields.ts";

export type { SyncFormat, SyncTarget, ToolTarget } from "./enums.ts";

const flag = z.boolean({ error: needed("must be true or false") }).optional();

const syncFormatField = choiceField(syncFormats);

/** The source that a sync reads, and the formats that it writes. */
const syncChoicesSchema = z.strictObject({
  source: syncFormatField
    .optional()
    .meta({ description: "The source of truth; default: `guidelines.source` of the configuration." }),
  targets: z
    .array(choiceField(syncTargets), { error: needed("must be a list of formats") })
    .max(syncTargets.length)
    .optional()
    .meta({
      description:
        "The formats to write; default: `guidelines.targets` of the configuration, else every format in the project. `codex` and `junie` get skills and MCP servers only.",
    }),
  with: z
    .strictObject({
      skills: choiceField(skillSources)
        .optional()
        .meta({ description: "The skills to copy; `agents`: those of `.agents/skills`." }),
      mcp: choiceField(mcpSources)
        .optional()
        .meta({ description: "The settings that name the servers; `kit`: kit's configuration." }),
    })
    .optional()
    .meta({
      description:
        "What else to write from one source: skills, and settings of MCP servers. Default: `guidelines.with` of the configuration. Without a source of truth, nothing but these is written.",
    }),
  adopt: flag.meta({ description: "Copies changes that people made in the targets into the source." }),
});
export interface SyncRequest extends Infer<typeof syncChoicesSchema> {}

/** The digest of the change that a preview showed, so that no other change is written. */
export const changeDigestField = textField(64).min(1, "must not be empty");

const expectedField = z
  .array(z.strictObject({ path: textField(4_096), digest: changeDigestField }), {
    error: needed("must be a list of paths and digests"),
  })
  .max(maxRequestItems)
  .optional()
  .meta({
    description:
      "`path` and `digest` of each entry of the preview. If a file would change differently than in the preview, the sync writes nothing and fails with `conflict`; `meta.files` names these files. Default: the sync writes its current plan.",
  });

/** The body of `POST /api/guidelines/sync`. */
export const syncBodySchema = z.strictObject({
  ...syncChoicesSchema.shape,
  preview: flag.meta({ description: "Default true: the sync writes nothing." }),
  overwrite: flag.meta({ description: "Also write files that were edited by hand." }),
  expected: expectedField,
});
export interface SyncBody extends Infer<typeof syncBodySchema> {}

/** A sync that writes. */
export type SyncWrite = Omit<SyncBody, "preview">;

/** A file before and after a write. */
const fileChangeFields = {
  path: z.string().meta({ description: "POSIX, relative to the project root." }),
  action: z.enum(["create", "update", "unchanged", "delete", "conflict"]).meta({
    description:
      "`conflict`: the managed part was edited by hand, or kit did not write the existing file. Kit writes such a file only with `overwrite`, and never if `after` is absent.",
  }),
  before: z.string().optional().meta({
    description:
      "The whole current file, or the size and digest of one that is not text; absent if there is none.",
  }),
  after: z
    .string()
    .optional()
    .meta({ description: "The whole file after the write; absent if it is removed." }),
  reason: z
    .string()
    .optional()
    .meta({ description: "The reason of a conflict, or why a file need not be written." }),
  digest: z.string().meta({ description: "Digest of this change: a write accepts it in `expected`." }),
};
export const fileChangeSchema = z.object(fileChangeFields);
export interface FileChange extends Infer<typeof fileChangeSchema> {}

/** One file that a sync keeps up to date. */
const syncEntrySchema = z.object({
  ...fileChangeFields,
  format: z.enum(syncTargets).meta({ description: "The format, or the tool that reads the file." }),
  losses: z
    .array(z.string())
    .meta({ description: "One sentence for each thing that the format cannot express." }),
});
export interface SyncEntry extends Infer<typeof syncEntrySchema> {}

const syncPlanFields = {
  source: z
    .enum(syncFormats)
    .optional()
    .meta({ description: "Absent if no rules are synced, but skills or settings." }),
  targets: z.array(z.enum(syncTargets)).meta({ description: "The formats that the sync writes." }),
  source_files: z
    .array(z.string())
    .meta({ description: "The files that the guidelines come from; in path order." }),
  guidelines: z.int(),
  left_out: z.array(z.string()).meta({
    description: "Guidelines, files and servers that are not written at all, each with the reason.",
  }),
  entries: z.array(syncEntrySchema),
  read_directly: z.array(z.string()).meta({
    description: "Targets whose tool reads the source's files directly: nothing is written for them.",
  }),
  in_sync: z.boolean().meta({ description: "True if nothing has to be written." }),
};
const syncPlanSchema = z.object(syncPlanFields);
export interface SyncPlan extends Infer<typeof syncPlanSchema> {}

/** The plan of a sync, with the files that it wrote: none in a preview. */
export const syncResultSchema = z
  .object({ ...syncPlanFields, written: z.array(z.string()) })
  .meta({ id: "SyncResult" });
export interface SyncResult extends Infer<typeof syncResultSchema> {}
