import { readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { ignoreFileName, type OuterRules } from "./ignore-scope.ts";

/**
 * The ignore rules that reach into a project from outside: `.git/info/exclude` of its repository,
 * and the ignore files between the top of the repository and the project's root, weakest first.
 * Empty outside of a repository.
 */
export function loadOuterRules(root: string): OuterRules[] {
  const top = findRepository(root);
  if (top === undefined) return [];
  const rules: OuterRules[] = [];
  const add = (file: string, folder: string): void => {
    const text = readSmallFile(file);
    if (text !== undefined) rules.push({ text, prefix: relative(folder, root).split(sep).join("/") });
  };
  add(join(gitFolderOf(top), "info", "exclude"), top);
  const between: string[] = [];
  for (let folder = root; folder !== top; ) {
    folder = dirname(folder);
    between.push(folder);
  }
  for (const folder of between.reverse()) add(join(folder, ignoreFileName), folder);
  return rules;
}

function findRepository(root: string): string | undefined {
  for (let folder = root; ; folder = dirname(folder)) {
    if (statSync(join(folder, ".git"), { throwIfNoEntry: false }) !== undefined) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

/** In a worktree or submodule `.git` is a file that names the folder, which may name a common one. */
function gitFolderOf(top: string): string {
  const entry = join(top, ".git");
  const pointer = readSmallFile(entry)?.match(/^gitdir: (.+)$/m)?.[1];
  if (pointer === undefined) return entry;
  const folder = resolve(top, pointer);
  const common = readSmallFile(join(folder, "commondir"))?.trim();
  return common === undefined ? folder : resolve(folder, common);
}

function readSmallFile(file: string): string | undefined {
  try {
    const stats = statSync(file, { throwIfNoEntry: false });
    return stats?.isFile() === true && stats.size <= 1024 * 1024 ? readFileSync(file, "utf8") : undefined;
  } catch {
    // An ignore file that cannot be read ignores nothing.
    return undefined;
  }
}
