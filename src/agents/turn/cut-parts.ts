import { codePointsIn } from "../../base/text-size.ts";
import type { ImagePart, TextPart } from "../../protocol/message.ts";
import { mapPacked } from "../log/to-prompt.ts";

type Part = TextPart | ImagePart;

/** Characters of one result that the model sees by default. */
export const defaultMaxResultChars = 50_000;

/**
 * A text of at most `limit` characters and a line that says how many were cut, in code points. The beginning and
 * the end of an output matter most, so the middle is cut.
 */
export function cutText(text: string, limit: number = defaultMaxResultChars): string {
  return cutParts([{ type: "text", text }], limit)
    .map((part) => (part.type === "text" ? part.text : ""))
    .join("");
}

/** Cuts a list of parts as one text: the kept end is that of the last part. Images stay in place. */
export function cutParts(parts: readonly Part[], limit: number): readonly Part[] {
  const total = parts.reduce((sum, part) => sum + lengthOf(part), 0);
  const head = Math.ceil(limit * 0.7);
  // Providers refuse half of a surrogate pair, which a tool or a cut may leave.
  if (total <= limit) return mapPacked(parts, wellFormed);
  let start = 0;
  const pieces = parts.map((part) => {
    const [cutFrom, cutTo] = [head - start, total - (limit - head) - start];
    start += lengthOf(part);
    return part.type === "text" && cutFrom < part.text.length && cutTo > 0
      ? pieceOf(part.text, Math.max(0, cutFrom), cutTo)
      : wellFormed(part);
  });
  const dropped = pieces.reduce((sum, piece) => sum + ("dropped" in piece ? piece.dropped : 0), 0);
  let mark = `\n[… ${dropped} characters cut …]\n`;
  return pieces.flatMap((piece): readonly Part[] => {
    if (!("dropped" in piece)) return [piece];
    const text = `${piece.before}${mark}${piece.after}`;
    mark = "";
    return text === "" ? [] : [{ type: "text", text: text.toWellFormed() }];
  });
}

interface Piece {
  readonly before: string;
  readonly after: string;
  /** The number of code points between two indexes. */
  readonly dropped: number;
}

/** Cuts a range out of a text. A surrogate pair at the edge is cut as a whole. */
function pieceOf(text: string, from: number, to: number): Piece {
  const begin = isPairAt(text, from - 1) ? from - 1 : from;
  const end = isPairAt(text, to - 1) ? to + 1 : to;
  return {
    before: text.slice(0, begin),
    after: text.slice(end),
    dropped: codePointsIn(text.slice(begin, end)),
  };
}

function isPairAt(text: string, index: number): boolean {
  return index >= 0 && (text.codePointAt(index) ?? 0) > 0xffff;
}

function lengthOf(part: Part): number {
  return part.type === "text" ? part.text.length : 0;
}

function wellFormed(part: Part): Part {
  return part.type === "text" ? { ...part, text: part.text.toWellFormed() } : part;
}
