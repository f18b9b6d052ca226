import { posix } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { findPlace } from "../../files/find-place.ts";
import { sourceLabels } from "../../guidelines/kit-marks.ts";
import { readGuidelines } from "../../guidelines/read-guidelines.ts";
import { planAdoption } from "../../guidelines/sync/plan-adoption.ts";
import { type PlannedFile, planSync, type SyncFile, sourceRecords } from "../../guidelines/sync/plan-sync.ts";
import { type SyncFormat, type SyncTarget, syncFormats, toolTargets } from "../../protocol/enums.ts";
import type { SyncEntry, SyncPlan, SyncRequest, SyncResult, SyncWrite } from "../../protocol/sync.ts";
import { recordPath, writeRecord } from "./sync-record.ts";
import { planToolFiles, presentTools } from "./sync-tool-files.ts";
import type { PlannedToolFile, ToolFilesPlan } from "./tool-files.ts";
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
  readonly targets?: readonly SyncTarget[] | undefined;
  readonly with?: SyncRequest["with"];
  /** The MCP servers of the configuration. */
  readonly servers?: unknown;
}

/**
 * Reads the current guideline files and plans what a sync writes.
 *
 * Throws `invalid_request` without a source, for a source without hand-written content, and without a target.
 */
export async function planProjectSync(context: SyncContext, request: SyncRequest = {}): Promise<SyncPlan> {
  return (await planAll(context, request)).plan;
}

interface WholePlan {
  readonly plan: SyncPlan;
  /** The skills and settings in the plan; undefined if none were asked for. */
  readonly tools: ToolFilesPlan | undefined;
}

async function planAll(context: SyncContext, request: SyncRequest): Promise<WholePlan> {
  const source = request.source ?? context.source;
  const { skills, mcp } = request.with ?? context.with ?? {};
  const hasTools = skills !== undefined || mcp !== undefined;
  if (source === undefined && !hasTools) {
    throw new KitError({
      code: "invalid_request",
      message: "A sync needs one source of truth.",
      meta: { missing: "source" },
      hint: "Name it (--from), or set guidelines.source in the configuration: agents, claude, cursor, steering, copilot, gemini, windsurf, cline or zed.",
    });
  }
  const rules = source === undefined ? undefined : await planRules(context, { ...request, source }, hasTools);
  if (!hasTools) return { plan: { ...noRules, ...rules }, tools: undefined };
  const chosen = request.targets ?? context.targets;
  const present = chosen ?? (await presentTools(context.root));
  const targets = toolTargets.filter((target) => present.includes(target));
  if (targets.length === 0) throw noTarget(chosen !== undefined);
  const { root, servers } = context;
  const tools = await planToolFiles({ root, skills, mcp, targets, servers });
  const { targets: formats = [], ...planned } = { ...noRules, ...rules };
  const files = tools.files.map(toEntry);
  const entries = [...planned.entries, ...withDigests(files)].sort((one, two) =>
    one.path < two.path ? -1 : 1,
  );
  const plan: SyncPlan = {
    ...planned,
    targets: [...new Set<SyncTarget>([...formats, ...targets])],
    entries,
    left_out: [...planned.left_out, ...tools.leftOut],
    read_directly: [...planned.read_directly, ...tools.readDirectly],
    in_sync: entries.every(({ action }) => action === "unchanged"),
  };
  return { plan, tools };
}

const noRules = {
  targets: [],
  source_files: [],
  guidelines: 0,
  left_out: [],
  entries: [],
  read_directly: [],
  in_sync: true,
} satisfies SyncPlan;

function toEntry({ bytes: _, isExecutable: _mode, owned: _keys, ...file }: PlannedToolFile): PlannedFile {
  return file;
}

/** With `isOptional`, a sync that has no target among the formats of rules has no plan. */
async function planRules(
  context: SyncContext,
  request: SyncRequest & { readonly source: SyncFormat },
  isOptional: boolean,
): Promise<SyncPlan | undefined> {
  const { source } = request;
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
  if (targets.length === 0 && isOptional) return undefined;
  if (targets.length === 0) throw noTarget((request.targets ?? context.targets) !== undefined);
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
    if (files.length === count) return { ...plan, entries: withDigests(plan.entries), targets };
  }
}

function withDigests(entries: readonly PlannedFile[]): SyncEntry[] {
  return entries.map((entry) => ({ ...entry, digest: digestOfChange(entry) }));
}

/**
 * Writes the files of a plan; those in conflict only with `overwrite`. With `expected`, throws `conflict` before it writes
 * anything if the plan differs from the preview that the caller has seen. Writes each file whole, and only if its content is still
 * that of the plan. The first file that differs ends the sync with `conflict`; `meta.written` lists the files written before,
 * and another sync continues.
 */
export async function syncProject(context: SyncContext, request: SyncWrite = {}): Promise<SyncResult> {
  assertWritable(context);
  const { plan, tools } = await planAll(context, request);
  const toolFiles = new Map(tools?.files.map((file) => [file.path, file]));
  if (request.expected !== undefined) assertAsPreviewed(plan.entries, request.expected);
  const written: string[] = [];
  const isDue = ({ action }: Pick<SyncEntry, "action">): boolean =>
    action === "conflict" ? request.overwrite === true : action !== "unchanged";
  const isClaimed = tools !== undefined && (await claim(context, tools, isDue));
  for (const entry of plan.entries.filter(isDue)) {
    try {
      if (await apply(context, entry, toolFiles.get(entry.path))) written.push(entry.path);
    } catch (error) {
      throw error instanceof KitError
        ? withWritten(error, isClaimed ? [...written, recordPath] : written)
        : error;
    }
  }
  if ((tools !== undefined && (await remember(context, tools, written))) || isClaimed)
    written.push(recordPath);
  return { ...plan, written };
}

async function apply(
  context: SyncContext,
  { path, before, after, action }: SyncEntry,
  { bytes, isExecutable = false }: Partial<PlannedToolFile> = {},
): Promise<boolean> {
  const expected = bytes?.before ?? (before === undefined ? null : new TextEncoder().encode(before));
  const content = bytes === undefined ? after : bytes.after;
  if (content !== undefined) await writeFileInside(context, { path, content, expected, isExecutable });
  else if (action === "delete" && expected !== null) await removeFileInside(context, { path, expected });
  else return false;
  return true;
}

/**
 * Records what kit is about to write anew. First, so that after a crash kit knows its new files from those of people, which it
 * never removes. Digests of files that kit wrote before stay until the end.
 */
async function claim(
  context: SyncContext,
  { files, record }: ToolFilesPlan,
  isDue: (file: PlannedToolFile) => boolean,
): Promise<boolean> {
  for (const [key, digest] of files.filter(isDue).flatMap(({ owned }) => owned))
    if (digest !== undefined && !record.written.has(key)) record.written.set(key, digest);
  return await writeRecord(context, record);
}

/**
 * Records what kit owns now. Last, so that after a crash a file is either as the record says or as the source says, and the next
 * sync goes on.
 */
async function remember(
  context: SyncContext,
  { files, record }: ToolFilesPlan,
  written: readonly string[],
): Promise<boolean> {
  for (const { path, action, owned } of files) {
    if (action !== "unchanged" && !written.includes(path)) continue;
    for (const [key, digest] of owned)
      if (digest === undefined) record.written.delete(key);
      else record.written.set(key, digest);
  }
  return await writeRecord(context, record);
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
  const formats: readonly SyncTarget[] =
    request.targets ?? context.targets ?? syncFormats.filter((format) => present.has(format));
  return syncFormats.filter((format) => formats.includes(format) && format !== source);
}

function noTarget(isNamed: boolean): KitError {
  return new KitError({
    code: "invalid_request",
    message: isNamed
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
