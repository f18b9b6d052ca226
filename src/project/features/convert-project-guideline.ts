import { KitError } from "../../base/kit-error.ts";
import { conversionTargets } from "../../guidelines/convert/conversion-targets.ts";
import {
  convertGuideline,
  lineEndOf,
  mergeSection,
  withLineEnds,
} from "../../guidelines/convert/convert-guideline.ts";
import type { GuidelineRecord } from "../../guidelines/guideline-record.ts";
import { isRetryableCode } from "../../protocol/error-code.ts";
import type { ConversionFormat, ConversionResult } from "../../protocol/guideline.ts";
import type { ConvertRequest } from "../../protocol/guideline-query.ts";
import type { FileChange } from "../../protocol/sync.ts";
import type { ProjectIndex } from "../project-index.ts";
import {
  assertAsPreviewed,
  assertWritable,
  digestOfChange,
  readFileInside,
  writeFileInside,
} from "./write-file.ts";

export interface ConvertContext {
  readonly index: Pick<ProjectIndex, "root" | "refresh">;
  readonly reads: { record(id: string): GuidelineRecord | undefined };
  readonly readOnly: boolean;
}

/**
 * Converts one guideline. Without `preview` also writes it: as a separate steering file, or as a section of the conventional
 * file, whose other bytes stay unchanged. `content` is the text as the file has it. A guideline that has the format already is
 * unchanged where it is.
 *
 * Throws `guideline_not_found`, `forbidden` in a read-only project, and `conflict` for a steering file with other content unless
 * `overwrite`, for a file that changes during the write, and if the change differs from the preview that `expected` names.
 *
 * @see docs/guidelines.md
 */
export async function convertProjectGuideline(
  context: ConvertContext,
  request: ConvertRequest,
): Promise<{ readonly result: ConversionResult; readonly written: readonly string[] }> {
  const { guideline_id, format, preview = true, overwrite = false, expected } = request;
  const target = { root: context.index.root, readOnly: context.readOnly };
  if (!preview) assertWritable(target);
  const { record, sourceText } = await readSource(context, guideline_id, format);
  const result = convertGuideline(record, format, sourceText === undefined ? {} : { sourceText });
  const planned: PlannedConversion = { root: target.root, record, result, format };
  if (preview) {
    const { content = result.content, ...change } = await previewChange(planned);
    return { result: { ...result, content, change }, written: [] };
  }
  const { bytes, content, ...change } = await planChange(planned);
  const { path, action, after } = change;
  if (expected !== undefined) assertAsPreviewed([withDigest(change)], [{ path, digest: expected }]);
  if (action === "unchanged") return { result: { ...result, content, written_to: path }, written: [] };
  if (action === "conflict" && !overwrite)
    throw new KitError({
      code: "conflict",
      message: `${path} exists already, with other content.`,
      hint: 'Ask for "overwrite": true to replace it.',
    });
  const written_to = await writeFileInside(target, { path, content: after, expected: bytes });
  return { result: { ...result, content, written_to }, written: [written_to] };
}

interface PlannedConversion {
  readonly root: string;
  readonly record: GuidelineRecord;
  readonly result: ConversionResult;
  readonly format: ConversionFormat;
}

/** Plans the change that a write makes to its file. Throws where the file cannot be written. */
async function planChange(planned: PlannedConversion) {
  const { root, record, result, format } = planned;
  const isOwnFile = conversionTargets[format].kind === "file";
  const path = pathOf(planned);
  const bytes = (await readFileInside(root, { path })) ?? null;
  const before = bytes === null ? undefined : decode(bytes, path);
  const { losses } = result;
  if (record.source_type === format && before !== undefined)
    return {
      path,
      bytes,
      content: result.content,
      action: "unchanged",
      before,
      after: before,
      losses,
    } as const;
  const content = isOwnFile ? result.content : withLineEnds(result.content, lineEndOf(before ?? ""));
  const after = isOwnFile ? content : mergeSection(before ?? "", record);
  const base = { path, bytes, content, after, losses };
  if (before === undefined) return { ...base, action: "create" } as const;
  if (after === before) return { ...base, action: "unchanged", before } as const;
  const reason = isOwnFile ? "The file is there already, with other content." : undefined;
  return { ...base, action: isOwnFile ? "conflict" : "update", before, reason } as const;
}

/** The same for a reader; a file that cannot be written is a conflict without `after`. */
async function previewChange(
  planned: PlannedConversion,
): Promise<FileChange & { readonly content?: string }> {
  try {
    const { bytes: _bytes, content, ...change } = await planChange(planned);
    return { ...withDigest(change), content };
  } catch (error) {
    if (!(error instanceof KitError) || isRetryableCode(error.code)) throw error;
    const path = pathOf(planned);
    return withDigest({ path, action: "conflict", reason: error.message, losses: [] });
  }
}

function pathOf({ record, result, format }: PlannedConversion): string {
  if (record.source_type === format) return record.source_file;
  const target = conversionTargets[format];
  return target.kind === "file" ? `${target.folder}/${result.filename}` : target.file;
}

function withDigest({ losses, ...change }: Parameters<typeof digestOfChange>[0]): FileChange {
  return { ...change, digest: digestOfChange({ ...change, losses }) };
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
