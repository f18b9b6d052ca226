import { realpathSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { codePointsIn } from "../../base/text-size.ts";

/**
 * The limit of one answer, in characters of its JSON form. A coding agent pays for every character, and some agents
 * cut longer answers silently.
 */
export const maxAnswerLength = 20_000;

/** The limit for the content of one record in a list. */
export const maxListedContent = 4_000;

/** A text, possibly cut. */
export interface CutText {
  readonly content: string;
  /** The number of missing characters, in code points. */
  readonly content_cut?: number;
}

/** Cuts a text to `max` characters, never inside a surrogate pair. */
export function cutText(text: string, max: number): CutText {
  if (text.length <= max) return { content: text };
  const content = text.slice(0, max).replace(/[\ud800-\udbff]$/, "");
  return { content, content_cut: codePointsIn(text.slice(content.length)) };
}

/** The part of a long text from `cursor` on, and the cursor of the next part. */
export function partOf(text: string, cursor: string | undefined): { content: string; next_cursor?: string } {
  const start = positionOf(cursor);
  const { content } = cutText(text.slice(start), maxAnswerLength);
  const next = start + content.length;
  return next >= text.length ? { content } : { content, next_cursor: String(next) };
}

/** One page of a list, and the cursor of the next page. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly total: number;
  readonly next_cursor?: string;
}

/**
 * Returns the items from `cursor` on that fit into one answer, at least one. The cursor is a position, so pages
 * shift if the list changes.
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

/** The position of a cursor; 0 without one. An invalid cursor lies past every end. */
function positionOf(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  return /^\d{1,9}$/.test(cursor) ? Number(cursor) : Number.MAX_SAFE_INTEGER;
}

/**
 * Converts a coding agent's path to the project's form: POSIX, relative to the root. Agents use relative and absolute
 * paths, the latter not always through the same links as the root. The file need not exist. Throws `invalid_request`
 * for a path outside the project.
 */
export function toProjectPath(agentPath: string, root: string): string {
  const path =
    inside(resolve(root, agentPath), root) ??
    (isAbsolute(agentPath) ? inside(realPath(agentPath), root) : undefined);
  if (path !== undefined && path !== "") return path;
  throw new KitError({ code: "invalid_request", message: `${agentPath} is not inside the project.` });
}

function inside(path: string, root: string): string | undefined {
  const from = relative(root, path);
  return from === ".." || from.startsWith(`..${sep}`) || isAbsolute(from)
    ? undefined
    : from.split(sep).join("/");
}

/** Resolves the links in the existing part of a path. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), path.slice(parent.length));
  }
}

/** The note after a cut text, with the tool that returns the rest. */
export function cutMark(cut: number | undefined, tool: string): string {
  return cut === undefined
    ? ""
    : `\n[cut: ${cut.toLocaleString("en")} more characters; ${tool} returns them]`;
}

/** The note at the end of an incomplete answer. */
export function nextPageMark(cursor: string | undefined): string {
  return cursor === undefined ? "" : `\n\n[cut: there is more; call again with cursor "${cursor}"]`;
}

/** A position in a file in the form of editors and terminals: `path:line`. */
export function placeOf(path: string, line: number | undefined): string {
  return line === undefined ? path : `${path}:${line}`;
}

/** The beginning of a text on one line. */
export function excerptOf(text: string, max: number): string {
  const line = text
    .slice(0, 4 * max)
    .replace(/\s+/g, " ")
    .trim();
  return line.length <= max ? line : `${line.slice(0, max - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}
