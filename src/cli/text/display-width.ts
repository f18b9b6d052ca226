import { createRequire } from "node:module";

// Latin letters and the punctuation of prose: one column each, whatever the terminal.
const narrow = /^[\x20-\x7E\xA1-\xAC\xAE-\u02FF\u2010-\u2015\u2018-\u2022\u2026]*$/;
const require = createRequire(import.meta.url);
// Made when first needed: it takes 14 ms, and most lines are short.
let segmenter: Intl.Segmenter | undefined;

/** Columns that a line without control characters takes in a terminal. */
export function displayWidth(text: string): number {
  if (narrow.test(text)) return text.length;
  // Compiling its tables takes as long as starting Node, and most texts never need them.
  const { default: stringWidth } = require("string-width") as typeof import("string-width");
  return stringWidth(text);
}

/** The part of a text that is cut. */
export type Cut = "start" | "middle" | "end";

/**
 * The text, or as much of it as fits into `width` columns with a … where it was cut; of a path in the middle, because both
 * where it begins and what it is called tell it from others.
 */
export function truncate(text: string, width: number, cut: Cut = "end"): string {
  // A column is at most one character wide, so what lies far beyond the cut need not be measured.
  if (text.length <= width * 8 && displayWidth(text) <= width) return text;
  if (cut === "middle") {
    const endWidth = Math.ceil((width - 1) * 0.6);
    return truncate(text, width - endWidth, "end") + truncate(text, endWidth + 1, "start").slice(1);
  }
  const window = cut === "end" ? text.slice(0, width * 8) : text.slice(-width * 8);
  segmenter ??= new Intl.Segmenter();
  const clusters = [...segmenter.segment(window)].map((part) => part.segment);
  if (cut === "start") clusters.reverse();
  const kept: string[] = [];
  let room = width - 1;
  for (const cluster of clusters) {
    room -= displayWidth(cluster);
    if (room < 0) break;
    kept.push(cluster);
  }
  return cut === "end" ? `${kept.join("").trimEnd()}…` : `…${kept.reverse().join("").trimStart()}`;
}

/** The text, filled with blanks up to `width` columns. */
export function pad(text: string, width: number, align: "left" | "right" = "left"): string {
  const blanks = " ".repeat(Math.max(0, width - displayWidth(text)));
  return align === "left" ? text + blanks : blanks + text;
}

/**
 * One line as several that are at most `width` columns wide, broken at blanks; all begin with the blanks that it begins with. A word that is wider
 * than that stays whole, because paths and ids are there to be copied.
 */
export function wrap(text: string, width: number): readonly string[] {
  const [indent = ""] = /^ */.exec(text) ?? [];
  if (indent !== "")
    return wrap(text.slice(indent.length), width - indent.length).map((line) => indent + line);
  const lines: string[] = [];
  let line = "";
  let used = 0;
  for (const word of text.split(" ")) {
    const wordWidth = displayWidth(word);
    if (line !== "" && used + 1 + wordWidth > width) {
      lines.push(line);
      line = word;
      used = wordWidth;
    } else {
      line = line === "" ? word : `${line} ${word}`;
      used += wordWidth + (used === 0 ? 0 : 1);
    }
  }
  return [...lines, line];
}
