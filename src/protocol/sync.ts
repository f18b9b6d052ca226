import { z } from "zod";
import { syncFormats } from "./enums.ts";
import { choiceField, type Infer, maxRequestItems, needed, textField } from "./fields.ts";

export type { SyncFormat } from "./enums.ts";

const flag = z.boolean({ error: needed("must be true or false") }).optional();

const syncFormatField = choiceField(syncFormats);

/** The source that a sync reads, and the formats that it writes. */
const syncChoicesSchema = z.strictObject({
  source: syncFormatField
    .optional()
    .meta({ description: "The source of truth; default: `guidelines.source` of the configuration." }),
  targets: z
    .array(syncFormatField, { error: needed("must be a list of formats") })
    .max(syncFormats.length)
    .optional()
    .meta({
      description:
        "The formats to write; default: `guidelines.targets` of the configuration, else every format the project has.",
    }),
  adopt: flag.meta({ description: "Takes over into the source what people wrote in the targets." }),
});
export interface SyncRequest extends Infer<typeof syncChoicesSchema> {}

/** Names what the preview of a file showed, so that nothing else is written. */
export const changeDigestField = textField(64).min(1, "must not be empty");

const expectedField = z
  .array(z.strictObject({ path: textField(4_096), digest: changeDigestField }), {
    error: needed("must be a list of paths and digests"),
  })
  .max(maxRequestItems)
  .optional()
  .meta({
    description:
      "`path` and `digest` of each entry of the preview. Where a file is to become another one than it showed, the sync writes nothing and is a `conflict`; `meta.files` names these files. Default: what the sync plans now is written.",
  });

/** The body of `POST /api/guidelines/sync`. */
export const syncBodySchema = z.strictObject({
  ...syncChoicesSchema.shape,
  preview: flag.meta({ description: "Default true: nothing is written." }),
  overwrite: flag.meta({ description: "Also files that were edited by hand." }),
  expected: expectedField,
});
export interface SyncBody extends Infer<typeof syncBodySchema> {}

/** A sync that writes. */
export type SyncWrite = Omit<SyncBody, "preview">;

/** A file as it is and as a write makes it. */
const fileChangeFields = {
  path: z.string().meta({ description: "POSIX, relative to the project root." }),
  action: z.enum(["create", "update", "unchanged", "delete", "conflict"]).meta({
    description:
      "`conflict`: the managed part was edited by hand, or a file of another hand is in the way; nothing is written there without `overwrite`, and nothing at all where `after` is absent.",
  }),
  before: z.string().optional().meta({ description: "The whole file as it is; absent where there is none." }),
  after: z.string().optional().meta({ description: "The whole file as it will be; absent where it goes." }),
  reason: z
    .string()
    .optional()
    .meta({ description: "What is in the way of a conflict, or why a file needs no writing." }),
  digest: z.string().meta({ description: "Names this change: a write may take it as `expected`." }),
};
export const fileChangeSchema = z.object(fileChangeFields);
export interface FileChange extends Infer<typeof fileChangeSchema> {}

/** One file that a sync keeps up to date. */
const syncEntrySchema = z.object({
  ...fileChangeFields,
  format: z.enum(syncFormats),
  losses: z.array(z.string()).meta({ description: "What the format cannot express, one sentence each." }),
});
export interface SyncEntry extends Infer<typeof syncEntrySchema> {}

const syncPlanFields = {
  source: z.enum(syncFormats),
  source_files: z.array(z.string()).meta({ description: "The guidelines come from these; in path order." }),
  guidelines: z.int(),
  left_out: z.array(z.string()).meta({ description: "Guidelines that a target has no place for at all." }),
  entries: z.array(syncEntrySchema),
  read_directly: z.array(z.string()).meta({
    description: "Targets whose tool reads files of the source itself: nothing is written for them.",
  }),
  in_sync: z.boolean().meta({ description: "Nothing has to be written." }),
};
const syncPlanSchema = z.object(syncPlanFields);
export interface SyncPlan extends Infer<typeof syncPlanSchema> {}

/** The plan of a sync, with the files that it wrote: none in a preview. */
export const syncResultSchema = z
  .object({ ...syncPlanFields, written: z.array(z.string()) })
  .meta({ id: "SyncResult" });
export interface SyncResult extends Infer<typeof syncResultSchema> {}
