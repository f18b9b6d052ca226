import { lstat } from "node:fs/promises";
import { findPlace, type Place } from "../../../files/find-place.ts";
import { readRegularFile, readRegularFileSync } from "../../../files/replace-file.ts";
import type { GrepMatch, GrepRequest } from "../../contract.ts";
import { fromWorkingFolder, notFound, type View, withPlace } from "../workspace-path.ts";
import { compileLinePattern, createPace, type LinePattern, type Pace, scanLines } from "./scan-lines.ts";
import { compileNameOrPathGlob, createSearchScope, walkFiles } from "./walk-files.ts";

interface GrepResult {
  readonly matches: readonly GrepMatch[];
  readonly truncated: boolean;
}

const defaultMaxMatches = 1_000;
/** A search of a folder skips larger files, as sources are smaller; a file named by `path` has the higher limit. */
export const searchLimits: Readonly<Record<"maxFileBytes" | "maxNamedFileBytes", number>> = {
  maxFileBytes: 4 * 1024 * 1024,
  maxNamedFileBytes: 64 * 1024 * 1024,
};
const budgetMs = 10_000;

/** Searches a file, or the files below a folder; skips binary files. */
export async function grep(view: View, request: GrepRequest): Promise<GrepResult> {
  const pace = createPace(request.signal, budgetMs);
  const pattern = await compileLinePattern(request.pattern, request.ignoreCase ?? false);
  const search: Search = {
    view,
    pattern,
    pace,
    maxMatches: request.maxMatches ?? defaultMaxMatches,
    matches: [],
    accepts: request.glob === undefined ? () => true : compileNameOrPathGlob(request.glob),
  };
  return await withPlace(view, request.path ?? "", {
    async work(place) {
      const stats = await lstat(place.entry);
      const complete = stats.isDirectory()
        ? await searchFolder(search, place)
        : await searchFile(search, place);
      return { matches: search.matches, truncated: !complete };
    },
  });
}

interface Search {
  readonly view: View;
  readonly pattern: LinePattern;
  readonly pace: Pace;
  readonly maxMatches: number;
  readonly matches: GrepMatch[];
  accepts(path: string): boolean;
}

/** Returns false if the search stopped at a limit. */
async function searchFolder(search: Search, { path }: Place): Promise<boolean> {
  const { workspace } = search.view;
  const start = await findPlace({ root: workspace.root, path, end: "folder", area: "workspace" });
  if (start === undefined) throw notFound(path);
  try {
    const scope = await createSearchScope(workspace, path);
    const prefixLength = path === "" ? 0 : path.length + 1;
    for (const file of walkFiles({ path, folder: start.folder, scope })) {
      const rest = search.pace.pause();
      if (rest !== undefined) await rest;
      if (search.pace.isOver()) return false;
      if (file.isLink || !search.accepts(file.path.slice(prefixLength))) continue;
      const bytes = readRegularFileSync(file.folder, file.name, searchLimits.maxFileBytes);
      if (bytes !== undefined && !(await searchBytes(search, file.path, bytes))) return false;
    }
    return true;
  } finally {
    await start.close();
  }
}

async function searchFile(search: Search, place: Place): Promise<boolean> {
  const bytes = await readRegularFile(place, searchLimits.maxNamedFileBytes);
  if (bytes === undefined) throw notFound(place.path);
  return await searchBytes(search, place.path, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
}

async function searchBytes(search: Search, path: string, bytes: Buffer): Promise<boolean> {
  if (isBinary(bytes)) return true;
  const decoded = bytes.toString("utf8");
  const text = decoded.includes("\r\n") ? decoded.replaceAll("\r\n", "\n") : decoded;
  const relativePath = fromWorkingFolder(search.view.cwd, path);
  for await (const match of scanLines(text, search.pattern, search.pace)) {
    if (search.matches.length >= search.maxMatches) return false;
    search.matches.push({ path: relativePath, ...match });
  }
  return !search.pace.isOver();
}

/** Git's rule: a NUL in the first 8,000 bytes. */
export function isBinary(bytes: Buffer): boolean {
  return bytes.subarray(0, 8_000).includes(0);
}
