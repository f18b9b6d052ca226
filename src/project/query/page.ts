import { createHash } from "node:crypto";
import { KitError } from "../../base/kit-error.ts";
import type { Diagnostic, DiagnosticPage, DiagnosticQuery } from "../../protocol/diagnostic.ts";
import type { ProjectSpecs } from "../project.ts";

/** The requested part of an answer. */
interface PageRequest {
  /** 1 to 1,000; default 50. */
  readonly limit?: number | undefined;
  /** `next_cursor` of the page before. */
  readonly cursor?: string | undefined;
}

interface ListPage<T> {
  readonly items: readonly T[];
  /** The length of the whole list, not of the page. */
  readonly total_count: number;
  readonly next_cursor?: string;
}

/**
 * Cuts one page out of a list that is computed for every request. The cursor names the last item, so that no item is repeated or
 * skipped if items before it change between requests.
 *
 * `about` is all of the request except its page. Throws `invalid_request` for a limit out of range, and for a cursor of another
 * request.
 */
export function pageList<T>(
  items: readonly T[],
  { limit, cursor }: PageRequest,
  { about, keyOf }: { readonly about: unknown; readonly keyOf: (item: T) => string },
): ListPage<T> {
  const size = pageSize(limit);
  const digest = digestOf(about);
  const start = cursor === undefined ? 0 : startOf(items.map(keyOf), parseCursor(digest, cursor));
  const end = Math.min(items.length, start + size);
  const last = items[end - 1];
  return {
    items: items.slice(start, end),
    total_count: items.length,
    ...(end < items.length && last !== undefined && { next_cursor: toCursor(digest, [end, keyOf(last)]) }),
  };
}

function startOf(keys: readonly string[], [end, key]: readonly unknown[]): number {
  if (typeof end !== "number" || typeof key !== "string") throw wrongCursor();
  if (keys[end - 1] === key) return end;
  const found = keys.indexOf(key);
  return found === -1 ? Math.min(Math.max(0, end), keys.length) : found + 1;
}

const defaultLimit = 50;
const maxLimit = 1000;

/** The items of a page; throws `invalid_request` for a limit out of range. */
export function pageSize(limit: number = defaultLimit): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit)
    throw invalid("limit", `must be a whole number from 1 to ${maxLimit}`);
  return limit;
}

/** Identifies a query without its page, so that another query refuses its cursors. */
export function digestOf(about: unknown): string {
  return createHash("sha256").update(JSON.stringify(about)).digest("base64url").slice(0, 12);
}

/** Encodes the end of a page as an opaque text. */
export function toCursor(digest: string, position: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify([digest, ...position])).toString("base64url");
}

/** Decodes the position in a cursor; throws `invalid_request` for a text that is not a cursor of the query with this digest. */
export function parseCursor(digest: string, cursor: string): readonly unknown[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch (error) {
    throw wrongCursor(error);
  }
  if (!Array.isArray(parsed) || parsed[0] !== digest) throw wrongCursor();
  return parsed.slice(1);
}

export function wrongCursor(cause?: unknown): KitError<"invalid_request"> {
  return invalid(
    "cursor",
    "is not a cursor of this query: pass the next_cursor of its last page, or none to begin",
    cause,
  );
}

export function invalid(field: string, message: string, cause?: unknown): KitError<"invalid_request"> {
  return new KitError({
    code: "invalid_request",
    message: `${field} ${message}.`,
    meta: { issues: [{ path: field, message }] },
    cause,
  });
}

/** The diagnostics that pass the filters of a query: one page with `limit` or `cursor`, else all. */
export function pageDiagnostics(
  specs: Pick<ProjectSpecs, "diagnostics" | "frameworkOf">,
  query: DiagnosticQuery,
): DiagnosticPage {
  const { limit, cursor, ...filters } = query;
  const { severity, rule, path, framework, id } = filters;
  const all = specs.diagnostics();
  const counts = { error: 0, warning: 0 };
  const counts_by_rule: Record<string, number> = {};
  const counts_by_framework: Record<string, number> = {};
  const frameworks = new Map<string, string | undefined>();
  const frameworkOf = (file: string): string | undefined => {
    if (!frameworks.has(file)) frameworks.set(file, specs.frameworkOf(file));
    return frameworks.get(file);
  };
  const isInside = (file: string): boolean =>
    path === undefined || file === path || file.startsWith(`${path}/`);
  const found: Diagnostic[] = [];
  for (const diagnostic of all) {
    const fileFramework = frameworkOf(diagnostic.path);
    counts[diagnostic.severity] += 1;
    counts_by_rule[diagnostic.rule] = (counts_by_rule[diagnostic.rule] ?? 0) + 1;
    if (fileFramework !== undefined)
      counts_by_framework[fileFramework] = (counts_by_framework[fileFramework] ?? 0) + 1;
    const isFound =
      (severity === undefined || diagnostic.severity === severity) &&
      (rule === undefined || diagnostic.rule === rule) &&
      (id === undefined || diagnostic.id === id) &&
      (framework === undefined || fileFramework === framework) &&
      isInside(diagnostic.path);
    if (isFound) found.push(diagnostic);
  }
  const totals = { counts_by_severity: counts, counts_by_rule, counts_by_framework };
  if (limit === undefined && cursor === undefined)
    return { diagnostics: found, total_count: found.length, ...totals };
  const keyOf = (diagnostic: Diagnostic): string =>
    JSON.stringify([diagnostic.path, diagnostic.line, diagnostic.rule, diagnostic.id, diagnostic.message]);
  const { items, ...rest } = pageList(found, { limit, cursor }, { about: filters, keyOf });
  return { diagnostics: items, ...rest, ...totals };
}
