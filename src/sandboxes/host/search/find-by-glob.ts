import { lstat } from "node:fs/promises";
import { KitError } from "../../../base/kit-error.ts";
import { findPlace } from "../../../files/find-place.ts";
import type { GlobOptions } from "../../contract.ts";
import { fromWorkingFolder, notFound, toWorkspacePath, type View } from "../workspace-path.ts";
import { createPace } from "./scan-lines.ts";
import { compileSearchGlob, createSearchScope, walkFiles } from "./walk-files.ts";

interface GlobResult {
  readonly paths: readonly string[];
  readonly truncated: boolean;
}

const defaultMaxResults = 1_000;
const budgetMs = 10_000;

/** Lists the files that match a glob, and the links that match and lead to files of the workspace. */
export async function glob(view: View, pattern: string, options: GlobOptions): Promise<GlobResult> {
  const { workspace, cwd } = view;
  const pace = createPace(options.signal, budgetMs);
  const { folder, rest } = splitGlob(pattern);
  const accepts = compileSearchGlob(rest);
  const from = toWorkspacePath(view, options.path ?? "");
  const inside = toWorkspacePath({ workspace, cwd: from }, folder);
  const start = await findPlace({
    root: workspace.root,
    path: inside,
    end: "folder",
    area: "workspace",
  }).catch((error: unknown) => {
    if (folder !== "" && error instanceof KitError && error.code === "invalid_request") return undefined;
    throw error;
  });
  if (start === undefined) {
    if (folder === "") throw notFound(inside);
    return { paths: [], truncated: false };
  }
  const maxResults = options.maxResults ?? defaultMaxResults;
  const paths: string[] = [];
  try {
    const scope = await createSearchScope(workspace, start.path);
    const prefixLength = start.path === "" ? 0 : start.path.length + 1;
    for (const file of walkFiles({ path: start.path, folder: start.folder, scope })) {
      const turn = pace.pause();
      if (turn !== undefined) await turn;
      if (pace.isOver()) return { paths, truncated: true };
      if (!accepts(file.path.slice(prefixLength))) continue;
      if (file.isLink && !(await leadsToFile(workspace.root, file.path))) continue;
      if (paths.length >= maxResults) return { paths, truncated: true };
      paths.push(fromWorkingFolder(cwd, file.path));
    }
    return { paths, truncated: false };
  } finally {
    await start.close();
  }
}

/** Splits leading folders without wildcards off a glob, so that a search walks only that folder. */
export function splitGlob(pattern: string): { readonly folder: string; readonly rest: string } {
  const names = pattern.split("/");
  let literal = 0;
  while (literal < names.length - 1 && !/[*?[\]{}\\]/.test(names[literal] ?? "")) literal += 1;
  const folder = names.slice(0, literal).join("/");
  return { folder: folder === "" && literal > 0 ? "/" : folder, rest: names.slice(literal).join("/") };
}

async function leadsToFile(root: string, path: string): Promise<boolean> {
  try {
    const place = await findPlace({ root, path });
    if (place === undefined) return false;
    try {
      return (await lstat(place.entry)).isFile();
    } finally {
      await place.close();
    }
  } catch {
    // The target is missing, or lies outside the workspace.
    return false;
  }
}
