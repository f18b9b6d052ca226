import { bytesToHex, hexToBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { KitError } from "../../base/kit-error.ts";
import type { GuidelineList } from "../../protocol/guideline.ts";
import type { GuidelineQuery } from "../../protocol/guideline-query.ts";
import { compareRecords, type GuidelineRecord } from "../guideline-record.ts";
import { toGuideline } from "../to-guideline.ts";
import { type GuidelineMatcher, isAsked } from "./guideline-matcher.ts";
import { createWordSearch } from "./word-search.ts";

/**
 * The guidelines that pass every filter of a query. `records` are in the order of `compareRecords`, and
 * so is the answer; for a `file`, those that wait to be asked for come last. Count and sources describe
 * the whole match, not the page.
 *
 * Throws `invalid_request` for a cursor that is not one of ours.
 */
export function listGuidelines(
  records: readonly GuidelineRecord[],
  query: GuidelineQuery,
  matcher: GuidelineMatcher,
): GuidelineList {
  const hasWords = createWordSearch(query.q ?? "");
  const candidates = query.file === undefined ? records : applying(query.file, records, matcher);
  const found = candidates.filter(
    (record) => (query.source === undefined || record.source_type === query.source) && hasWords(record),
  );
  const counts: Record<string, number> = {};
  for (const { source_type } of found) counts[source_type] = (counts[source_type] ?? 0) + 1;

  const byFile = query.file !== undefined;
  const start = query.cursor === undefined ? 0 : startBehind(found, readCursor(query.cursor), byFile);
  const end = query.limit === undefined ? found.length : start + Math.max(1, query.limit);
  const last = end < found.length ? found[end - 1] : undefined;
  return {
    guidelines: found.slice(start, end).map(toGuideline),
    total_count: found.length,
    counts_by_source: counts,
    ...(last !== undefined && { next_cursor: toCursor(last) }),
  };
}

/** Each guideline once, by whichever name of its file it applies. */
function applying(
  file: string,
  records: readonly GuidelineRecord[],
  matcher: GuidelineMatcher,
): readonly GuidelineRecord[] {
  const matched = new Set<string>();
  const found = matcher.match(file).flatMap(({ record }) => {
    if (matched.has(record.id)) return [];
    matched.add(record.id);
    return [record];
  });
  if (!found.some(({ readings }) => readings !== undefined)) return found;
  const byId = new Map(records.map((record) => [record.id, record]));
  return found.map((record) => byId.get(record.id) ?? record);
}

/** The place of the last guideline of a page; it holds when other files change in between. */
type Place = Pick<GuidelineRecord, "source_file" | "position" | "inclusion">;

function toCursor(record: GuidelineRecord): string {
  return bytesToHex(utf8ToBytes(JSON.stringify([record.source_file, record.position, record.inclusion])));
}

function readCursor(cursor: string): Place {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(hexToBytes(cursor)));
    if (Array.isArray(value)) {
      const [source_file, position, inclusion]: unknown[] = value;
      if (typeof source_file === "string" && typeof position === "number" && isInclusion(inclusion))
        return { source_file, position, inclusion };
    }
  } catch {
    // Whatever it was, it is not a cursor; said below.
  }
  throw new KitError({
    code: "invalid_request",
    message: "cursor is not the next_cursor of a list.",
    meta: { issues: [{ path: "query.cursor", message: "Not a cursor of this list." }] },
  });
}

function isInclusion(value: unknown): value is GuidelineRecord["inclusion"] {
  return value === "always" || value === "pattern" || value === "auto" || value === "manual";
}

function startBehind(found: readonly GuidelineRecord[], place: Place, byFile: boolean): number {
  const asked = (each: Place): number => (byFile && isAsked(each) ? 1 : 0);
  const index = found.findIndex(
    (record) =>
      asked(record) - asked(place) > 0 ||
      (asked(record) === asked(place) && compareRecords(record, place) > 0),
  );
  return index === -1 ? found.length : index;
}
