import { KitError } from "../../base/kit-error.ts";
import { createIgnoreScope, type IgnoreScope, isSkippedName } from "../../files/ignore-scope.ts";
import { invalid, joinPath } from "../../files/obstacle.ts";
import type { GlobOptions, GrepMatch, GrepRequest } from "../contract.ts";
import { splitGlob } from "../host/search/find-by-glob.ts";
import { isBinary, searchLimits } from "../host/search/grep.ts";
import { compileLinePattern, createPace, scanLines } from "../host/search/scan-lines.ts";
import { compileNameOrPathGlob, compileSearchGlob } from "../host/search/walk-files.ts";
import { fromWorkingFolder } from "../host/workspace-path.ts";
import { readArchive, unpack } from "./archive.ts";
import { namesOf, pathIn, type RemoteView, runOnPath } from "./remote-view.ts";
import { maxFetchedBytes, scripts, withInput } from "./scripts.ts";

const budgetMs = 30_000;
/** Files fetched in one round trip. */
const filesAtOnce = 2_000;

interface Walk {
  readonly kind: "file" | "folder";
  /** The path with links resolved, relative to the root. */
  readonly path: string;
  /** The files below that a search includes, in walk order, relative to the root. */
  readonly files: readonly string[];
  /** Links below that lead to files of the workspace. */
  readonly links: ReadonlySet<string>;
}

/** Lists files, and links to files of the workspace, that match a glob; one round trip, or two in an ignored folder. */
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
  const prefixLength = walk.path === "" ? 0 : walk.path.length + 1;
  const matches = [...walk.files, ...walk.links].filter((path) => accepts(path.slice(prefixLength)));
  const paths = matches.sort(byFolder).map((path) => fromWorkingFolder(view.cwd, path));
  const limit = options.maxResults ?? 1_000;
  return { paths: paths.slice(0, limit), truncated: paths.length > limit };
}

/** Searches a file, or the files below a folder; two round trips, more for many files. */
export async function grepRemotely(
  view: RemoteView,
  request: GrepRequest,
): Promise<{ readonly matches: readonly GrepMatch[]; readonly truncated: boolean }> {
  request.signal?.throwIfAborted();
  const ignoreCase = request.ignoreCase ?? false;
  const pattern = await compileLinePattern(request.pattern, ignoreCase);
  const accepts = request.glob === undefined ? () => true : compileNameOrPathGlob(request.glob);
  const walk = await walkRemotely(view, pathIn(view, request.path ?? ""), { signal: request.signal });
  const prefixLength = walk.path === "" ? 0 : walk.path.length + 1;
  const isFile = walk.kind === "file";
  const files = isFile ? walk.files : walk.files.filter((path) => accepts(path.slice(prefixLength)));
  const limit = request.maxMatches ?? 1_000;
  // Starts after the first round trip, so that network time does not use up the budget for matching.
  const pace = createPace(request.signal, budgetMs);
  const matches: GrepMatch[] = [];
  const needed = requiredTexts(request.pattern, ignoreCase).join("\n");
  for (let at = 0; at < files.length; at += filesAtOnce) {
    const { contents, isIncomplete } = await fetchFiles(view, files.slice(at, at + filesAtOnce), {
      maxBytes: isFile ? searchLimits.maxNamedFileBytes : searchLimits.maxFileBytes,
      needed,
      ignoreCase,
      signal: request.signal,
    });
    for (const { path, content } of contents) {
      if (isBinary(content)) continue;
      const text = content.toString("utf8").replaceAll("\r\n", "\n");
      for await (const match of scanLines(text, pattern, pace)) {
        if (matches.length >= limit) return { matches, truncated: true };
        matches.push({ path: fromWorkingFolder(view.cwd, path), ...match });
      }
      if (pace.isOver()) return { matches, truncated: true };
    }
    if (isIncomplete) return { matches, truncated: true };
  }
  return { matches, truncated: false };
}

interface Fetch {
  /** Larger files are skipped. */
  readonly maxBytes: number;
  /** Lines of text; files that contain none of them are skipped. "" fetches all files. */
  readonly needed: string;
  readonly ignoreCase: boolean;
  readonly signal: AbortSignal | undefined;
}

async function fetchFiles(view: RemoteView, files: readonly string[], fetch: Fetch) {
  const names = Buffer.from(files.map((path) => `./${path}\0`).join(""));
  const { needed, maxBytes, ignoreCase, signal } = fetch;
  const text = await runOnPath(view, "", {
    ...withInput(scripts.fetch, names),
    args: [String(maxBytes + 1), needed, ignoreCase ? "-i" : ""],
    ...(signal === undefined ? {} : { signal }),
  });
  signal?.throwIfAborted();
  const archive = await unpack(text.trim());
  return { contents: readArchive(archive), isIncomplete: archive.length >= maxFetchedBytes };
}

/** Lists the entries below a path that searches include; with `allLinks` also links that lead to no file of the workspace. */
export async function walkRemotely(
  view: RemoteView,
  inside: string,
  {
    signal,
    allLinks = false,
  }: { readonly signal?: AbortSignal | undefined; readonly allLinks?: boolean } = {},
): Promise<Walk> {
  signal?.throwIfAborted();
  const searchOnce = async (includeIgnored: boolean) => {
    const text = await runOnPath(view, inside, {
      script: scripts.walk,
      args: [includeIgnored ? "1" : "0", allLinks ? "1" : "0"],
      signal,
    });
    const [start, files, links, ignores] = await Promise.all(text.split("\n").slice(0, 4).map(unpack));
    return { start: start?.toString("utf8") ?? "", files, links, ignores };
  };
  const listing = await searchOnce(false);
  signal?.throwIfAborted();
  const path = listing.start.slice(1);
  if (listing.start.startsWith("F")) return { kind: "file", path, files: [path], links: new Set() };
  const texts = new Map(
    readArchive(listing.ignores ?? Buffer.alloc(0)).map((file) => [file.path, file.content.toString("utf8")]),
  );
  const scopes = createScopes(texts);
  const isIgnored = scopes.skipsFolder(path);
  const { files, links } = isIgnored ? await searchOnce(true) : listing;
  const toPaths = (bytes: Buffer | undefined): readonly string[] => {
    const all = namesOf(bytes ?? Buffer.alloc(0)).map((name) => joinPath(path, name));
    return isIgnored ? all : all.filter((name) => !scopes.ignores(name));
  };
  return { kind: "folder", path, files: [...toPaths(files)].sort(byFolder), links: new Set(toPaths(links)) };
}

/** Ignore rules from the texts of a workspace's ignore files, by path. */
function createScopes(texts: ReadonlyMap<string, string>) {
  const outermost = createIgnoreScope({ outer: [], readText: (file) => texts.get(file) ?? "" });
  const scopes = new Map<string, IgnoreScope>();
  const ignored = new Map<string, boolean>();
  const parentOf = (path: string): string => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "");
  const scopeOf = (folder: string): IgnoreScope => {
    const known = scopes.get(folder);
    if (known !== undefined) return known;
    const outer = folder === "" ? outermost : scopeOf(parentOf(folder));
    const scope = texts.has(joinPath(folder, ".gitignore")) ? outer.enter(folder) : outer;
    scopes.set(folder, scope);
    return scope;
  };
  const ignoresFolder = (folder: string): boolean => {
    if (folder === "") return false;
    let isIgnored = ignored.get(folder);
    if (isIgnored === undefined) {
      const up = parentOf(folder);
      isIgnored = ignoresFolder(up) || scopeOf(up).ignores(folder, true);
      ignored.set(folder, isIgnored);
    }
    return isIgnored;
  };
  return {
    ignores: (file: string): boolean =>
      ignoresFolder(parentOf(file)) || scopeOf(parentOf(file)).ignores(file, false),
    /** Whether searches skip a folder or one of its parents. */
    skipsFolder: (folder: string): boolean => ignoresFolder(folder) || folder.split("/").some(isSkippedName),
  };
}

/** Compares paths folder by folder, in code-unit order. */
function byFolder(path: string, other: string): number {
  const folders = path.split("/");
  const right = other.split("/");
  for (let at = 0; ; at += 1) {
    const a = folders[at];
    const b = right[at];
    if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? -1 : 1;
    if (a !== b) return a < b ? -1 : 1;
  }
}

/**
 * Texts of which every match of the pattern (RE2 syntax) contains at least one, so that other files need not cross
 * the network. Empty if this is not easy to derive: patterns with groups, classes or counts are not analysed.
 */
export function requiredTexts(pattern: string, ignoreCase: boolean): readonly string[] {
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
  // Without case, k also matches the Kelvin sign, and s the long s.
  return ignoreCase && /[ks\u0080-\u{10FFFF}]/iu.test(literal) ? undefined : literal;
}
