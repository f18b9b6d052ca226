import { splitLines } from "../../specs/markdown/characters.ts";
import { readPatternLine } from "../match/guideline-matcher.ts";

// Content whose own headings, open fences or comments would change the file around it is written between two comments. Readers
// drop the comments, and take the text between them as it is.

/** The start of every opening comment. */
export const embeddedMark = "<!-- kit:guideline";
const opener = /^<!-- kit:guideline(?: (\d+))? -->$/;
const closer = /^<!-- \/kit:guideline(?: (\d+))? -->$/;

/** A sealed stretch: 1-based lines of the two comments. */
export interface SealedStretch {
  readonly open: number;
  readonly close: number;
}

export interface EmbeddedText {
  /** The text with sealed content blanked out; offsets and lines are those of the text as given. */
  readonly masked: string;
  /** By the line of the opening comment. */
  readonly stretches: ReadonlyMap<number, SealedStretch>;
}

/** Encloses content in comments that do not occur in it. */
export function embedContent(content: string): string {
  let mark = "";
  for (let n = 2; content.includes(`<!-- /kit:guideline${mark} -->`); n += 1) mark = ` ${n}`;
  return `<!-- kit:guideline${mark} -->\n${content}\n<!-- /kit:guideline${mark} -->`;
}

/** Finds sealed content directly under second-level headings. Linear in the text. */
export function findEmbedded(text: string): EmbeddedText {
  const stretches = new Map<number, SealedStretch>();
  if (!text.includes(embeddedMark)) return { masked: text, stretches };
  const { starts, ends } = splitLines(text);
  const lines = starts.map((start, index) => text.slice(start, ends[index]));
  const closers = closersByMark(lines);
  let masked = "";
  let copied = 0;
  let underHeading = false;
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    const mark = opener.exec(line);
    if (mark !== null && underHeading) {
      const close = nextAfter(closers.get(mark[1] ?? ""), index);
      if (close !== undefined) {
        stretches.set(index + 1, { open: index + 1, close: close + 1 });
        const from = starts[index + 1] ?? text.length;
        const to = starts[close] ?? text.length;
        masked += text.slice(copied, from) + text.slice(from, to).replace(/[^\r\n]/g, " ");
        copied = to;
        index = close;
      }
    }
    if (line.trim() !== "") underHeading = /^ {0,3}##[ \t]/.test(line) || readPatternLine(line) !== undefined;
  }
  return { masked: masked + text.slice(copied), stretches };
}

/** The lines of the closing comments, last first, so that they are taken from the end. */
function closersByMark(lines: readonly string[]): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (let index = lines.length - 1; index >= 0; index -= 1) {
    const match = closer.exec(lines[index] ?? "");
    if (match === null) continue;
    const mark = match[1] ?? "";
    const list = found.get(mark);
    if (list === undefined) found.set(mark, [index]);
    else list.push(index);
  }
  return found;
}

function nextAfter(descending: number[] | undefined, index: number): number | undefined {
  while (descending !== undefined && (descending.at(-1) ?? Number.POSITIVE_INFINITY) <= index)
    descending.pop();
  return descending?.at(-1);
}

// YAML 1.1 readers take these for booleans and nulls, so they are quoted although YAML 1.2 does not.
const reserved = /^(?:true|false|yes|no|on|off|y|n|null)$/i;
const plain = /^[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*$/;
// A double-quoted scalar may not hold these characters as they are: YAML 1.2.2, section 5.1.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must be escaped
const unprintable = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]/g;

/** A text as a YAML scalar on one line, quoted where it needs to be. */
export function toYamlScalar(text: string): string {
  return plain.test(text) && !reserved.test(text) ? text : toQuotedYaml(text);
}

/** A text as a double-quoted YAML scalar; globs always are, for the readers that need it. */
export function toQuotedYaml(text: string): string {
  const escaped = text.replace(/["\\]/g, "\\$&").replace(unprintable, escapeOf);
  return `"${escaped}"`;
}

function escapeOf(character: string): string {
  switch (character) {
    case "\n":
      return "\\n";
    case "\t":
      return "\\t";
    case "\r":
      return "\\r";
    default:
      return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  }
}

/** A front matter block of texts and lists of texts, with its fences and a line end. */
export function toFrontMatter(
  entries: Readonly<Record<string, string | boolean | readonly string[]>>,
): string {
  const lines = Object.entries(entries).map(([key, value]) => {
    if (typeof value === "boolean") return `${key}: ${value}`;
    if (typeof value !== "string")
      return `${key}:${value.map((item) => `\n  - ${toQuotedYaml(item)}`).join("")}`;
    return `${key}: ${isPatternKey(key) ? toQuotedYaml(value) : toYamlScalar(value)}`;
  });
  return `---\n${lines.join("\n")}\n---\n`;
}

function isPatternKey(key: string): boolean {
  return key === "fileMatchPattern" || key === "globs" || key === "paths";
}
