// A terminal's control sequences (ECMA-48): CSI with its parameters, and OSC, DCS, APC, PM and SOS
// strings with what they carry. Node's own stripVTControlCharacters takes minutes for 400 kB of
// unfinished strings; here no character is looked at more than twice, because no part crosses an ESC.
const sequence =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
  /(?:\u001B\[|\u009B)[0-?]*[ -/]*[@-~]?|\u001B[\]PX^_](?:[^\u0007\u001B\n]*(?:\u0007|\u001B\\))?/g;

// Everything that moves the cursor, rings a bell or hides text: C0 and C1 controls, byte order marks,
// and the marks that reorder what is read (Unicode Bidi_Control).
const unsafe = /[\p{Cc}\uFEFF\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;

/**
 * A text from a file as lines that are safe to print: without terminal sequences, control characters
 * and bidirectional overrides. Every kind of line break becomes a line feed; tabs stay.
 */
export function safeLines(text: string): string {
  return text
    .replace(sequence, "")
    .replace(/\r\n?|[\u2028\u2029]/g, "\n")
    .replace(unsafe, (char) => (char === "\n" || char === "\t" ? char : ""));
}

/** The same as one line: every run of white space is one blank. */
export function safeLine(text: string): string {
  return safeLines(text).replace(/\s+/g, " ").trim();
}

/** JSON for a terminal or a file: the same value, with the characters above as `\u` escapes. */
export function toSafeJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(unsafe, (char) => (char === "\n" ? char : toEscape(char)));
}

/** The same on one line, for a stream of values. */
export function toSafeJsonLine(value: unknown): string {
  return JSON.stringify(value).replace(unsafe, toEscape);
}

function toEscape(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
