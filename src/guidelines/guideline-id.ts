import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { GuidelineDraft } from "./adapter.ts";
import type { GuidelineRecord } from "./guideline-record.ts";

/**
 * The first 16 hex digits of SHA-256 over `<source_file>:<title>`; from the second guideline of the
 * same file and title on, over `<source_file>:<title>:<n>` with n = 2, 3, …
 *
 * @see docs/guidelines.md
 */
export function guidelineId(sourceFile: string, title: string, n = 1): string {
  const name = n === 1 ? `${sourceFile}:${title}` : `${sourceFile}:${title}:${n}`;
  return bytesToHex(sha256(utf8ToBytes(name)).subarray(0, 8));
}

/**
 * The records of one file's drafts. The ids of a file depend on that file alone.
 *
 * A title can equal the numbered form of another one (`A:2` beside two of `A`); the later one then gets the next number.
 */
export function assignGuidelineIds(sourceFile: string, drafts: readonly GuidelineDraft[]): GuidelineRecord[] {
  const taken = new Set<string>();
  const counts = new Map<string, number>();
  return drafts.map((draft, position) => {
    let n = (counts.get(draft.title) ?? 0) + 1;
    let id = guidelineId(sourceFile, draft.title, n);
    while (taken.has(id)) {
      n += 1;
      id = guidelineId(sourceFile, draft.title, n);
    }
    counts.set(draft.title, n);
    taken.add(id);
    return { ...draft, id, source_file: sourceFile, position };
  });
}
