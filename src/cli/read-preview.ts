import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { z } from "zod";
import { attempt } from "../base/attempt.ts";
import { usageError } from "./report-error.ts";

const hint = "Save a preview with --json > plan.json, and name that file.";

/** Reads what an earlier command with `--json` printed, for a write that is to do nothing else. */
export function readPreview<Schema extends z.ZodType>(
  schema: Schema,
  { file, cwd }: { readonly file: string; readonly cwd: string },
): z.output<Schema> {
  const text = attempt(() => readFileSync(resolve(cwd, file), "utf8"));
  if (text === undefined) throw usageError(`${file} cannot be read.`, hint);
  const parsed = schema.safeParse(attempt(() => JSON.parse(text)));
  if (parsed.success) return parsed.data;
  throw usageError(`${file} is not the preview of such a write.`, hint);
}
