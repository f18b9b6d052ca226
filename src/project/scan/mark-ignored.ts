import type { IgnoreScope } from "../../files/ignore-scope.ts";
import type { GuidelineRecord } from "../../guidelines/guideline-record.ts";
import { digestRules, type TrackedFiles } from "./git/tracked-files.ts";
import { createIgnoredTest } from "./ignore-exceptions.ts";
import type { Tree } from "./tree.ts";

interface IgnoreState {
  /** Everything that decides about ignored files, of the project and from outside of it. */
  readonly rules: { readonly scope: IgnoreScope; readonly outerRules: string };
  readonly tree: Tree;
  readonly tracked: TrackedFiles | undefined;
}

/** Marks the guidelines whose files Git ignores. Asks about each file once as long as the rules stay the same. */
export function createIgnoredMarks(): (
  records: readonly GuidelineRecord[],
  state: IgnoreState,
) => readonly GuidelineRecord[] {
  let key: string | undefined;
  let verdicts = new Map<string, boolean>();
  let marked = new WeakMap<GuidelineRecord, GuidelineRecord>();
  return (records, { rules, tree, tracked }) => {
    const paths = tracked?.paths ?? [];
    const now = [digestRules({ outerRules: rules.outerRules, tree }), ...paths].join("\n");
    if (now !== key) {
      key = now;
      verdicts = new Map();
      marked = new WeakMap();
    }
    let test: ((path: string) => boolean) | undefined;
    const isIgnored = (path: string): boolean => {
      test ??= createIgnoredTest({ scope: rules.scope, tree, tracked: paths });
      const verdict = verdicts.get(path) ?? test(path);
      verdicts.set(path, verdict);
      return verdict;
    };
    return records.map((record) => {
      if (!isIgnored(record.source_file)) return record;
      const known = marked.get(record) ?? { ...record, is_ignored: true as const };
      marked.set(record, known);
      return known;
    });
  };
}
