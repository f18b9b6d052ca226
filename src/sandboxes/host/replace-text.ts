import { KitError } from "../../base/kit-error.ts";
import { invalid } from "../../files/obstacle.ts";

export interface TextChange {
  readonly old: string;
  readonly new: string;
  readonly all?: boolean;
}

/**
 * Replaces `old` in the text of a file. Throws `conflict` if it is missing, or occurs several times and `all` is
 * not set; throws `invalid_request` if the file is not UTF-8.
 *
 * Models write LF line ends. If `old` is not found, it is searched for and replaced with CRLF line ends.
 */
export function replaceText(
  bytes: Uint8Array,
  change: TextChange,
  path: string,
): { readonly text: string; readonly replacements: number } {
  if (change.old === "") throw invalid("The text to replace is empty.");
  const text = decode(bytes, path);
  const edit = text.includes(change.old) ? change : withCarriageReturns(change);
  const parts = text.split(edit.old);
  const replacements = parts.length - 1;
  if (replacements === 0) throw conflict(`The text to replace is not in ${path}.`);
  if (replacements > 1 && change.all !== true) {
    throw conflict(
      `The text to replace is in ${path} ${replacements} times. Include more of the text around it, or set all.`,
    );
  }
  return { text: parts.join(edit.new), replacements };
}

function decode(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw notText(path, error);
  }
}

function withCarriageReturns(change: TextChange): TextChange {
  const convert = (text: string): string => text.replace(/\r?\n/g, "\r\n");
  return { ...change, old: convert(change.old), new: convert(change.new) };
}

const notText = (path: string, cause: unknown): KitError =>
  new KitError({ code: "invalid_request", message: `${path} is not UTF-8 text.`, cause });

const conflict = (message: string): KitError => new KitError({ code: "conflict", message });
