import { KitError } from "../../base/kit-error.ts";
import { conversionTargets } from "../../guidelines/convert/conversion-targets.ts";
import { convertGuideline } from "../../guidelines/convert/convert-guideline.ts";
import { mergeSection } from "../../guidelines/convert/merge-section.ts";
import type { GuidelineRecord } from "../../guidelines/guideline-record.ts";
import type { ConversionFormat, ConversionResult } from "../../protocol/guideline.ts";
import type { ConvertRequest } from "../../protocol/guideline-query.ts";
import type { ProjectIndex } from "../project-index.ts";
import type { GuidelineReads } from "./guideline-reads.ts";
import { assertWritable, readFileInside, writeFileInside } from "./write-file.ts";

export interface ConvertContext {
  readonly index: Pick<ProjectIndex, "root" | "refresh">;
  readonly reads: Pick<GuidelineReads, "record">;
  readonly readOnly: boolean;
}

/**
 * Converts one guideline and, without `preview`, writes it: a steering file of its own, or a section
 * merged into the conventional file, whose other bytes stay as they are.
 *
 * Throws `guideline_not_found`, `forbidden` in a read-only project, and `conflict` for a steering file
 * with other content unless `overwrite`, and for a file that changes while it is written.
 *
 * @see docs/guidelines.md
 */
export async function convertProjectGuideline(
  context: ConvertContext,
  request: ConvertRequest,
): Promise<{ readonly result: ConversionResult; readonly written: readonly string[] }> {
  const { guideline_id, format, preview = true, overwrite = false } = request;
  const { root } = context.index;
  const target = { root, readOnly: context.readOnly };
  if (!preview) assertWritable(target);
  const { record, sourceText } = await readSource(context, guideline_id, format);
  const result = convertGuideline(record, format, sourceText === undefined ? {} : { sourceText });
  if (preview) return { result, written: [] };

  const conversion = conversionTargets[format];
  const isOwnFile = conversion.kind === "file";
  const path = isOwnFile ? `${conversion.folder}/${result.filename}` : conversion.file;
  const bytes = (await readFileInside(root, { path })) ?? null;
  const before = bytes === null ? "" : decode(bytes, path);
  const content = isOwnFile ? result.content : mergeSection(before, record);
  if (bytes !== null && content === before) return { result: { ...result, written_to: path }, written: [] };
  if (isOwnFile && bytes !== null && !overwrite) throw otherContent(path);
  const written_to = await writeFileInside(target, { path, content, expected: bytes });
  return { result: { ...result, written_to }, written: [written_to] };
}

interface Source {
  readonly record: GuidelineRecord;
  /** Only where the guideline already has the format: its section as the file holds it. */
  readonly sourceText?: string;
}

async function readSource(context: ConvertContext, id: string, format: ConversionFormat): Promise<Source> {
  const record = context.reads.record(id);
  if (record === undefined) throw unknownGuideline(id);
  if (record.source_type !== format) return { record };
  // Its line numbers come from the index, so the index must match the file.
  await context.index.refresh();
  const current = context.reads.record(id);
  if (current === undefined) throw unknownGuideline(id);
  const bytes = await readFileInside(context.index.root, { path: current.source_file });
  if (bytes === undefined) throw unknownGuideline(id);
  return { record: current, sourceText: decode(bytes, current.source_file) };
}

/** Refuses bytes that are not UTF-8: writing them back would change them. */
function decode(bytes: Uint8Array, path: string): string {
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  if (Buffer.compare(Buffer.from(text), bytes) === 0) return text;
  throw new KitError({
    code: "conflict",
    message: `${path} is not UTF-8 text, so nothing can be merged into it.`,
  });
}

function unknownGuideline(id: string): KitError {
  const safeId = id.replace(/[^\w-]/g, "?").slice(0, 64);
  return new KitError({
    code: "guideline_not_found",
    message: `There is no guideline with the id "${safeId}".`,
  });
}

function otherContent(path: string): KitError {
  return new KitError({
    code: "conflict",
    message: `${path} is there already, with other content.`,
    hint: 'Ask for "overwrite": true to replace it.',
  });
}
