import { KitError } from "../../base/kit-error.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";

/**
 * The query of a URL, each parameter once. An empty value counts as absent, as forms send it.
 *
 * Throws `invalid_request` for text that is not percent-encoded UTF-8 and for a repeated parameter.
 */
export function readQuery(url: string): Record<string, unknown> {
  const query: Record<string, unknown> = Object.create(null);
  const start = url.indexOf("?");
  if (start === -1) return query;
  for (const pair of url.slice(start + 1).split("&")) {
    const equals = pair.indexOf("=");
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? "" : decode(pair.slice(equals + 1));
    if (name === undefined || value === undefined) {
      throw invalidQuery({ path: "query", message: "must be percent-encoded UTF-8" });
    }
    if (value === "") continue;
    if (name in query) throw invalidQuery({ path: `query.${name.slice(0, 80)}`, message: "is given twice" });
    query[name] = value;
  }
  return query;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

function invalidQuery(issue: ErrorIssue): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The query is not valid.",
    meta: { issues: [issue] },
  });
}
