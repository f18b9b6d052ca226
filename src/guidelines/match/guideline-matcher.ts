import { compileGlob, type Glob } from "../../base/glob/glob.ts";
import type { AppliedGuideline } from "../../protocol/guideline-query.ts";
import { splitOutsideBraces } from "../../specs/markdown/characters.ts";
import { compareRecords, type GuidelineRecord, isWithin, relativeTo, viewsOf } from "../guideline-record.ts";

/** A guideline that applies to a path, and why. */
export interface GuidelineMatch {
  /** The reading under the name by which it applies. */
  readonly record: GuidelineRecord;
  readonly reason: Exclude<AppliedGuideline["reason"], "import">;
  /** The glob that matched, as declared. */
  readonly glob?: string;
}

/** Answers which guidelines apply to a path; compiled once, it only reads. */
export interface GuidelineMatcher {
  /**
   * Sorted by source file and position; guidelines loaded on request come last. One whose file has
   * aliases comes once for each of its names that makes it apply.
   */
  match(path: string): GuidelineMatch[];
  /** Whether and why one guideline applies to a path. */
  test(record: GuidelineRecord, path: string): GuidelineMatch | undefined;
}

/** The file systems that kit runs on have no longer paths. */
const maxPathLength = 4096;

/** The guidelines of one scope folder, by the index of their record. */
interface Scope {
  readonly always: number[];
  readonly asked: number[];
  readonly globs: { readonly glob: Glob; readonly records: number[] }[];
}

/**
 * Compiles all scopes and globs. A guideline applies to a path that lies below the folder of its scope
 * when its tool always loads it, or when it declares no glob, or when one of its globs matches the path
 * relative to that folder.
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
  const sorted = [...records].sort(compareRecords).flatMap(viewsOf);
  const scopes = new Map<string, Scope>();
  const compiled = new Map<string, Glob>();
  const compile = (source: string): Glob => {
    const known = compiled.get(source);
    if (known !== undefined) return known;
    const glob = compileGlob(source);
    compiled.set(source, glob);
    return glob;
  };
  const groups = new Map<string, number[]>();
  for (const [index, record] of sorted.entries()) {
    const scope = scopes.get(record.scope) ?? { always: [], asked: [], globs: [] };
    scopes.set(record.scope, scope);
    if (isAsked(record)) scope.asked.push(index);
    else if (isUnconditional(record)) scope.always.push(index);
    else {
      for (const source of new Set(record.globs)) {
        const key = `${record.scope}\n${source}`;
        const group = groups.get(key);
        if (group !== undefined) group.push(index);
        else {
          const members = [index];
          groups.set(key, members);
          scope.globs.push({ glob: compile(source), records: members });
        }
      }
    }
  }

  return {
    match(given) {
      const path = projectPath(given);
      if (path === undefined) return [];
      const applying: number[] = [];
      const asked: number[] = [];
      const globs = new Map<number, string>();
      for (const folder of foldersAbove(path)) {
        const scope = scopes.get(folder);
        if (scope === undefined) continue;
        const relative = relativeTo(path, folder);
        for (const index of scope.always) applying.push(index);
        for (const index of scope.asked) asked.push(index);
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
      for (const index of [...inOrder(applying), ...inOrder(asked)]) {
        const record = sorted[index];
        if (record !== undefined) found.push(toMatch(record, globs.get(index)));
      }
      return found;
    },
    test(record, given) {
      const path = projectPath(given);
      if (path === undefined || !isWithin(path, record.scope)) return undefined;
      if (isAsked(record) || isUnconditional(record)) return toMatch(record, undefined);
      const relative = relativeTo(path, record.scope);
      const source = record.globs.find((each) => compile(each).matches(relative));
      return source === undefined ? undefined : toMatch(record, source);
    },
  };
}

/** Loaded on request only: by its name, or by the agent that reads its description. */
export function isAsked(record: Pick<GuidelineRecord, "inclusion">): boolean {
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
 * A path as files of the project are named, or nothing for one that is absolute or leaves the project.
 * It is only compared with globs, never read.
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

const patternLine = /^_File pattern: (`+)(.+)\1_$/;

/**
 * The line under a sub-heading that carries a `file_pattern` in formats without front matter:
 * ``_File pattern: `src/**\/*.ts`_``. Text with control characters is spelled as a JSON string.
 */
export function toPatternLine(filePattern: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a line break would end the line
  const isPlain = !/[\u0000-\u001f\u007f]|^"|^\s|\s$/.test(filePattern);
  const text = isPlain ? filePattern : JSON.stringify(filePattern);
  const longest = Math.max(0, ...Array.from(text.matchAll(/`+/g), (run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  // CommonMark strips one space from both ends, so that a span can begin with a backtick.
  const padding = text.startsWith("`") || text.endsWith("`") ? " " : "";
  return `_File pattern: ${fence}${padding}${text}${padding}${fence}_`;
}

/** The globs of such a line; undefined for any other line. */
export function readPatternLine(line: string): string[] | undefined {
  const match = patternLine.exec(line);
  const inside = match?.[2];
  if (inside === undefined || inside.startsWith("`") || inside.endsWith("`")) return undefined;
  const text = /^ .*` $|^ `.* $/.test(inside) ? inside.slice(1, -1) : inside;
  return splitOutsideBraces(text.startsWith('"') ? (parsedString(text) ?? text) : text);
}

function parsedString(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
