import { createHash } from "node:crypto";
import { compileGlob } from "../../base/glob/glob.ts";
import { KitError } from "../../base/kit-error.ts";
import type { SpecQuery } from "../../protocol/spec-query.ts";
import type { Connection } from "../../sqlite/statements.ts";
import { type BlockClass, readClasses, tagMark, toSearchTerms } from "../store/block-row.ts";

/** A query in terms of the index. */
export interface QueryPlan {
  /** FTS5 terms that must all match; undefined for a query without `q`, empty for one without words. */
  readonly terms: readonly string[] | undefined;
  /** The classes of blocks that pass the filters on framework, type, lifecycle and priority, by their id. */
  readonly classes: ReadonlyMap<number, BlockClass>;
  /** The word of the tag filter. */
  readonly mark: string | undefined;
  /** Ids of the files that pass the path filter. */
  readonly files: readonly number[] | undefined;
  readonly limit: number;
  /** Identifies the query without its page, so that a cursor is refused by another query. */
  readonly digest: string;
}

/** The limit of words in a search; each word costs a lookup. */
const maxTerms = 32;
const defaultLimit = 50;
const maxLimit = 1000;

/** Throws `invalid_request` for a query without meaning. */
export function planQuery(database: Connection, query: SpecQuery): QueryPlan {
  const { limit = defaultLimit } = query;
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit) {
    throw invalid("limit", `must be a whole number from 1 to ${maxLimit}`);
  }
  const terms = query.q === undefined || query.q.trim() === "" ? undefined : toSearchTerms(query.q);
  if (terms !== undefined && terms.length > maxTerms)
    throw invalid("q", `may have at most ${maxTerms} words`);
  const classes = new Map([...readClasses(database)].filter(([, each]) => passes(each, query)));
  const { q, framework, spec_type, lifecycle, priority, tag, path, rules } = query;
  return {
    terms,
    classes,
    mark: tag === undefined ? undefined : tagMark(tag),
    files: path === undefined || path === "" ? undefined : filesAt(database, path),
    limit,
    digest: createHash("sha256")
      .update(JSON.stringify([q, framework, spec_type, lifecycle, priority, tag, path, rules]))
      .digest("base64url")
      .slice(0, 12),
  };
}

export function invalid(field: string, message: string, cause?: unknown): KitError<"invalid_request"> {
  return new KitError({
    code: "invalid_request",
    message: `${field} ${message}.`,
    meta: { issues: [{ path: field, message }] },
    cause,
  });
}

function passes({ framework, spec_type, lifecycle, priority }: BlockClass, query: SpecQuery): boolean {
  const isRule = spec_type === "constraint" && (framework === "fw_b" || framework === "fw_c");
  if (isRule && query.rules === false) return false;
  return (
    (query.framework === undefined || query.framework === framework) &&
    (query.spec_type === undefined || query.spec_type === spec_type) &&
    (query.priority === undefined || query.priority === priority) &&
    (query.lifecycle === undefined ? lifecycle !== "obsolete" : query.lifecycle === lifecycle)
  );
}

/** Files at a path: the file itself, those of a folder and below, or those that a glob matches. */
function filesAt(database: Connection, path: string): number[] {
  const clean = path.replace(/^\.\//, "").replace(/\/+$/, "");
  if (clean === "." || clean === "") return database.all<[number]>("SELECT id FROM files").map(([id]) => id);
  const found = database.all<[number]>(
    // "0" is the character behind "/", so this is all that begins with the folder.
    "SELECT id FROM files WHERE path = ? OR (path > ? AND path < ?)",
    ...[clean, `${clean}/`, `${clean}0`],
  );
  if (found.length > 0 || !/[*?[{]/.test(clean)) return found.map(([id]) => id);
  const glob = compileGlob(clean);
  const files = database.all<[number, string]>("SELECT id, path FROM files");
  return files.filter(([, file]) => glob.matches(file)).map(([id]) => id);
}

/** The page of a match, and the counts of all of it. */
export interface Match {
  readonly keys: readonly number[];
  readonly counts: MatchCounts;
  readonly nextCursor?: string;
}

export interface MatchCounts {
  readonly total: number;
  readonly byFramework: Readonly<Record<string, number>>;
}

/** Adds up the blocks of a match, given per class. */
export function toCounts(
  perClass: Iterable<readonly [classId: number, blocks: number]>,
  classes: ReadonlyMap<number, BlockClass>,
): MatchCounts {
  const byFramework: Record<string, number> = {};
  let total = 0;
  for (const [id, blocks] of perClass) {
    const framework = classes.get(id)?.framework;
    if (blocks === 0 || framework === undefined) continue;
    byFramework[framework] = (byFramework[framework] ?? 0) + blocks;
    total += blocks;
  }
  return { total, byFramework: Object.fromEntries(Object.entries(byFramework).sort()) };
}

/** The end of a page as an opaque text, valid for its own query only. */
export function toCursor(plan: QueryPlan, position: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify([plan.digest, ...position])).toString("base64url");
}

/** The position in a cursor; throws `invalid_request` for a text that is not a cursor of this query. */
export function parseCursor(plan: QueryPlan, cursor: string): readonly unknown[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch (error) {
    throw wrongCursor(error);
  }
  if (!Array.isArray(parsed) || parsed[0] !== plan.digest) throw wrongCursor();
  return parsed.slice(1);
}

export function wrongCursor(cause?: unknown): KitError<"invalid_request"> {
  return invalid(
    "cursor",
    "is not a cursor of this query: pass the next_cursor of its last page, or none to begin",
    cause,
  );
}
