import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { type SyncFormat, syncFormats } from "../../protocol/enums.ts";
import { lineKinds, lineText, type MarkdownScan, scanMarkdown } from "../../specs/markdown/scan-markdown.ts";
import { findEmbedded } from "../convert/embedded-content.ts";

const opener = /^<!-- (kit:sync .*) -->\s*$/;
const closer = /^<!-- \/kit:sync -->\s*$/;
const closingLine = "<!-- /kit:sync -->";

/** The part of a shared file (CLAUDE.md, AGENTS.md) that a sync wrote, between two comments. */
export interface ManagedPart extends ManagedMark {
  /** 1-based lines of the two comments. */
  readonly openLine: number;
  readonly closeLine: number;
  /** False when it was edited since. */
  readonly isIntact: boolean;
}

/** Lines of comments that open or close a managed part, in order. Linear in the text. */
export function managedLines(scan: MarkdownScan): readonly number[] {
  if (!scan.text.includes("kit:sync")) return [];
  const lines: number[] = [];
  for (let line = scan.bodyLine; line <= scan.lineCount; line += 1) {
    if (scan.kinds[line - 1] !== lineKinds.comment) continue;
    const text = lineText(scan, line);
    if (opener.test(text) || closer.test(text)) lines.push(line);
  }
  return lines;
}

/**
 * The managed part of a file. `damaged` when its two comments are not exactly one pair: then kit
 * cannot tell its own lines from others.
 */
export function managedPartOf(scan: MarkdownScan): ManagedPart | "damaged" | undefined {
  const [openLine, closeLine, ...others] = managedLines(scan);
  if (openLine === undefined) return undefined;
  const words = opener.exec(lineText(scan, openLine))?.[1];
  const mark = words === undefined ? undefined : readMarkText(words);
  if (mark === undefined || closeLine === undefined || others.length > 0) return "damaged";
  if (!closer.test(lineText(scan, closeLine))) return "damaged";
  const body = scan.text.slice(scan.starts[openLine] ?? 0, scan.starts[closeLine - 1]);
  return { ...mark, openLine, closeLine, isIntact: managedHash(body) === mark.hash };
}

/** Whether a line (1-based) stands between the comments of a managed part. */
export function isInside(part: ReturnType<typeof managedPartOf>, line: number): part is ManagedPart {
  return typeof part === "object" && part.openLine < line && line < part.closeLine;
}

/**
 * A file with its managed part replaced, or with one added at its end.
 * Every byte outside stays, and the file's own line ends are used. Expects a part that is not damaged.
 */
export function putManagedPart(text: string, body: string, source: ManagedMark["source"]): string {
  const lineEnd = /\r\n|\n|\r/.exec(text)?.[0] ?? "\n";
  const mark = toMarkText({ source, hash: managedHash(`\n${body}\n\n`) });
  const part = `<!-- ${mark} -->\n\n${body}\n\n${closingLine}`.replaceAll("\n", lineEnd);
  const place = placeOf(text);
  if (place !== undefined) return text.slice(0, place.from) + part + text.slice(place.to);
  const visible = text.replace(/^\ufeff/, "");
  if (visible.trim() === "") return text + (/[^\r\n]$/.test(visible) ? lineEnd : "") + part + lineEnd;
  const ending = /(?:\r\n|\n|\r)?[ \t]*(?:\r\n|\n|\r)?$/.exec(text)?.[0] ?? "";
  const breaks = ending.match(/\r\n|\n|\r/g)?.length ?? 0;
  return text + lineEnd.repeat(2 - breaks) + part + lineEnd;
}

/** A file without its managed part, and without the blank lines that kept it apart. */
export function removeManagedPart(text: string): string {
  const place = placeOf(text);
  if (place === undefined) return text;
  const before = text.slice(0, place.from).replace(/(\r\n|\n|\r)(?:[ \t]*(?:\r\n|\n|\r))+$/, "$1");
  const after = text.slice(place.to).replace(/^[ \t]*(?:\r\n|\n|\r)/, "");
  return before + after;
}

/** Scans a file with sections; sealed content in it is blanked out. */
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

/** The mark of a file that a sync wrote as a whole, and whether it is still as it was written. */
interface ManagedFile extends ManagedMark {
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

/** A file without its mark. */
export function withoutMark(text: string): string {
  return text.replace(markLine, "---$1").replace(/^\ufeff/, "");
}

/** The mark at the start of text that a sync wrote: its source, and the hash of the text. */
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

/** The words of a mark, for a comment of any syntax. */
function toMarkText({ source, hash }: ManagedMark): string {
  return `kit:sync source=${source} sha256=${hash}; written from ${sourceLabels[source]}: edit there, then run "kit guidelines sync"`;
}

/** The mark in a comment; undefined where there is none. */
function readMarkText(comment: string): ManagedMark | undefined {
  const [, written, hash = ""] = pattern.exec(comment) ?? [];
  const source = syncFormats.find((format) => format === written);
  return source && { source, hash };
}

/** The first 16 hex digits of SHA-256. Line ends do not count, because Git and editors change them. */
function managedHash(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text.replace(/\r\n?/g, "\n").toWellFormed())).subarray(0, 8));
}
