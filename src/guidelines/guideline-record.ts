import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { Guideline } from "../protocol/guideline.ts";
import type { GuidelineDraft } from "./adapter.ts";

/** A guideline as the index stores it: the draft, its id, and its place. */
export interface GuidelineRecord extends GuidelineDraft {
  readonly id: string;
  /** POSIX, relative to the project root. */
  readonly source_file: string;
  /** Zero-based, in the order of the file. */
  readonly position: number;
  /** Other names of the file: links inside the project that lead to it. */
  readonly aliases?: readonly string[];
  /** The name under which it is read, where that is not `source_file`. */
  readonly read_as?: string;
  /** Set if Git ignores the file: other clones do not have it. */
  readonly is_ignored?: true;
  /** The guideline as tools read it under other names. */
  readonly readings?: readonly Reading[];
}

/** The reading of a file under one of its aliases. */
export interface Reading extends Pick<GuidelineDraft, "tool" | "scope" | "inclusion" | "globs"> {
  readonly read_as: string;
}

/**
 * The id of a guideline as a rule: `AGENTS.md#money` for a section, the path for a whole file and for the text before its first
 * section. Unlike `id`, it does not change with the case or the punctuation of a title.
 */
export function ruleIdOf({ source_file, section }: Pick<GuidelineRecord, "source_file" | "section">): string {
  return section === undefined ? source_file : `${source_file}#${section}`;
}

/** The name that decides how tools read the file of a guideline. */
export function nameOf(record: Pick<GuidelineRecord, "source_file" | "read_as">): string {
  return record.read_as ?? record.source_file;
}

/** The record, and one record per alias of its file. All have the same id. */
export function viewsOf(record: GuidelineRecord): readonly GuidelineRecord[] {
  return record.readings === undefined
    ? [record]
    : [record, ...record.readings.map((reading) => ({ ...record, ...reading }))];
}

/** The order of every list: by file, then by position. */
export function compareRecords(
  a: Pick<GuidelineRecord, "source_file" | "position">,
  b: Pick<GuidelineRecord, "source_file" | "position">,
): number {
  if (a.source_file !== b.source_file) return a.source_file < b.source_file ? -1 : 1;
  return a.position - b.position;
}

/**
 * Converts a record to the guideline of the API.
 *
 * @example
 * ```ts
 * import { readGuidelines, toGuideline } from "kit/guidelines";
 *
 * const { records } = readGuidelines({ path: "AGENTS.md", text: "Use tabs.\n" });
 * console.log(records.map(toGuideline));
 * ```
 */
export function toGuideline(record: GuidelineRecord): Guideline {
  const pattern = filePatternOf(record);
  return {
    id: record.id,
    title: record.title,
    content: record.content,
    source_type: record.source_type,
    source_file: record.source_file,
    aliases: record.aliases,
    file_pattern: pattern,
    tags: record.tags,
    is_sample: record.source_type === "sample",
    is_ignored: record.is_ignored,
  };
}

/** The declared globs, joined by commas; `undefined` if there is none. */
export function filePatternOf(draft: Pick<GuidelineDraft, "globs">): string | undefined {
  return draft.globs.length === 0 ? undefined : draft.globs.join(",");
}

/**
 * The first 16 hex digits of SHA-256 over `<source_file>:<title>`; from the second guideline of the
 * same file and title on, over `<source_file>:<title>:<n>` with n = 2, 3, …
 *
 * @see docs/guidelines.md
 */
export function guidelineId(sourceFile: string, title: string, n = 1): string {
  const name = n === 1 ? `${sourceFile}:${title}` : `${sourceFile}:${title}:${n}`;
  return bytesToHex(sha256(utf8ToBytes(name)).subarray(0, 8));
}

/**
 * The records of one file's drafts. The ids depend only on that file.
 *
 * A title can equal the numbered form of another title (`A:2` if `A` occurs twice); the later record then gets the next number.
 */
export function assignGuidelineIds(sourceFile: string, drafts: readonly GuidelineDraft[]): GuidelineRecord[] {
  const taken = new Set<string>();
  const sections = new Map<string, number>();
  const counts = new Map<string, number>();
  return drafts.map((draft, position) => {
    let n = (counts.get(draft.title) ?? 0) + 1;
    let id = guidelineId(sourceFile, draft.title, n);
    while (taken.has(id)) {
      n += 1;
      id = guidelineId(sourceFile, draft.title, n);
    }
    counts.set(draft.title, n);
    taken.add(id);
    const section = draft.section === undefined ? {} : { section: freeName(draft.section, sections) };
    return { ...draft, ...section, id, source_file: sourceFile, position };
  });
}

/** The name itself, or with a number where it is taken: `money-2`. `taken` has the names, each with the last number that was tried. */
function freeName(name: string, taken: Map<string, number>): string {
  let n = (taken.get(name) ?? 0) + 1;
  let free = n === 1 ? name : `${name}-${n}`;
  while (taken.has(free) && free !== name) {
    n += 1;
    free = `${name}-${n}`;
  }
  taken.set(name, n);
  if (free !== name) taken.set(free, 1);
  return free;
}

/** The folder of a project-relative path; "" for the root. */
export function folderOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? "" : path.slice(0, slash);
}

/** The parent of the innermost folder `name` (".cursor") in a path. */
export function holderOf(path: string, name: string): string {
  const at = `/${path}`.lastIndexOf(`/${name}/`);
  return at <= 0 ? "" : path.slice(0, at - 1);
}

/** Whether a path is in a folder or below it; every path is below "". */
export function isWithin(path: string, folder: string): boolean {
  return folder === "" || path.startsWith(`${folder}/`);
}

/** A path relative to a folder above it. */
export function relativeTo(path: string, folder: string): string {
  return folder === "" ? path : path.slice(folder.length + 1);
}
