import type { DraftMention } from "../adapter.ts";
import { isTestPath } from "./test-path.ts";

/** The files of a project that a block names, project-relative, each once, in the order of mention. */
export interface FileRefs {
  readonly code_refs: readonly string[];
  readonly test_refs: readonly string[];
}

/**
 * The project files that a mentioned path can mean, the likeliest first: seen from the folder of the
 * file that mentions it, then from each folder above it up to the root, so that a package's own
 * `src/` goes before the repository's. `./x`, `../x` mean one file only, `/x` the root's.
 */
export function mentionCandidates(sourcePath: string, mention: string): string[] {
  if (mention.startsWith("/")) return normalized("", mention.slice(1));
  let folder = folderOf(sourcePath);
  if (/^\.{1,2}\//.test(mention)) return normalized(folder, mention);
  const candidates = normalized(folder, mention);
  while (folder !== "") {
    folder = folderOf(folder);
    candidates.push(...normalized(folder, mention));
  }
  return candidates;
}

/** Sorts the mentions of a block into code and tests, as far as `exists` knows their files. */
export function resolveMentions(
  sourcePath: string,
  mentions: readonly DraftMention[],
  exists: (path: string) => boolean,
): FileRefs {
  const code = new Set<string>();
  const tests = new Set<string>();
  for (const mention of mentions) {
    const file = mentionCandidates(sourcePath, mention.path).find(
      (path) => path !== sourcePath && exists(path),
    );
    if (file === undefined) continue;
    const isTest = mention.role === undefined ? isTestPath(file) : mention.role === "test";
    (isTest ? tests : code).add(file);
  }
  return { code_refs: [...code], test_refs: [...tests] };
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** A path below a folder without "." and ".." segments; undefined where it leaves the root. */
function normalized(folder: string, path: string): string[] {
  const segments = folder === "" ? [] : folder.split("/");
  for (const segment of path.split("/")) {
    if (segment === "" || segment === ".") continue;
    if (segment !== "..") segments.push(segment);
    else if (segments.pop() === undefined) return [];
  }
  return segments.length === 0 ? [] : [segments.join("/")];
}
