import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { type SyncFormat, syncFormats } from "../protocol/enums.ts";
import { splitLines, splitOutsideBraces } from "../specs/markdown/characters.ts";
import { lineKinds, lineText, type MarkdownScan, scanMarkdown } from "../specs/markdown/scan-markdown.ts";

// Kit writes two kinds of comments into guideline files. `kit:guideline` seals content whose own headings, open fences or comments
// would change the file around it: readers drop the comments and keep the text between them unchanged. `kit:sync` marks the part of
// a file that a sync wrote.

/** The start of every comment that opens a seal. */
export const embeddedMark = "<!-- kit:guideline";
const sealOpener = /^<!-- kit:guideline(?: (\d+))? -->$/;
const sealCloser = /^<!-- \/kit:guideline(?: (\d+))? -->$/;

/** A sealed stretch: 1-based lines of the two comments. */
export interface SealedStretch {
  readonly open: number;
  readonly close: number;
}

interface EmbeddedText {
  /** The text with blanks in place of sealed content; offsets and lines are those of the original text. */
  readonly masked: string;
  /** The key is the line of the opening comment. */
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
    const mark = sealOpener.exec(line);
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

/** The lines of the closing comments by their mark, last first: `nextAfter` pops the lines it has passed. */
function closersByMark(lines: readonly string[]): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (let index = lines.length - 1; index >= 0; index -= 1) {
    const match = sealCloser.exec(lines[index] ?? "");
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

const syncOpener = /^<!-- (kit:sync .*) -->\s*$/;
const syncCloser = /^<!-- \/kit:sync -->\s*$/;
const syncClosingLine = "<!-- /kit:sync -->";

/** The part of a shared file (CLAUDE.md, AGENTS.md) that a sync wrote, between two comments. */
interface ManagedPart extends ManagedMark {
  /** 1-based lines of the two comments. */
  readonly openLine: number;
  readonly closeLine: number;
  /** False if someone has edited the part since the sync. */
  readonly isIntact: boolean;
}

/** Lines of comments that open or close a managed part, in order. Linear in the text. */
export function managedLines(scan: MarkdownScan): readonly number[] {
  if (!scan.text.includes("kit:sync")) return [];
  const lines: number[] = [];
  for (let line = scan.bodyLine; line <= scan.lineCount; line += 1) {
    if (scan.kinds[line - 1] !== lineKinds.comment) continue;
    const text = lineText(scan, line);
    if (syncOpener.test(text) || syncCloser.test(text)) lines.push(line);
  }
  return lines;
}

/**
 * The managed part of a file. `damaged` if the comments are not exactly one pair: kit then cannot tell its own lines from the
 * user's.
 */
export function managedPartOf(scan: MarkdownScan): ManagedPart | "damaged" | undefined {
  const [openLine, closeLine, ...others] = managedLines(scan);
  if (openLine === undefined) return undefined;
  const words = syncOpener.exec(lineText(scan, openLine))?.[1];
  const mark = words === undefined ? undefined : readMarkText(words);
  if (mark === undefined || closeLine === undefined || others.length > 0) return "damaged";
  if (!syncCloser.test(lineText(scan, closeLine))) return "damaged";
  const body = scan.text.slice(scan.starts[openLine] ?? 0, scan.starts[closeLine - 1]);
  return { ...mark, openLine, closeLine, isIntact: managedHash(body) === mark.hash };
}

/** Whether a line (1-based) is between the comments of a managed part. */
export function isInside(part: ReturnType<typeof managedPartOf>, line: number): part is ManagedPart {
  return typeof part === "object" && part.openLine < line && line < part.closeLine;
}

/**
 * Replaces the managed part of a file, or adds one at the end. Keeps every byte outside the part, and uses the file's own line
 * ends. The part must not be damaged.
 */
export function putManagedPart(text: string, body: string, source: ManagedMark["source"]): string {
  const lineEnd = /\r\n|\n|\r/.exec(text)?.[0] ?? "\n";
  const mark = toMarkText({ source, hash: managedHash(`\n${body}\n\n`) });
  const part = `<!-- ${mark} -->\n\n${body}\n\n${syncClosingLine}`.replaceAll("\n", lineEnd);
  const place = placeOf(text);
  if (place !== undefined) return text.slice(0, place.from) + part + text.slice(place.to);
  const visible = text.replace(/^\ufeff/, "");
  if (visible.trim() === "") return text + (/[^\r\n]$/.test(visible) ? lineEnd : "") + part + lineEnd;
  const ending = /(?:\r\n|\n|\r)?[ \t]*(?:\r\n|\n|\r)?$/.exec(text)?.[0] ?? "";
  const breaks = ending.match(/\r\n|\n|\r/g)?.length ?? 0;
  return text + lineEnd.repeat(2 - breaks) + part + lineEnd;
}

/** Removes the managed part of a file, and the blank lines around it. */
export function removeManagedPart(text: string): string {
  const place = placeOf(text);
  if (place === undefined) return text;
  const before = text.slice(0, place.from).replace(/(\r\n|\n|\r)(?:[ \t]*(?:\r\n|\n|\r))+$/, "$1");
  const after = text.slice(place.to).replace(/^[ \t]*(?:\r\n|\n|\r)/, "");
  return before + after;
}

/** Scans a file with sections; the scan sees blanks in place of sealed content. */
export function scanShared(text: string): MarkdownScan {
  return { ...scanMarkdown(findEmbedded(text).masked), text };
}

/** Offsets from the opening comment to the end of the closing one, without its line end. */
function placeOf(text: string): { readonly from: number; readonly to: number } | undefined {
  const scan = scanShared(text);
  const [openLine, closeLine] = managedLines(scan);
  if (openLine === undefined || closeLine === undefined) return undefined;
  return { from: scan.starts[openLine - 1] ?? 0, to: scan.ends[closeLine - 1] ?? text.length };
}

/** The mark of a file that a sync wrote completely. */
interface ManagedFile extends ManagedMark {
  /** False if someone has edited the file since the sync. */
  readonly isIntact: boolean;
}

/** The mark is a YAML comment in the first line of the front matter, which every such file has. */
const markLine = /^\ufeff?---[ \t]*(\r\n|\n|\r)# (kit:sync .*)(?:\r\n|\n|\r)/;

/** Puts the mark into a file with front matter. */
export function markFile(text: string, source: ManagedMark["source"]): string {
  const mark = toMarkText({ source, hash: managedHash(text) });
  return text.replace(/^---\n/, `---\n# ${mark}\n`);
}

export function managedFileOf(text: string): ManagedFile | undefined {
  const mark = readMarkText(markLine.exec(text)?.[2] ?? "");
  return mark && { ...mark, isIntact: managedHash(withoutMark(text)) === mark.hash };
}

/** Removes the mark of a file. */
export function withoutMark(text: string): string {
  return text.replace(markLine, "---$1").replace(/^\ufeff/, "");
}

/** The mark of text that a sync wrote: its source, and the hash of the text. */
interface ManagedMark {
  readonly source: SyncFormat;
  /** `managedHash` of the text that was written. */
  readonly hash: string;
}

const pattern = /\bkit:sync source=([a-z_]+) sha256=([0-9a-f]{16})\b/;

/** The common names of the files of a format. */
export const sourceLabels: Readonly<Record<SyncFormat, string>> = {
  agents: "AGENTS.md",
  fw_c: "CLAUDE.md and .claude/rules",
  fw_b: "Cursor's rules",
  steering: ".kiro/steering",
  copilot: "Copilot's instructions",
  gemini: "GEMINI.md",
  windsurf: "Windsurf's rules",
  cline: ".clinerules",
  zed: ".rules",
};

/** A mark as text, for a comment in any syntax. */
function toMarkText({ source, hash }: ManagedMark): string {
  return `kit:sync source=${source} sha256=${hash}; written from ${sourceLabels[source]}: edit there, then run "kit guidelines sync"`;
}

/** The mark in a comment; undefined if it has none. */
function readMarkText(comment: string): ManagedMark | undefined {
  const [, written, hash = ""] = pattern.exec(comment) ?? [];
  const source = syncFormats.find((format) => format === written);
  return source && { source, hash };
}

/** The first 16 hex digits of SHA-256. Ignores line ends, because Git and editors change them. */
function managedHash(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text.replace(/\r\n?/g, "\n").toWellFormed())).subarray(0, 8));
}

const patternLine = /^_File pattern: (`+)(.+)\1_$/;

/**
 * The line under a sub-heading that carries a `file_pattern` in formats without front matter:
 * ``_File pattern: `src/**\/*.ts`_``. Text with control characters is spelled as a JSON string.
 */
export function toPatternLine(filePattern: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a line break would end the line
  const isPlain = !/[\u0000-\u001f\u007f]|^"|^\s|\s$/.test(filePattern);
  const text = isPlain ? filePattern : JSON.stringify(filePattern);
  const longest = Math.max(0, ...Array.from(text.matchAll(/`+/g), (run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  // CommonMark strips one space from both ends, so that a span can begin with a backtick.
  const padding = text.startsWith("`") || text.endsWith("`") ? " " : "";
  return `_File pattern: ${fence}${padding}${text}${padding}${fence}_`;
}

/** The globs of such a line; undefined for any other line. */
export function readPatternLine(line: string): string[] | undefined {
  const match = patternLine.exec(line);
  const inside = match?.[2];
  if (inside === undefined || inside.startsWith("`") || inside.endsWith("`")) return undefined;
  const text = /^ .*` $|^ `.* $/.test(inside) ? inside.slice(1, -1) : inside;
  return splitOutsideBraces(text.startsWith('"') ? (parsedString(text) ?? text) : text);
}

function parsedString(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
