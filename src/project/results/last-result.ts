import type { LastResult } from "../../protocol/test-results.ts";
import type { TestTitle } from "../../specs/coverage/test-references.ts";
import type { StoredResult } from "./results-store.ts";

/** How far above a test a comment may stand that belongs to it, in lines. */
const commentReach = 3;

/**
 * How the tests at a line of a file ended: those whose title stands there, or encloses the line. A whole file where it has no
 * titles. Undefined where no result has such a title: the test never ran, or was renamed since.
 */
export function lastResultOf(
  results: readonly StoredResult[],
  { titles, line }: { readonly titles: readonly TestTitle[]; readonly line: number },
): LastResult | undefined {
  if (results.length === 0) return undefined;
  const expected = titlesAt(titles, line);
  const found =
    expected === undefined
      ? results
      : results.filter((result) => expected.some((title) => isNamed(result, title)));
  const [first] = found;
  if (first === undefined) return undefined;
  const failed = found.find(({ status }) => status === "failed");
  const passed = found.find(({ status }) => status === "passed");
  const { status, message } = failed ?? passed ?? first;
  const durations = found.flatMap(({ duration_ms }) => duration_ms ?? []);
  return {
    status,
    tests: found.length,
    recorded_at: first.recorded_at,
    ...(durations.length > 0 && { duration_ms: durations.reduce((sum, one) => sum + one, 0) }),
    ...(status === "failed" && message !== undefined && { message }),
  };
}

/** The titles that a place belongs to; undefined for a file without any. */
function titlesAt(titles: readonly TestTitle[], line: number): readonly string[] | undefined {
  if (titles.length === 0) return undefined;
  const at = (expected: number): readonly string[] =>
    titles.filter((title) => title.line === expected).map(({ text }) => text);
  const own = at(line);
  if (own.length > 0) return own;
  const next = titles.find((title) => title.line > line);
  if (next !== undefined && next.line - line <= commentReach) return at(next.line);
  const last = titles.findLast((title) => title.line < line);
  return last === undefined ? [] : at(last.line);
}

/** Places where runners put a value in: `%s`, `$name`, `${name}`. */
const placeholder = /%[sdifjopc#$%]|\$\{[^}]{0,100}\}|\$[\w.]{1,100}/;

/** Whether a result is that of a test, or of one inside a suite, of this title as the source has it. */
function isNamed({ titles }: StoredResult, title: string): boolean {
  const expected = unescaped(title);
  if (titles.includes(expected)) return true;
  const pieces = expected.split(placeholder);
  if (pieces.length > 1)
    return pieces.join("").trim().length >= 3 && titles.some((one) => hasInOrder(one, pieces));
  // Runners put a title behind that of its suite, and the values of a case behind a name.
  const last = titles.at(-1) ?? "";
  return (
    expected.length >= 3 &&
    (last.endsWith(` ${expected}`) || last.startsWith(`${expected}[`) || last.startsWith(`${expected}(`))
  );
}

function hasInOrder(text: string, pieces: readonly string[]): boolean {
  if (!text.startsWith(pieces[0] ?? "") || !text.endsWith(pieces.at(-1) ?? "")) return false;
  let from = 0;
  for (const piece of pieces) {
    const at = text.indexOf(piece, from);
    if (at === -1) return false;
    from = at + piece.length;
  }
  return true;
}

function unescaped(title: string): string {
  return title.replace(/\\(["'`\\])/g, "$1").trim();
}
