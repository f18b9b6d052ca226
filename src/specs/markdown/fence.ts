import { firstInk, isBlank, runLength } from "./characters.ts";

/** The opening of a code fence: its character and how often it stands there. */
export interface Fence {
  readonly code: number;
  readonly length: number;
}

const backtick = 96;

/** The fence (CommonMark 0.31.2, section 4.5) that a line opens with the backtick or tilde at `at`. */
export function fenceAt(text: string, at: number, end: number): Fence | undefined {
  const code = text.charCodeAt(at);
  const length = runLength(text, at, end);
  // Backticks in the info string make it inline code.
  if (length < 3 || (code === backtick && text.slice(at + length, end).includes("`"))) return undefined;
  return { code, length };
}

/** Whether a line closes a fence: a bare run of its own character that is at least as long. */
export function closesFence(
  fence: Fence,
  text: string,
  line: { readonly start: number; readonly end: number },
): boolean {
  const at = firstInk(text, line.start, line.end);
  if (at === line.end || text.charCodeAt(at) !== fence.code) return false;
  const length = runLength(text, at, line.end);
  return length >= fence.length && isBlank(text, at + length, line.end);
}
