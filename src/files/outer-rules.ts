import { dirname, join, relative, sep } from "node:path";
import { findGitFolder, readSmallFile } from "./git-folder.ts";
import { createIgnoreScope, ignoreFileName, type OuterRules } from "./ignore-scope.ts";

/**
 * The ignore rules that reach into a project from outside: `.git/info/exclude` of its repository,
 * and the ignore files between the top of the repository and the project's root, weakest first.
 * Empty outside of a repository, and for a folder that the repository ignores as a whole.
 */
export function loadOuterRules(root: string): OuterRules[] {
  const git = findGitFolder(root);
  if (git === undefined) return [];
  const rules: OuterRules[] = [];
  const add = (file: string, folder: string): void => {
    // An ignore file that cannot be read ignores nothing.
    const text = readSmallFile(file);
    if (text !== undefined) rules.push({ text, prefix: relative(folder, root).split(sep).join("/") });
  };
  add(join(git.common, "info", "exclude"), git.top);
  const between: string[] = [];
  for (let folder = root; folder !== git.top; ) {
    folder = dirname(folder);
    between.push(folder);
  }
  for (const folder of between.reverse()) add(join(folder, ignoreFileName), folder);
  return isIgnored(rules) ? [] : rules;
}

/** A user who opens a folder that its repository ignores wants to see its files. */
function isIgnored(rules: readonly OuterRules[]): boolean {
  const above = rules.filter(({ prefix }) => prefix !== "");
  const name = above[0]?.prefix.split("/").at(-1);
  if (name === undefined) return false;
  const outer = above.map(({ text, prefix }) => ({
    text,
    prefix: prefix.slice(0, Math.max(0, prefix.lastIndexOf("/"))),
  }));
  return createIgnoreScope({ outer, readText: () => "" }).ignores(name, true);
}
