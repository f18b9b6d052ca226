import { codePointsIn } from "../../base/code-points.ts";

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

/** A cursor as a position; 0 without one. What is no position is past every end. */
function positionOf(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  return /^\d{1,9}$/.test(cursor) ? Number(cursor) : Number.MAX_SAFE_INTEGER;
}
