import type { SyncEntry, SyncFormat, SyncPlan } from "../../protocol/sync.ts";
import { resolveImport } from "../explain/explain-by-table.ts";
import { isOnlyImports } from "../guideline-imports.ts";
import { folderOf, type GuidelineRecord } from "../guideline-record.ts";
import {
  managedFileOf,
  managedPartOf,
  markFile,
  putManagedPart,
  removeManagedPart,
  scanShared,
} from "../kit-marks.ts";
import { readsItself, type ToolId, toolInfo } from "../tools/tool-table.ts";
import { type DesiredFile, globsFromRoot, renderTarget, sharedFile } from "./render-targets.ts";

/** A guideline file on disk. */
export interface SyncFile {
  readonly path: string;
  /** With its byte order mark and line ends. */
  readonly text: string;
  readonly records: readonly GuidelineRecord[];
  /** Set where the path is a link: the file that it leads to. */
  readonly linksTo?: string;
  /** Why it must not be overwritten: it is not text, not a regular file, or outside of the project. */
  readonly problem?: string;
}

export interface SyncInput {
  readonly source: SyncFormat;
  readonly targets: readonly SyncFormat[];
  /** Every guideline file of the project, and every existing path that a target can use. */
  readonly files: readonly SyncFile[];
  /** The real path of a name, through linked folders too; without it, no folder is a link. */
  readonly realOf?: (path: string) => string;
}

/** The tool that owns the files of each format; AGENTS.md has no owner. */
const toolOf: Readonly<Record<SyncFormat, ToolId | undefined>> = {
  agents: undefined,
  fw_c: "claude",
  fw_b: "cursor",
  steering: "kiro",
  copilot: "copilot",
  gemini: "gemini",
  windsurf: "windsurf",
  cline: "cline",
  zed: "zed",
};

/** Personal files are not shared with the team. */
const personal = /(?:^|\/)CLAUDE\.local\.md$/;

/** The hand-written guidelines of a format: the source of a sync. A file counts once, under one name. */
export function sourceRecords(files: readonly SyncFile[], source: SyncFormat): readonly GuidelineRecord[] {
  const seen = new Map<string, string>();
  return files
    .filter(({ path }) => !personal.test(path))
    .flatMap((file) => file.records.map((record) => ({ record, file })))
    .filter(({ record, file: { path, linksTo = path } }) => {
      if (record.source_type !== source || record.managed !== undefined) return false;
      const known = seen.get(linksTo) ?? path;
      seen.set(linksTo, known);
      return known === path;
    })
    .map(({ record }) => record);
}

/** The file that a path leads to. */
export function realPathOf(files: readonly SyncFile[], path: string): string {
  return files.find((file) => file.path === path)?.linksTo ?? path;
}

export type PlannedFile = Omit<SyncEntry, "digest">;

/** A plan of the given targets, whose files have no digest yet. */
export interface PlannedSync extends Omit<SyncPlan, "entries" | "targets"> {
  readonly entries: readonly PlannedFile[];
}

/**
 * Plans the writes that give every target the guidelines of the source.
 *
 * kit changes only text that it has marked: parts between its comments, and files with its mark. Every other byte stays
 * unchanged. Marked text that a user has edited, and hand-written text under the same title for the same files, are conflicts.
 *
 * @see decisions/2026-11-21-guideline-sync.md
 */
export function planSync({
  source,
  targets,
  files,
  realOf: followed = (path) => path,
}: SyncInput): PlannedSync {
  const records = sourceRecords(files, source);
  const byPath = new Map(files.map((file) => [file.path, file]));
  const realOf = (path: string): string => byPath.get(path)?.linksTo ?? followed(path);
  const sourceFolders = new Set(records.map(({ source_file }) => folderOf(realOf(source_file))));
  const sources = new Set(records.map(({ source_file }) => realOf(source_file)));
  const entries: PlannedFile[] = [];
  const leftOut: string[] = [];
  const readDirectly: string[] = [];
  const byHandNames = files
    .filter(({ records: all }) => all.some(({ managed, content }) => managed === undefined && content !== ""))
    .map(({ path }) => path);
  const writtenNames: string[] = [];
  for (const format of targets) {
    const tool = toolOf[format];
    // Only a tool that reads the first file of a list can be kept from the source by the files of other targets.
    const others =
      tool !== undefined && toolInfo(tool).readsOne ? [...byHandNames, ...writtenNames] : byHandNames;
    const read = filesReadBy(tool, records, others);
    if (tool !== undefined && read.size > 0)
      readDirectly.push(`${toolInfo(tool).label} reads ${listed([...read])} itself.`);
    // A hand-written file keeps its path; the guideline gets another file name.
    const isTaken = (path: string): boolean => isOfOthers(byPath.get(path));
    const rendered = renderTarget(
      withoutOwn(
        records.filter((record) => !read.has(record.source_file) && !onlyImportsRead(record, tool, others)),
        format,
        realOf,
      ),
      format,
      isTaken,
    );
    writtenNames.push(...rendered.files.map(({ path }) => path));
    leftOut.push(...rendered.leftOut);
    const ofFormat = files.filter(({ records: own }) =>
      own.some(({ source_type }) => source_type === format),
    );
    const byHand = Map.groupBy(
      ofFormat
        .flatMap((file) => file.records.map((record) => ({ file, record })))
        .filter(({ record }) => record.managed === undefined),
      ({ record }) => record.title,
    );
    for (const desired of rendered.files) {
      const file = byPath.get(desired.path);
      const [folder, realFolder] = [folderOf(desired.path), folderOf(realOf(desired.path))];
      if (desired.kind === "file" && folder !== realFolder && sourceFolders.has(realFolder)) {
        const reason = `${folder} is a link to ${realFolder}, which is the source.`;
        entries.push({ path: folder, format, action: "unchanged", reason, losses: [] });
        continue;
      }
      entries.push(planFile({ source, format, desired, file, files: byPath, byHand }));
    }
    const renderedPaths = new Set(rendered.files.map(({ path }) => path));
    // A target that is another name of the source is the source.
    const stale = ofFormat.filter(({ path }) => !renderedPaths.has(path) && !sources.has(realOf(path)));
    entries.push(...stale.flatMap((file) => planRemoval(file, format)));
  }
  // The source can hold parts that an earlier sync in the other direction wrote.
  const sourceFiles = files.filter(({ records: all }) =>
    all.some(({ source_type }) => source_type === source),
  );
  entries.push(...sourceFiles.flatMap((file) => planRemoval(file, source)));
  const once = onePerFile(entries, realOf);
  return {
    source,
    source_files: [...new Set(records.map(({ source_file }) => source_file))],
    guidelines: records.length,
    left_out: leftOut,
    read_directly: readDirectly,
    entries: once,
    in_sync: once.every(({ action }) => action === "unchanged"),
  };
}

/**
 * A shared target file that is also a source does not get its own guidelines again. If it has all of them, they are kept, so that
 * the target counts as in sync.
 */
function withoutOwn(
  records: readonly GuidelineRecord[],
  format: SyncFormat,
  realOf: (path: string) => string,
): readonly GuidelineRecord[] {
  const isOwn = ({ scope, source_file }: GuidelineRecord): boolean => {
    const shared = sharedFile(format, scope);
    return shared !== undefined && realOf(source_file) === realOf(shared);
  };
  const mixed = new Set(records.filter((record) => !isOwn(record)).map(({ scope }) => scope));
  return records.filter((record) => !isOwn(record) || !mixed.has(record.scope));
}

/** Whether a guideline says nothing but `@AGENTS.md`, and the tool of the target reads that file itself. */
function onlyImportsRead(
  { content, imports, source_file }: GuidelineRecord,
  tool: ToolId | undefined,
  others: readonly string[],
): boolean {
  if (tool === undefined || imports.length === 0 || !isOnlyImports(content)) return false;
  return imports.every(({ path }) => {
    const imported = resolveImport(path, folderOf(source_file));
    return imported !== undefined && readsItself(tool, imported, others);
  });
}

/** The source's files that the tool of a target reads itself. */
function filesReadBy(
  tool: ToolId | undefined,
  records: readonly GuidelineRecord[],
  others: readonly string[],
): ReadonlySet<string> {
  if (tool === undefined) return new Set();
  const sources = new Set(records.map(({ source_file }) => source_file));
  const read = new Set([...sources].filter((name) => readsItself(tool, name, others)));
  // A tool that reads only one file would stop reading this one once the other file exists.
  return toolInfo(tool).readsOne && read.size < sources.size ? new Set() : read;
}

/** "a, b and 3 more". */
function listed(names: readonly string[]): string {
  const first = names.slice(0, 3).join(", ");
  return names.length > 3 ? `${first} and ${names.length - 3} more` : first;
}

/** Each path once, in order, and each file written once, by whichever of its names. */
function onePerFile(
  entries: readonly PlannedFile[],
  realOf: (path: string) => string,
): readonly PlannedFile[] {
  const byPath = new Map<string, PlannedFile>();
  const written = new Map<string, string>();
  for (const entry of entries) {
    const known = byPath.get(entry.path);
    if (known !== undefined && (known.action !== "unchanged" || entry.action === "unchanged")) continue;
    const other = entry.action === "unchanged" ? undefined : written.get(realOf(entry.path));
    if (entry.action !== "unchanged" && other === undefined) written.set(realOf(entry.path), entry.path);
    const { path, format } = entry;
    const reason = `It is the same file as ${other}.`;
    byPath.set(path, other === undefined ? entry : { path, format, action: "unchanged", reason, losses: [] });
  }
  return [...byPath.values()].sort((one, two) => (one.path < two.path ? -1 : 1));
}

interface FileContext {
  readonly source: SyncFormat;
  readonly format: SyncFormat;
  readonly desired: DesiredFile;
  readonly file: SyncFile | undefined;
  /** All files, by path. */
  readonly files: ReadonlyMap<string, SyncFile>;
  /** The hand-written guidelines of the target format, by title. */
  readonly byHand: ReadonlyMap<string, readonly HandWritten[]>;
}

interface HandWritten {
  readonly file: SyncFile;
  readonly record: GuidelineRecord;
}

/**
 * An unreadable path is a conflict: in a folder that leads out of the project or has no permission, every other name is
 * unreadable too, and the search for a free name would never end.
 */
function isOfOthers(file: SyncFile | undefined): boolean {
  return file !== undefined && file.problem === undefined && managedFileOf(file.text) === undefined;
}

function planFile(context: FileContext): PlannedFile {
  const { source, format, desired, file } = context;
  const { path, losses } = desired;
  const before = file?.text;
  const base = { path, format, losses, before };
  if (file?.problem !== undefined) return { ...base, action: "conflict", reason: file.problem };
  const there = alreadyThere(context);
  if (there !== undefined) {
    const { path, text } = there.file;
    return { path, format, losses: [], before: text, after: text, action: "unchanged", reason: there.reason };
  }
  const after =
    desired.kind === "part"
      ? putManagedPart(before ?? "", desired.text, source)
      : markFile(desired.text, source);
  const conflict = conflictOf(context, after);
  if (conflict !== undefined) return { ...base, after, action: "conflict", reason: conflict };
  return {
    ...base,
    after,
    action: before === undefined ? "create" : before === after ? "unchanged" : "update",
  };
}

/** The file that has the guidelines without a write, and how. */
function alreadyThere({
  desired,
  file,
  files,
  byHand,
}: FileContext): { readonly file: SyncFile; readonly reason: string } | undefined {
  if (desired.kind === "file") {
    if (file !== undefined) return undefined;
    const [guideline] = desired.guidelines;
    const rivals = byHand.get(guideline?.title ?? "") ?? [];
    const same = guideline && rivals.find(({ record }) => hasSameContent(record, guideline));
    if (same === undefined) return undefined;
    const isSource =
      (same.file.linksTo ?? same.file.path) === realPathOf([...files.values()], guideline?.source_file ?? "");
    return {
      file: same.file,
      reason: isSource ? `It is the same file as ${guideline?.source_file}.` : "It says the same already.",
    };
  }
  if (file === undefined) return undefined;
  const sources = [...new Set(desired.guidelines.map(({ source_file }) => source_file))];
  const real = (path: string): string => files.get(path)?.linksTo ?? path;
  if (sources.every((source) => real(source) === real(desired.path))) {
    return { file, reason: `It is the same file as ${sources.join(", ")}.` };
  }
  if (managedPartOf(scanShared(file.text)) !== undefined) return undefined;
  const imported = new Set(
    file.records.flatMap(({ imports }) => imports.map((one) => one.path.replace(/^\.\//, ""))),
  );
  const names = sources.map((source) => source.slice(source.lastIndexOf("/") + 1));
  if (desired.text.startsWith("@") && names.every((name) => imported.has(name))) {
    return { file, reason: `It imports ${names.join(", ")} already.` };
  }
  const isThere = (guideline: GuidelineRecord): boolean =>
    byHand.get(guideline.title)?.some((one) => one.file === file && hasSameContent(one.record, guideline)) ??
    false;
  return desired.guidelines.every(isThere) ? { file, reason: "It says the same already." } : undefined;
}

function conflictOf({ desired, file, byHand }: FileContext, after: string): string | undefined {
  if (desired.kind === "part") {
    const part = file && managedPartOf(scanShared(file.text));
    if (part === "damaged") return "The comments around the part that kit writes are damaged.";
    if (part?.isIntact === false)
      return `The part that kit writes was edited by hand (line ${part.openLine}).`;
    const written = managedPartOf(scanShared(after));
    if (written === undefined || written === "damaged" || !written.isIntact) {
      return "The file leaves a code fence, a comment or an HTML block open.";
    }
  } else if (file !== undefined && managedFileOf(file.text)?.isIntact === false) {
    return "kit wrote this file, and it was edited by hand.";
  }
  return contradiction(desired, byHand);
}

/** Hand-written guidelines under the same title for the same files. */
function contradiction(desired: DesiredFile, byHand: FileContext["byHand"]): string | undefined {
  for (const guideline of desired.guidelines) {
    const rivals = byHand.get(guideline.title)?.map(({ record }) => record) ?? [];
    const other = rivals.find((one) => isAboutTheSame(one, guideline) && !hasSameContent(one, guideline));
    if (other === undefined) continue;
    return `${other.source_file}, line ${other.span.start_line}, has a "${other.title}" of its own with other text.`;
  }
  return undefined;
}

/** Files and parts that kit wrote earlier and that no target needs any more. */
function planRemoval(file: SyncFile, format: SyncFormat): readonly PlannedFile[] {
  if (file.problem !== undefined || file.linksTo !== undefined) return [];
  const base = { path: file.path, format, before: file.text, losses: [] };
  const managed = managedFileOf(file.text);
  if (managed !== undefined) {
    const reason = "kit wrote this file for a guideline that is gone, and it was edited by hand.";
    return [managed.isIntact ? { ...base, action: "delete" } : { ...base, action: "conflict", reason }];
  }
  const part = managedPartOf(scanShared(file.text));
  if (part === undefined) return [];
  if (part === "damaged" || !part.isIntact) {
    const reason = "The part that kit wrote is not needed any more, and it was edited by hand.";
    return [{ ...base, action: "conflict", reason }];
  }
  const after = removeManagedPart(file.text);
  if (after.replace(/^\ufeff/, "").trim() === "") return [{ ...base, action: "delete" }];
  return [{ ...base, action: "update", after }];
}

function hasSameContent(one: GuidelineRecord, other: GuidelineRecord): boolean {
  return isAboutTheSame(one, other) && sameText(one.content, other.content);
}

/** Whether two guidelines have one title and apply to the same files. */
function isAboutTheSame(one: GuidelineRecord, other: GuidelineRecord): boolean {
  return one.title === other.title && audienceOf(one) === audienceOf(other);
}

/** The files that a guideline applies to: its folder, or globs from the root. */
export function audienceOf({ scope, inclusion, globs }: GuidelineRecord): string {
  return globsFromRoot({ scope, globs: inclusion === "pattern" ? globs : [] }).join();
}

export function sameText(one: string, other: string): boolean {
  const plain = (text: string): string => text.replace(/\r\n?/g, "\n").trim();
  return plain(one) === plain(other);
}
