import { bytesToHex, hexToBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { compileGlob, type Glob } from "../../base/glob/glob.ts";
import { KitError } from "../../base/kit-error.ts";
import { perObject } from "../../base/remember.ts";
import type { GuidelineList } from "../../protocol/guideline.ts";
import type { AppliedGuideline, GuidelineQuery } from "../../protocol/guideline-query.ts";
import {
  compareRecords,
  type GuidelineRecord,
  isWithin,
  relativeTo,
  toGuideline,
  viewsOf,
} from "../guideline-record.ts";

/** A guideline that applies to a path, and why. */
export interface GuidelineMatch {
  /** The reading under the name by which it applies. */
  readonly record: GuidelineRecord;
  readonly reason: Exclude<AppliedGuideline["reason"], "import">;
  /** The glob that matched, as declared. */
  readonly glob?: string;
}

/** Finds the guidelines that apply to a path. Has no mutable state. */
export interface GuidelineMatcher {
  /**
   * Sorted by source file and position; guidelines loaded on request come last. A guideline whose file has aliases comes once for
   * each name of the file that makes it apply.
   */
  match(path: string): GuidelineMatch[];
  /** Whether and why one guideline applies to a path. */
  test(record: GuidelineRecord, path: string): GuidelineMatch | undefined;
}

/** No file system that kit supports has longer paths. */
const maxPathLength = 4096;

/** The guidelines of one scope folder, by the index of their record. */
interface Scope {
  readonly always: readonly number[];
  readonly onRequest: readonly number[];
  readonly globs: readonly { readonly glob: Glob; readonly records: readonly number[] }[];
}

/**
 * Prepares all scopes and globs. A guideline applies to a path below the folder of its scope if its tool always loads it, if it
 * declares no glob, or if one of its globs matches the path relative to that folder.
 *
 * @example
 * ```ts
 * import { createGuidelineMatcher, readGuidelines } from "kit/guidelines";
 *
 * const { records } = readGuidelines({ path: "web/AGENTS.md", text: "Use tabs.\n" });
 * console.log(createGuidelineMatcher(records).match("web/cart.ts").length); // 1
 * ```
 */
export function createGuidelineMatcher(records: readonly GuidelineRecord[]): GuidelineMatcher {
  const sorted: GuidelineRecord[] = [];
  const inScope = new Map<string, number[]>();
  for (const record of [...records].sort(compareRecords))
    for (const view of viewsOf(record)) {
      const members = inScope.get(view.scope);
      if (members === undefined) inScope.set(view.scope, [sorted.length]);
      else members.push(sorted.length);
      sorted.push(view);
    }
  const compile = createGlobs();
  // A path has few folders above it, so most scopes of a large project are never prepared.
  const scopes = new Map<string, Scope>();
  const scopeOf = (folder: string): Scope | undefined => {
    const members = inScope.get(folder);
    if (members === undefined) return undefined;
    const scope = scopes.get(folder) ?? toScope(members, sorted, compile);
    scopes.set(folder, scope);
    return scope;
  };

  return {
    match(given) {
      const path = projectPath(given);
      if (path === undefined) return [];
      const applying: number[] = [];
      const onRequest: number[] = [];
      const globs = new Map<number, string>();
      for (const folder of foldersAbove(path)) {
        const scope = scopeOf(folder);
        if (scope === undefined) continue;
        const relative = relativeTo(path, folder);
        for (const index of scope.always) applying.push(index);
        for (const index of scope.onRequest) onRequest.push(index);
        for (const { glob, records: members } of scope.globs) {
          if (!glob.matches(relative)) continue;
          for (const index of members) {
            if (globs.has(index)) continue;
            globs.set(index, glob.source);
            applying.push(index);
          }
        }
      }
      const inOrder = (list: number[]): number[] => list.sort((a, b) => a - b);
      const found: GuidelineMatch[] = [];
      for (const index of [...inOrder(applying), ...inOrder(onRequest)]) {
        const record = sorted[index];
        if (record !== undefined) found.push(toMatch(record, globs.get(index)));
      }
      return found;
    },
    test(record, given) {
      const path = projectPath(given);
      if (path === undefined || !isWithin(path, record.scope)) return undefined;
      if (isOnRequest(record) || isUnconditional(record)) return toMatch(record, undefined);
      const relative = relativeTo(path, record.scope);
      const source = record.globs.find((each) => compile(each).matches(relative));
      return source === undefined ? undefined : toMatch(record, source);
    },
  };
}

/** Compiles each glob once, when it is first used. */
function createGlobs(): (source: string) => Glob {
  const compiled = new Map<string, Glob>();
  return (source) => {
    const glob = compiled.get(source) ?? compileGlob(source);
    compiled.set(source, glob);
    return glob;
  };
}

function toScope(
  members: readonly number[],
  records: readonly GuidelineRecord[],
  compile: (source: string) => Glob,
): Scope {
  const always: number[] = [];
  const onRequest: number[] = [];
  const groups = new Map<string, number[]>();
  for (const index of members) {
    const record = records[index];
    if (record === undefined) continue;
    if (isOnRequest(record)) onRequest.push(index);
    else if (isUnconditional(record)) always.push(index);
    else
      for (const source of new Set(record.globs)) {
        const group = groups.get(source);
        if (group === undefined) groups.set(source, [index]);
        else group.push(index);
      }
  }
  const globs = Array.from(groups, ([source, group]) => ({ glob: compile(source), records: group }));
  return { always, onRequest, globs };
}

/** The matcher of a list of records that never changes, such as that of an index; prepared once. */
export const matcherOf = perObject(createGuidelineMatcher);

/** Whether the tool loads it on request only: by its name, or after the agent reads its description. */
function isOnRequest(record: Pick<GuidelineRecord, "inclusion">): boolean {
  return record.inclusion === "manual" || record.inclusion === "auto";
}

function isUnconditional(record: GuidelineRecord): boolean {
  return record.inclusion === "always" || record.globs.length === 0;
}

function toMatch(record: GuidelineRecord, glob: string | undefined): GuidelineMatch {
  if (glob !== undefined) return { record, reason: "pattern", glob };
  if (record.inclusion === "manual" || record.inclusion === "auto")
    return { record, reason: record.inclusion };
  return { record, reason: record.scope === "" ? "always" : "nested" };
}

/** "", "a" and "a/b" for "a/b/c.ts". */
function foldersAbove(path: string): string[] {
  const folders = [""];
  for (let slash = path.indexOf("/"); slash !== -1; slash = path.indexOf("/", slash + 1))
    folders.push(path.slice(0, slash));
  return folders;
}

/**
 * Normalizes a path to a project-relative one; `undefined` for a path that is absolute or leads out of the project. The path is
 * only compared with globs, never read.
 */
export function projectPath(given: string): string | undefined {
  if (given.length > maxPathLength) return undefined;
  if (given.startsWith("/") || /^[A-Za-z]:[\\/]/.test(given) || given.includes("\0")) return undefined;
  const parts: string[] = [];
  for (const part of given.split("/")) {
    if (part === "..") return undefined;
    if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.length === 0 ? undefined : parts.join("/");
}

/**
 * The guidelines that pass every filter of a query. `records` are in the order of `compareRecords`, and so is the answer; for a
 * `file`, guidelines loaded on request come last. Count and sources describe the whole match, not the page.
 *
 * Throws `invalid_request` for an invalid cursor.
 *
 * @example
 * ```ts
 * import { createGuidelineMatcher, listGuidelines, readGuidelines } from "kit/guidelines";
 *
 * const { records } = readGuidelines({ path: "AGENTS.md", text: "# Rules\n\n## Style\n\nUse tabs.\n" });
 * console.log(listGuidelines(records, { q: "tabs" }, createGuidelineMatcher(records)).total_count); // 1
 * ```
 */
export function listGuidelines(
  records: readonly GuidelineRecord[],
  query: GuidelineQuery,
  matcher: GuidelineMatcher,
): GuidelineList {
  const hasWords = createWordSearch(query.q ?? "");
  const candidates = query.file === undefined ? records : applying(query.file, records, matcher);
  const found = candidates.filter(
    (record) => (query.source === undefined || record.source_type === query.source) && hasWords(record),
  );
  const counts: Record<string, number> = {};
  for (const { source_type } of found) counts[source_type] = (counts[source_type] ?? 0) + 1;

  const byFile = query.file !== undefined;
  const start = query.cursor === undefined ? 0 : startBehind(found, readCursor(query.cursor), byFile);
  const end = query.limit === undefined ? found.length : start + Math.max(1, query.limit);
  const last = end < found.length ? found[end - 1] : undefined;
  return {
    guidelines: found.slice(start, end).map(toGuideline),
    total_count: found.length,
    counts_by_source: counts,
    ...(last !== undefined && {
      next_cursor: bytesToHex(utf8ToBytes(JSON.stringify([last.source_file, last.position, last.inclusion]))),
    }),
  };
}

/** Each guideline once, by whichever name of its file it applies. */
function applying(
  file: string,
  records: readonly GuidelineRecord[],
  matcher: GuidelineMatcher,
): readonly GuidelineRecord[] {
  const matched = new Set<string>();
  const found = matcher.match(file).flatMap(({ record }) => {
    if (matched.has(record.id)) return [];
    matched.add(record.id);
    return [record];
  });
  if (!found.some(({ readings }) => readings !== undefined)) return found;
  const byId = new Map(records.map((record) => [record.id, record]));
  return found.map((record) => byId.get(record.id) ?? record);
}

/** The position of the last guideline of a page; it stays valid when other files change. */
type Place = Pick<GuidelineRecord, "source_file" | "position" | "inclusion">;

function readCursor(cursor: string): Place {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(hexToBytes(cursor)));
    if (Array.isArray(value)) {
      const [source_file, position, inclusion]: unknown[] = value;
      if (typeof source_file === "string" && typeof position === "number" && isInclusion(inclusion))
        return { source_file, position, inclusion };
    }
  } catch {
    // Reported below: it is not a cursor.
  }
  throw new KitError({
    code: "invalid_request",
    message: "cursor is not the next_cursor of a list.",
    meta: { issues: [{ path: "query.cursor", message: "Not a cursor of this list." }] },
  });
}

function isInclusion(value: unknown): value is GuidelineRecord["inclusion"] {
  return value === "always" || value === "pattern" || value === "auto" || value === "manual";
}

function startBehind(found: readonly GuidelineRecord[], place: Place, byFile: boolean): number {
  const rank = (each: Place): number => (byFile && isOnRequest(each) ? 1 : 0);
  const index = found.findIndex(
    (record) =>
      rank(record) > rank(place) || (rank(record) === rank(place) && compareRecords(record, place) > 0),
  );
  return index === -1 ? found.length : index;
}

type Searched = Pick<GuidelineRecord, "title" | "content">;

/** A signature of a record, which rules out most records without reading their text. */
interface Signature {
  /** A bit for every pair of neighbouring ASCII characters in the lower-case text. */
  readonly bits: Uint32Array;
  /** The lower-case text, once it was needed. */
  text?: string;
}

/** 1,024 bits: a text of 500 characters sets about a quarter of them. */
const signatureWords = 32;
const pairMask = signatureWords * 32 - 1;

// Records of unchanged files stay the same objects, so a change costs the signatures of its file.
const signatures = new WeakMap<Searched, Signature>();

/**
 * Returns a test of whether a record has every word of a query in its title or content, in any case, also as part of a word. An
 * empty query matches every record.
 */
export function createWordSearch(query: string): (record: Searched) => boolean {
  const words = [...new Set(query.toLowerCase().split(/\s+/))].filter((word) => word !== "");
  const queryWords = words.map((word) => ({ word, pairs: pairsOf(word) }));
  return (record) => {
    if (queryWords.length === 0) return true;
    const signature = signatureOf(record);
    const { bits } = signature;
    for (const { pairs } of queryWords) {
      for (const pair of pairs) if (((bits[pair >> 5] ?? 0) & (1 << (pair & 31))) === 0) return false;
    }
    signature.text ??= `${record.title}\n${record.content}`.toLowerCase();
    for (const { word } of queryWords) if (!signature.text.includes(word)) return false;
    return true;
  };
}

function signatureOf(record: Searched): Signature {
  const known = signatures.get(record);
  if (known !== undefined) return known;
  const bits = new Uint32Array(signatureWords);
  setPairs(bits, record.title);
  setPairs(bits, record.content);
  const signature: Signature = { bits };
  signatures.set(record, signature);
  return signature;
}

function setPairs(bits: Uint32Array, text: string): void {
  let before = 0;
  for (let at = 0; at < text.length; at += 1) {
    let code = text.charCodeAt(at);
    if (code > 127) {
      setPairsOfOtherScripts(bits, text);
      return;
    }
    if (code >= 65 && code <= 90) code += 32;
    const pair = pairOf(before, code);
    bits[pair >> 5] = (bits[pair >> 5] ?? 0) | (1 << (pair & 31));
    before = code;
  }
}

/** Letters such as the Kelvin sign become ASCII in lower case, so this uses Unicode's lower case. */
function setPairsOfOtherScripts(bits: Uint32Array, text: string): void {
  for (const pair of pairsOf(text.toLowerCase())) {
    bits[pair >> 5] = (bits[pair >> 5] ?? 0) | (1 << (pair & 31));
  }
}

function pairsOf(lowerCase: string): readonly number[] {
  const pairs: number[] = [];
  for (let at = 1; at < lowerCase.length; at += 1) {
    const [before, code] = [lowerCase.charCodeAt(at - 1), lowerCase.charCodeAt(at)];
    if (before <= 127 && code <= 127) pairs.push(pairOf(before, code));
  }
  return pairs;
}

const pairOf = (before: number, code: number): number => (before * 37 + code * 5) & pairMask;
