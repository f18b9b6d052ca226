import { KitError } from "../../base/kit-error.ts";
import { createIgnoreScope, type IgnoreScope, isSkippedName } from "../../files/ignore-scope.ts";
import { invalid, joinPath } from "../../files/obstacle.ts";
import type { GlobOptions, GrepMatch, GrepRequest } from "../contract.ts";
import { splitGlob } from "../host/search/glob.ts";
import { isBinary, searchLimits } from "../host/search/grep.ts";
import { compileLinePattern, createPace, scanLines } from "../host/search/scan-lines.ts";
import { compileNameOrPathGlob, compileSearchGlob } from "../host/search/walk-files.ts";
import { fromWorkingFolder } from "../host/workspace-path.ts";
import { readArchive, unpack } from "./archive.ts";
import { answer, namesOf, pathIn, type RemoteView } from "./remote-view.ts";
import { mostFetched, scripts, withInput } from "./scripts.ts";

const budgetMs = 30_000;
/** How many files that may match are fetched in one round trip. */
const filesAtOnce = 2_000;

interface Walk {
  readonly kind: "file" | "folder";
  /** Where the path leads, relative to the root. */
  readonly path: string;
  /** Files below that are not left out, in the order of a walk, relative to the root. */
  readonly files: readonly string[];
  /** Links below to files of the workspace. */
  readonly links: ReadonlySet<string>;
}

/** Lists files by a glob, and links to files of the workspace: one round trip, two below a folder that is ignored. */
export async function globRemotely(
  view: RemoteView,
  pattern: string,
  options: GlobOptions,
): Promise<{ readonly paths: readonly string[]; readonly truncated: boolean }> {
  options.signal?.throwIfAborted();
  const { folder, rest } = splitGlob(pattern);
  const accepts = compileSearchGlob(rest);
  const from = pathIn(view, options.path ?? "");
  const inside = pathIn({ ...view, cwd: from }, folder);
  const walk = await walkRemotely(view, inside, { signal: options.signal }).catch((error: unknown) => {
    if (folder !== "" && error instanceof KitError && error.code === "not_found") return undefined;
    throw error;
  });
  if (walk === undefined) return { paths: [], truncated: false };
  if (walk.kind === "file") {
    if (folder !== "") return { paths: [], truncated: false };
    throw invalid(`${inside} is a file.`);
  }
  const below = walk.path === "" ? 0 : walk.path.length + 1;
  const found = [...walk.files, ...walk.links].filter((path) => accepts(path.slice(below)));
  const paths = found.sort(byFolder).map((path) => fromWorkingFolder(view.cwd, path));
  const most = options.maxResults ?? 1_000;
  return { paths: paths.slice(0, most), truncated: paths.length > most };
}

/** Searches a file, or the files below a folder: two round trips, for few or small files. */
export async function grepRemotely(
  view: RemoteView,
  request: GrepRequest,
): Promise<{ readonly matches: readonly GrepMatch[]; readonly truncated: boolean }> {
  request.signal?.throwIfAborted();
  const ignoreCase = request.ignoreCase ?? false;
  const pattern = await compileLinePattern(request.pattern, ignoreCase);
  const accepts = request.glob === undefined ? () => true : compileNameOrPathGlob(request.glob);
  const walk = await walkRemotely(view, pathIn(view, request.path ?? ""), { signal: request.signal });
  const below = walk.path === "" ? 0 : walk.path.length + 1;
  const isFile = walk.kind === "file";
  const files = isFile ? walk.files : walk.files.filter((path) => accepts(path.slice(below)));
  const most = request.maxMatches ?? 1_000;
  // The network takes its time before there is anything to match.
  const pace = createPace(request.signal, budgetMs);
  const matches: GrepMatch[] = [];
  const needed = textsOf(request.pattern, ignoreCase).join("\n");
  for (let at = 0; at < files.length; at += filesAtOnce) {
    const { contents, isCut } = await fetchFiles(view, files.slice(at, at + filesAtOnce), {
      maxBytes: isFile ? searchLimits.maxNamedFileBytes : searchLimits.maxFileBytes,
      needed,
      ignoreCase,
      signal: request.signal,
    });
    for (const { path, content } of contents) {
      if (isBinary(content)) continue;
      const text = content.toString("utf8").replaceAll("\r\n", "\n");
      for await (const match of scanLines(text, pattern, pace)) {
        if (matches.length >= most) return { matches, truncated: true };
        matches.push({ path: fromWorkingFolder(view.cwd, path), ...match });
      }
      if (pace.isOver()) return { matches, truncated: true };
    }
    if (isCut) return { matches, truncated: true };
  }
  return { matches, truncated: false };
}

interface Fetch {
  /** Larger files are left out. */
  readonly maxBytes: number;
  /** Files that hold none of these lines are left out; "" for all. */
  readonly needed: string;
  readonly ignoreCase: boolean;
  readonly signal: AbortSignal | undefined;
}

async function fetchFiles(view: RemoteView, files: readonly string[], fetch: Fetch) {
  const names = Buffer.from(files.map((path) => `./${path}\0`).join(""));
  const { needed, maxBytes, ignoreCase, signal } = fetch;
  const text = await answer(view, "", {
    ...withInput(scripts.fetch, names),
    args: [String(maxBytes + 1), needed, ignoreCase ? "-i" : ""],
    ...(signal === undefined ? {} : { signal }),
  });
  signal?.throwIfAborted();
  const archive = await unpack(text.trim());
  return { contents: readArchive(archive), isCut: archive.length >= mostFetched };
}

/** The entries below a path, as searches see them; with `allLinks` also links that lead to no file of the workspace. */
export async function walkRemotely(
  view: RemoteView,
  inside: string,
  {
    signal,
    allLinks = false,
  }: { readonly signal?: AbortSignal | undefined; readonly allLinks?: boolean } = {},
): Promise<Walk> {
  signal?.throwIfAborted();
  const searchOnce = async (free: boolean) => {
    const text = await answer(view, inside, {
      script: scripts.walk,
      args: [free ? "1" : "0", allLinks ? "1" : "0"],
      signal,
    });
    const [start, files, links, ignores] = await Promise.all(text.split("\n").slice(0, 4).map(unpack));
    return { start: start?.toString("utf8") ?? "", files, links, ignores };
  };
  const found = await searchOnce(false);
  signal?.throwIfAborted();
  const path = found.start.slice(1);
  if (found.start.startsWith("F")) return { kind: "file", path, files: [path], links: new Set() };
  const texts = new Map(
    readArchive(found.ignores ?? Buffer.alloc(0)).map((file) => [file.path, file.content.toString("utf8")]),
  );
  const scopes = createScopes(texts);
  const isFree = scopes.leavesOut(path);
  const { files, links } = isFree ? await searchOnce(true) : found;
  const kept = (bytes: Buffer | undefined): readonly string[] => {
    const all = namesOf(bytes ?? Buffer.alloc(0)).map((name) => joinPath(path, name));
    return isFree ? all : all.filter((name) => !scopes.ignores(name));
  };
  return { kind: "folder", path, files: [...kept(files)].sort(byFolder), links: new Set(kept(links)) };
}

/** The ignore files of a workspace, of which all that count are there. */
function createScopes(texts: ReadonlyMap<string, string>) {
  const outermost = createIgnoreScope({ outer: [], readText: (file) => texts.get(file) ?? "" });
  const scopes = new Map<string, IgnoreScope>();
  const ignored = new Map<string, boolean>();
  const above = (path: string): string => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "");
  const scopeOf = (folder: string): IgnoreScope => {
    const known = scopes.get(folder);
    if (known !== undefined) return known;
    const outer = folder === "" ? outermost : scopeOf(above(folder));
    const scope = texts.has(joinPath(folder, ".gitignore")) ? outer.enter(folder) : outer;
    scopes.set(folder, scope);
    return scope;
  };
  const ignoresFolder = (folder: string): boolean => {
    if (folder === "") return false;
    let answered = ignored.get(folder);
    if (answered === undefined) {
      const up = above(folder);
      answered = ignoresFolder(up) || scopeOf(up).ignores(folder, true);
      ignored.set(folder, answered);
    }
    return answered;
  };
  return {
    ignores: (file: string): boolean =>
      ignoresFolder(above(file)) || scopeOf(above(file)).ignores(file, false),
    /** Whether a folder is left out itself, or lies in one that is. */
    leavesOut: (folder: string): boolean => ignoresFolder(folder) || folder.split("/").some(isSkippedName),
  };
}

/** Folder by folder, in the order of code units. */
function byFolder(one: string, other: string): number {
  const left = one.split("/");
  const right = other.split("/");
  for (let at = 0; ; at += 1) {
    const a = left[at];
    const b = right[at];
    if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? -1 : 1;
    if (a !== b) return a < b ? -1 : 1;
  }
}

/**
 * Texts of which whatever matches a pattern holds at least one, so that other files need not cross the network; none
 * where that is not plain to see. The pattern is of RE2 syntax; groups, classes and counts are not looked into.
 */
export function textsOf(pattern: string, ignoreCase: boolean): readonly string[] {
  const hasMore = /[()[\]{}\n\r\uFFFD]/.test(pattern);
  if (hasMore || /\\[A-Za-z0-9]/.test(pattern.replaceAll(/\\[wWdDsSbB]/g, "."))) return [];
  const alternatives: string[][] = [[]];
  for (const unit of pattern.match(/\\?./gsu) ?? []) {
    if (unit === "|") alternatives.push([]);
    else alternatives.at(-1)?.push(unit);
  }
  const texts = alternatives.map((units) => longestOf(units, ignoreCase));
  return texts.includes("") ? [] : texts;
}

function longestOf(units: readonly string[], ignoreCase: boolean): string {
  const runs: string[] = [""];
  for (const [index, unit] of units.entries()) {
    const next = units[index + 1];
    const literal = literalOf(unit, ignoreCase);
    if (literal === undefined || next === "?" || next === "*") runs.push("");
    else runs.push(`${runs.pop()}${literal}`);
  }
  return runs.reduce((longest, run) => (run.length > longest.length ? run : longest), "");
}

function literalOf(unit: string, ignoreCase: boolean): string | undefined {
  const isEscaped = unit.length > 1 && unit.startsWith("\\");
  if (isEscaped ? /\w/.test(unit) : /[.*+?^$\\]/.test(unit)) return undefined;
  const literal = isEscaped ? unit.slice(1) : unit;
  // In any case, k is also the Kelvin sign, and s a long one.
  return ignoreCase && /[ks\u0080-\u{10FFFF}]/iu.test(literal) ? undefined : literal;
}
