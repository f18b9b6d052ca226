import { lineKinds, lineText, type MarkdownScan, scanMarkdown } from "../../specs/markdown/scan-markdown.ts";
import { findSealed } from "../convert/sealed-content.ts";
import { type ManagedMark, managedHash, readMarkText, toMarkText } from "./managed-mark.ts";

const opener = /^<!-- (kit:sync .*) -->\s*$/;
const closer = /^<!-- \/kit:sync -->\s*$/;
const closingLine = "<!-- /kit:sync -->";

/** The part of a shared file (CLAUDE.md, AGENTS.md) that a sync wrote, between two comments. */
export interface ManagedPart extends ManagedMark {
  /** 1-based lines of the two comments. */
  readonly openLine: number;
  readonly closeLine: number;
  /** False when somebody edited it since. */
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
 * The managed part of a file. `damaged` when its two comments are not exactly one pair: then nobody
 * knows what is kit's and what is not.
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

/** The scan of a file with sections, blind to what is sealed in it. */
export function scanShared(text: string): MarkdownScan {
  return { ...scanMarkdown(findSealed(text).masked), text };
}

/** Offsets from the opening comment to the end of the closing one, without its line end. */
function placeOf(text: string): { readonly from: number; readonly to: number } | undefined {
  const scan = scanShared(text);
  const [openLine, closeLine] = managedLines(scan);
  if (openLine === undefined || closeLine === undefined) return undefined;
  return { from: scan.starts[openLine - 1] ?? 0, to: scan.ends[closeLine - 1] ?? text.length };
}
