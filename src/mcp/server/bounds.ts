import { realpathSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { codePointsIn } from "../../base/text-size.ts";

/**
 * How much one answer may hold, in characters of its JSON form. A coding agent pays for every one of
 * them; some cut longer answers without a word.
 */
export const maxAnswerLength = 20_000;

/** The longest content of one record in a list of several. */
export const maxListedContent = 4_000;

/** A text that was cut, if it had to be. */
export interface CutText {
  readonly content: string;
  /** How many characters are missing, in code points. */
  readonly content_cut?: number;
}

/** The first `max` characters of a text. Never ends in half a surrogate pair. */
export function cutText(text: string, max: number): CutText {
  if (text.length <= max) return { content: text };
  const content = text.slice(0, max).replace(/[\ud800-\udbff]$/, "");
  return { content, content_cut: codePointsIn(text.slice(content.length)) };
}

/** The part of a long text from `cursor` on, and where the next part begins. */
export function partOf(text: string, cursor: string | undefined): { content: string; next_cursor?: string } {
  const start = positionOf(cursor);
  const { content } = cutText(text.slice(start), maxAnswerLength);
  const next = start + content.length;
  return next >= text.length ? { content } : { content, next_cursor: String(next) };
}

/** One page of a list, and where the next begins. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly total: number;
  readonly next_cursor?: string;
}

/**
 * The items from `cursor` on that fit into one answer, at least one. The cursor is the position of the
 * first item, so a page is only as stable as the list.
 */
export function pageOf<Source, Item>(
  sources: readonly Source[],
  options: { cursor?: string | undefined; limit?: number | undefined; toItem: (source: Source) => Item },
): Page<Item> {
  const start = positionOf(options.cursor);
  const items: Item[] = [];
  let length = 0;
  for (const source of sources.slice(start, start + (options.limit ?? Number.POSITIVE_INFINITY))) {
    const item = options.toItem(source);
    length += JSON.stringify(item).length;
    if (items.length > 0 && length > maxAnswerLength) break;
    items.push(item);
  }
  const next = start + items.length;
  return {
    items,
    total: sources.length,
    ...(items.length > 0 && next < sources.length ? { next_cursor: String(next) } : {}),
  };
}

/** A cursor as a position; 0 without one. What is not a position is past every end. */
function positionOf(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  return /^\d{1,9}$/.test(cursor) ? Number(cursor) : Number.MAX_SAFE_INTEGER;
}

/**
 * A path as a coding agent names a file, as the project knows it: POSIX, relative to the root. Agents
 * write absolute paths as often as relative ones, and not always through the same links as the root.
 * The file need not exist. Throws `invalid_request` for a path outside of the project.
 */
export function toProjectPath(given: string, root: string): string {
  const path =
    inside(resolve(root, given), root) ?? (isAbsolute(given) ? inside(realPath(given), root) : undefined);
  if (path !== undefined && path !== "") return path;
  throw new KitError({ code: "invalid_request", message: `${given} is not inside the project.` });
}

function inside(path: string, root: string): string | undefined {
  const from = relative(root, path);
  return from === ".." || from.startsWith(`..${sep}`) || isAbsolute(from)
    ? undefined
    : from.split(sep).join("/");
}

/** The path with the links of that part of it resolved which exists. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), path.slice(parent.length));
  }
}

/** Said after a text that was cut, with the tool that gives all of it. */
export function cutMark(cut: number | undefined, tool: string): string {
  return cut === undefined ? "" : `\n[cut: ${cut.toLocaleString("en")} more characters; ${tool} gives them]`;
}

/** Said at the end of an answer that does not hold everything. */
export function nextPageMark(cursor: string | undefined): string {
  return cursor === undefined ? "" : `\n\n[cut: there is more; call again with cursor "${cursor}"]`;
}

/** A place in a file, as editors and terminals understand it. */
export function placeOf(path: string, line: number | undefined): string {
  return line === undefined ? path : `${path}:${line}`;
}

/** The beginning of a text on one line, for a list. */
export function excerptOf(text: string, max: number): string {
  const line = text
    .slice(0, 4 * max)
    .replace(/\s+/g, " ")
    .trim();
  return line.length <= max ? line : `${line.slice(0, max - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}
