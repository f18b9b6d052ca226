import type { Diagnostic } from "../../protocol/diagnostic.ts";

export interface DecodedText {
  /** Without a byte order mark; NUL characters are U+FFFD, as CommonMark says. */
  readonly text: string;
  readonly diagnostics: readonly Diagnostic[];
}

const strict = new TextDecoder("utf-8", { fatal: true });
const lossy = new TextDecoder("utf-8");

/**
 * Decodes the bytes of a file: UTF-8, or UTF-16 by its byte order mark. Other bytes become U+FFFD. Anything but clean UTF-8
 * gives a diagnostic for `path`.
 */
export function decodeText(bytes: Uint8Array, path: string): DecodedText {
  const utf16 = utf16Of(bytes);
  if (utf16 !== undefined) {
    const text = new TextDecoder(utf16).decode(bytes);
    return withoutNul(text, path, [
      problem(path, {
        code: "utf16",
        message: "The file is UTF-16; save it as UTF-8, which every tool reads.",
      }),
    ]);
  }
  try {
    return withoutNul(strict.decode(bytes), path, []);
  } catch {
    const text = lossy.decode(bytes);
    const line = lineOf(text, text.indexOf("\ufffd"));
    const message = "The file is not valid UTF-8; what cannot be read is shown as \ufffd.";
    return withoutNul(text, path, [problem(path, { code: "not_utf8", message, line })]);
  }
}

function utf16Of(bytes: Uint8Array): "utf-16le" | "utf-16be" | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return undefined;
}

function withoutNul(text: string, path: string, diagnostics: readonly Diagnostic[]): DecodedText {
  const at = text.indexOf("\0");
  if (at === -1) return { text, diagnostics };
  const message = "The file holds NUL characters, which no text has; is it binary?";
  const nul = problem(path, { code: "nul", message, line: lineOf(text, at) });
  return { text: text.replaceAll("\0", "\ufffd"), diagnostics: [...diagnostics, nul] };
}

function lineOf(text: string, offset: number): number {
  const lines = text.slice(0, Math.max(0, offset)).match(/\r\n|\n|\r/g);
  return (lines?.length ?? 0) + 1;
}

function problem(
  path: string,
  { code, message, line }: { readonly code: string; readonly message: string; readonly line?: number },
): Diagnostic {
  const diagnostic: Diagnostic = { severity: "warning", rule: "encoding", code, message, path };
  return line === undefined ? diagnostic : { ...diagnostic, line };
}
