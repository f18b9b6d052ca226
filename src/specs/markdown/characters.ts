// How the scanner looks at a line without copying it: by character code, between two offsets.

const tab = 9;
const space = 32;

export function isSpace(code: number): boolean {
  return code === space || code === tab;
}

/** The offset of the first character that is no space or tab; `end` where there is none. */
export function firstInk(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

/** How often the character at an offset is repeated from there on. */
export function runLength(text: string, from: number, end: number): number {
  const code = text.charCodeAt(from);
  let at = from;
  while (at < end && text.charCodeAt(at) === code) at += 1;
  return at - from;
}

/** Whether there is nothing but white space between two offsets. */
export function isBlank(text: string, from: number, end: number): boolean {
  return text.slice(from, end).trim() === "";
}
