import { createRequire } from "node:module";

// A terminal's control sequences (ECMA-48): CSI with its parameters, and OSC, DCS, APC, PM and SOS
// strings with what they carry. Node's own stripVTControlCharacters takes minutes for 400 kB of
// unfinished strings; here no character is looked at more than twice, because no part crosses an ESC.
const sequence =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
  /(?:\u001B\[|\u009B)[0-?]*[ -/]*[@-~]?|\u001B[\]PX^_](?:[^\u0007\u001B\n]*(?:\u0007|\u001B\\))?/g;

// All characters that move the cursor, ring a bell or hide text: C0 and C1 controls, byte order marks, and the marks
// that reorder text (Unicode Bidi_Control).
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

/** The same as one line: every run of white space becomes one blank. */
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

// Latin letters and the punctuation of prose: one column each, whatever the terminal.
const narrow = /^[\x20-\x7E\xA1-\xAC\xAE-\u02FF\u2010-\u2015\u2018-\u2022\u2026]*$/;
const require = createRequire(import.meta.url);
// Created on first use: it takes 14 ms, and most lines are short.
let segmenter: Intl.Segmenter | undefined;

/** The columns that a line without control characters takes in a terminal. */
export function displayWidth(text: string): number {
  if (narrow.test(text)) return text.length;
  // Compiling its tables takes as long as starting Node, and most texts never need them.
  const { default: stringWidth } = require("string-width") as typeof import("string-width");
  return stringWidth(text);
}

/** The part of a text that is cut. */
export type Cut = "start" | "middle" | "end";

/**
 * The text, or as much of it as fits into `width` columns, with a … at the cut; a path is cut in the middle, because
 * its beginning and its file name identify it.
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
  const lines: string[] = [];
  let remaining = width - 1;
  for (const cluster of clusters) {
    remaining -= displayWidth(cluster);
    if (remaining < 0) break;
    lines.push(cluster);
  }
  return cut === "end" ? `${lines.join("").trimEnd()}…` : `…${lines.reverse().join("").trimStart()}`;
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

/** A duration for people: `850 ms`, `12.3 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`. */
export function span(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return twoUnits(seconds, 60, ["min", "s"]);
  const minutes = Math.round(seconds / 60);
  if (minutes < 1_440) return twoUnits(minutes, 60, ["h", "min"]);
  return twoUnits(Math.round(minutes / 60), 24, ["d", "h"]);
}

/** How far an ISO 8601 time is from now: `12 s ago`, `in 3 h`, `now`. A text that is not a time stays as it is. */
export function fromNow(time: string, now: number = Date.now()): string {
  const ms = Date.parse(time) - now;
  if (Number.isNaN(ms)) return time;
  const size = Math.abs(ms);
  if (size < 1_000) return "now";
  const units = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "min"],
    [1_000, "s"],
  ] as const;
  const [unit, name] = units.find(([length]) => size >= length) ?? units[3];
  const text = `${Math.floor(size / unit)} ${name}`;
  return ms < 0 ? `${text} ago` : `in ${text}`;
}

/** The time itself, and how far it is: `2026-11-22T10:50:02.383Z (12 s ago)`. */
export function withDistance(time: string | undefined): string | undefined {
  return time === undefined ? undefined : `${time} (${fromNow(time)})`;
}

function twoUnits(value: number, size: number, [large, small]: readonly [string, string]): string {
  const rest = value % size;
  return rest === 0 ? `${value / size} ${large}` : `${Math.floor(value / size)} ${large} ${rest} ${small}`;
}
