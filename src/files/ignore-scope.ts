import { dirname, join, relative, sep } from "node:path";
import ignore, { type Ignore } from "ignore";
import { findGitFolder, readSmallFile } from "./git-folder.ts";
import { joinPath } from "./obstacle.ts";

export const ignoreFileName = ".gitignore";

/** The ignore rules of a folder: those of its own ignore file and of the folders above. */
export interface IgnoreScope {
  /** Whether an entry of the folder is ignored; `path` is relative to the project root. */
  ignores(path: string, isFolder: boolean): boolean;
  /** The scope of a folder below that has an ignore file of its own. */
  enter(folder: string): IgnoreScope;
}

/** Ignore rules from outside of the project: `.git/info/exclude`, parent folders. */
export interface OuterRules {
  readonly text: string;
  /** Path from the folder that the rules are relative to, to the project root; "" for the same. */
  readonly prefix: string;
}

export interface IgnoreScopeOptions {
  /** Lowest precedence first. */
  readonly outer: readonly OuterRules[];
  /** The text of an ignore file of the project; empty when it cannot be read. */
  readonly readText: (path: string) => string;
}

/** Entries that are ignored regardless of ignore files: they contain no sources of the project. */
const skippedNames = new Set(["node_modules", ".git", ".kit", ".hg", ".svn"]);

export function isSkippedName(name: string): boolean {
  return skippedNames.has(name);
}

/** The scope of a folder that is ignored: Git looks at nothing below it, whatever the rules there say. */
export const everythingIgnored: IgnoreScope = {
  ignores: () => true,
  enter: () => everythingIgnored,
};

/**
 * Creates the scope outside of the root folder, by gitignore(5): the last matching rule decides, and rules of a
 * folder come after those of the folders above it. Ignore files are read and compiled on first use. Entries below an
 * ignored folder are never checked.
 */
export function createIgnoreScope({ outer, readText }: IgnoreScopeOptions): IgnoreScope {
  const rules = outer.map(({ text, prefix }) => ({ matcher: compile(text), prefix }));
  const outermost: Verdict = (path, isFolder) => {
    for (let index = rules.length - 1; index >= 0; index -= 1) {
      const rule = rules[index];
      const verdict = rule && test(rule.matcher, joinPath(rule.prefix, path), isFolder);
      if (verdict !== undefined) return verdict;
    }
    return undefined;
  };
  return toScope(outermost, readText);
}

/** True: ignored; false: a rule keeps it; undefined: no rule matches. */
type Verdict = (path: string, isFolder: boolean) => boolean | undefined;

function toScope(verdict: Verdict, readText: (path: string) => string): IgnoreScope {
  return {
    ignores: (path, isFolder) => verdict(path, isFolder) ?? false,
    enter(folder) {
      const from = folder === "" ? 0 : folder.length + 1;
      let matcher: Ignore | undefined;
      const inner: Verdict = (path, isFolder) => {
        matcher ??= compile(readText(joinPath(folder, ignoreFileName)));
        return test(matcher, path.slice(from), isFolder) ?? verdict(path, isFolder);
      };
      return toScope(inner, readText);
    },
  };
}

function compile(text: string): Ignore {
  return ignore({ ignorecase: false }).add(text);
}

function test(matcher: Ignore, path: string, isFolder: boolean): boolean | undefined {
  // The library throws for "./a" and "../a"; no entry has such a path.
  const { ignored, unignored } = matcher.test(isFolder ? `${path}/` : path);
  if (ignored) return true;
  return unignored ? false : undefined;
}

/**
 * Loads the ignore rules from outside a project: `.git/info/exclude` of its repository, and the ignore files between the
 * top of the repository and the project's root, lowest precedence first. Empty outside a repository, and for a folder
 * that the repository ignores as a whole.
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
