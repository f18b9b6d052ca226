import { posix } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { findPlace } from "../../files/find-place.ts";
import { sourceLabels } from "../../guidelines/kit-marks.ts";
import { readGuidelines } from "../../guidelines/read-guidelines.ts";
import { planAdoption } from "../../guidelines/sync/plan-adoption.ts";
import { type PlannedSync, planSync, type SyncFile, sourceRecords } from "../../guidelines/sync/plan-sync.ts";
import { type SyncFormat, syncFormats } from "../../protocol/enums.ts";
import type { SyncEntry, SyncPlan, SyncRequest, SyncResult, SyncWrite } from "../../protocol/sync.ts";
import {
  assertAsPreviewed,
  assertWritable,
  digestOfChange,
  readPlacedFile,
  removeFileInside,
  type WritableRoot,
  writeFileInside,
} from "./write-file.ts";

export interface SyncContext extends WritableRoot {
  /** Guideline files of the project, project-relative. */
  readonly paths: readonly string[];
  /** The real path of a name, through links of its folders. */
  readonly realOf?: (path: string) => string;
  /** Source and targets from the configuration; a request can override them. */
  readonly source?: SyncFormat | undefined;
  readonly targets?: readonly SyncFormat[] | undefined;
}

/**
 * Reads the current guideline files and plans what a sync writes.
 *
 * Throws `invalid_request` without a source, for a source without hand-written content, and without a target.
 */
export async function planProjectSync(context: SyncContext, request: SyncRequest = {}): Promise<SyncPlan> {
  const source = request.source ?? context.source;
  if (source === undefined) {
    throw new KitError({
      code: "invalid_request",
      message: "A sync needs one source of truth.",
      meta: { missing: "source" },
      hint: "Name it (--from), or set guidelines.source in the configuration: agents, claude, cursor, steering, copilot, gemini, windsurf, cline or zed.",
    });
  }
  const files: SyncFile[] = [];
  for (const path of context.paths) {
    const file = await readSyncFile(context.root, path);
    if (file !== undefined) files.push(file);
  }
  if (sourceRecords(files, source).length === 0) {
    throw new KitError({
      code: "invalid_request",
      message: `There is no hand-written guideline in ${sourceLabels[source]}, so there is nothing to sync from.`,
      hint: "Text that a sync has written does not count. Name another source.",
    });
  }
  const targets = targetsOf({ context, request, source, files });
  // A path can exist although the index leaves it out: ignored by Git, or excluded. Such a file can move a guideline to another
  // path, so the plan is made again with it.
  const knownPaths = new Set(files.map(({ path }) => path));
  for (;;) {
    const plan = (request.adopt === true ? planAdoption : planSync)({
      source,
      targets,
      files,
      ...(context.realOf && { realOf: context.realOf }),
    });
    const unknown = plan.entries.filter(({ path }) => !knownPaths.has(path));
    const count = files.length;
    for (const { path } of unknown) {
      knownPaths.add(path);
      const file = await readSyncFile(context.root, path);
      if (file !== undefined) files.push({ ...file, records: [] });
    }
    if (files.length === count) return { ...withDigests(plan), targets };
  }
}

function withDigests({ entries, ...plan }: PlannedSync): Omit<SyncPlan, "targets"> {
  return { ...plan, entries: entries.map((entry) => ({ ...entry, digest: digestOfChange(entry) })) };
}

/**
 * Writes the files of a plan; those in conflict only with `overwrite`. With `expected`, throws `conflict` before it writes
 * anything if the plan differs from the preview that the caller has seen. Writes each file whole, and only if its content is still
 * that of the plan. The first file that differs ends the sync with `conflict`; `meta.written` lists the files written before,
 * and another sync continues.
 */
export async function syncProject(context: SyncContext, request: SyncWrite = {}): Promise<SyncResult> {
  assertWritable(context);
  const plan = await planProjectSync(context, request);
  if (request.expected !== undefined) assertAsPreviewed(plan.entries, request.expected);
  const written: string[] = [];
  for (const entry of plan.entries) {
    const isDue = entry.action === "conflict" ? request.overwrite === true : entry.action !== "unchanged";
    if (!isDue) continue;
    try {
      if (await apply(context, entry)) written.push(entry.path);
    } catch (error) {
      throw error instanceof KitError ? withWritten(error, written) : error;
    }
  }
  return { ...plan, written };
}

async function apply(context: SyncContext, { path, before, after, action }: SyncEntry): Promise<boolean> {
  const expected = before === undefined ? null : new TextEncoder().encode(before);
  if (after !== undefined) await writeFileInside(context, { path, content: after, expected });
  else if (action === "delete" && expected !== null) await removeFileInside(context, { path, expected });
  else return false;
  return true;
}

function withWritten(error: KitError, written: readonly string[]): KitError {
  const { code, message, hint, cause } = error;
  return new KitError({ code, message, ...(hint && { hint }), meta: { ...error.meta, written }, cause });
}

function targetsOf(options: {
  readonly context: SyncContext;
  readonly request: SyncRequest;
  readonly source: SyncFormat;
  readonly files: readonly SyncFile[];
}): readonly SyncFormat[] {
  const { context, request, source, files } = options;
  const present = new Set(files.flatMap(({ records }) => records.map(({ source_type }) => source_type)));
  const formats = request.targets ?? context.targets ?? syncFormats.filter((format) => present.has(format));
  const targets = syncFormats.filter((format) => formats.includes(format) && format !== source);
  if (targets.length > 0) return targets;
  throw new KitError({
    code: "invalid_request",
    message:
      (request.targets ?? context.targets) !== undefined
        ? "A sync needs a target beside its source, and the source is all that is named."
        : "A sync needs a target beside its source, and the project has no other format.",
    hint: "Name what to write (--to), or set guidelines.targets in the configuration.",
  });
}

async function readSyncFile(root: string, path: string): Promise<SyncFile | undefined> {
  const nothing = { path, text: "", records: [] };
  try {
    const read = await readPlacedFile(root, { path });
    if (read === undefined) {
      // Throws where a file or a pipe is in the way of the folder that a new file needs.
      const folder = await findPlace({ root, path: posix.dirname(path), end: "folder" });
      await folder?.close();
      return undefined;
    }
    const { bytes, path: real } = read;
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
    if (Buffer.compare(Buffer.from(text), bytes) !== 0)
      return { ...nothing, problem: "It is not UTF-8 text." };
    const { records } = readGuidelines({ path, text: text.replace(/^\ufeff/, "") });
    return { path, text, records, ...(real === path ? {} : { linksTo: real }) };
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    return {
      ...nothing,
      problem: `${error.message} Put a plain file or folder of the project there, or leave this target out.`,
    };
  }
}
