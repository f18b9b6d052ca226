import { compileGlob } from "../../base/glob/glob.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { diagnosticRules } from "../../protocol/enums.ts";

/**
 * The findings that a team does not want, as `lint.ignore` of the configuration lists them: a file, folder or glob
 * (`tests/fixtures`), a rule or its code (`shadowed`, `globs_ignored`), or both (`docs/**: drift`).
 */
export interface IgnoreList {
  /** Whether every finding about a file is ignored. */
  hasPath(path: string): boolean;
  hasFinding(finding: Diagnostic): boolean;
}

/** Compiles the entries of `lint.ignore`. */
export function createIgnoreList(entries: readonly string[] = []): IgnoreList {
  const parsed = entries.map(parseEntry);
  const covers = (path: string): boolean =>
    parsed.some(({ rule, matches }) => rule === undefined && matches(path));
  return {
    hasPath: covers,
    hasFinding: ({ rule, code, path, other }) =>
      covers(path) ||
      (other !== undefined && covers(other.path)) ||
      parsed.some(
        (entry) => entry.rule !== undefined && [rule, code].includes(entry.rule) && entry.matches(path),
      ),
  };
}

/** The entry that ignores a finding and the others of its kind in the file. */
export function ignoreEntryFor({ path, rule }: Diagnostic): string {
  return `${path}: ${rule}`;
}

interface Entry {
  readonly rule?: string | undefined;
  matches(path: string): boolean;
}

const ruleNames = new Set<string>(diagnosticRules);

function parseEntry(entry: string): Entry {
  const text = entry.trim();
  // A code has an underscore and no dot or slash; a folder of such a name is written with a slash.
  if (ruleNames.has(text) || /^[a-z]+(?:_[a-z]+)+$/.test(text)) return { rule: text, matches: () => true };
  const [, path = text, rule] = /^(.*\S)\s*:\s+([a-z][a-z_-]*)$/.exec(text) ?? [];
  const folder = path.replace(/^\.\//, "").replace(/\/+$/, "");
  const globs = [compileGlob(folder), compileGlob(`${folder}/**`)];
  return { rule, matches: (name) => name === folder || globs.some((glob) => glob.matches(name)) };
}
