import { type Document, isMap, LineCounter, parseDocument } from "yaml";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import {
  inspectYaml,
  isYamlTooDeep,
  maxYamlDepth,
  readPlainFrontMatter,
  withoutPrototypeKeys,
} from "../data/safe-yaml.ts";
import { splitOutsideBraces } from "./characters.ts";
import { lineKinds, lineText, type MarkdownScan, textOfLines } from "./scan-markdown.ts";

export interface FrontMatter {
  /** The readable keys; `{}` without front matter. Never has the key `__proto__`. */
  readonly data: Readonly<Record<string, unknown>>;
  /** The text between the fences, unchanged. */
  readonly raw: string;
  readonly problems: readonly FrontMatterProblem[];
  /**
   * The 1-based line on which the text begins. If the text between two rules is not keys and values, it is part of the text, so
   * nothing of the file is lost.
   */
  readonly bodyLine: number;
}

/** The keys that a tool reads in a front matter, each with the values that it takes; no values where it takes any. */
export type FrontMatterKeys = Readonly<Record<string, readonly string[]>>;

const none = { data: {}, raw: "", problems: [], bodyLine: 1 } as const;

/**
 * Reads the YAML front matter of a scanned text. Never throws, runs nothing, expands no alias.
 *
 * Reads text that is not YAML line by line, because files that the tools write are not always YAML: Cursor writes `globs:
 * *.ts,**\/*.tsx`, which YAML parses as an alias. Only a value that cannot be read that way either is a problem. Linear in the
 * text.
 *
 * @example
 * ```ts
 * import { readFrontMatter, scanMarkdown } from "kit/specs";
 *
 * const { data, bodyLine } = readFrontMatter(scanMarkdown("---\ntitle: Returns\n---\nWithin 30 days.\n"));
 * console.log(data, bodyLine);
 * ```
 */
export function readFrontMatter(scan: MarkdownScan): FrontMatter {
  const open = scan.unclosed.find((entry) => entry.kind === "front_matter");
  if (open !== undefined) return { ...none, problems: [unterminated(scan)] };
  if (scan.kinds[0] !== lineKinds.frontMatter) return none;
  const raw = textOfLines(scan, 2, scan.bodyLine - 2);
  const { bodyLine } = scan;
  if (raw.trim() === "") return { ...none, raw, bodyLine };
  const text = raw.includes("\r") ? raw.replace(/\r\n?/g, "\n") : raw;
  const plain = readPlainFrontMatter(text);
  if (plain !== undefined) return { data: plain, raw, problems: [], bodyLine };

  const reading = readYamlFrontMatter(text);
  // The opening fence is line 1 of the file.
  const problems = reading.problems.map((entry) => ({ ...entry, line: entry.line + 1 }));
  const isText = problems.some((entry) => entry.code === "frontmatter_not_a_mapping");
  return { data: reading.data, raw, problems, bodyLine: isText ? 1 : bodyLine };
}

/** An error if a key follows the first line of hyphens, else a warning, because the line can also be a thematic break. */
function unterminated(scan: MarkdownScan): FrontMatterProblem {
  const severity = /^[A-Za-z_][\w-]*[ \t]*:/.test(lineText(scan, 2)) ? "error" : "warning";
  const message = "The front matter is never closed: a line of three hyphens is missing.";
  return { code: "frontmatter_unterminated", message, line: 1, severity };
}

/** The 1-based line of a key in the file; its front matter begins on line 2. */
export function lineOfKey(raw: string, key: string): number {
  const index = raw.split(/\r\n?|\n/).findIndex((line) => line.startsWith(`${key}:`));
  return index === -1 ? 1 : index + 2;
}

/** Front matter longer than this, in UTF-16 units, is not read. */
const maxFrontMatterLength = 32_768;

/** Reads the text between two fences as YAML, or line by line if it is not YAML. */
export function readYamlFrontMatter(text: string): FrontMatterReading {
  if (text.length > maxFrontMatterLength) {
    const message = `The front matter is longer than ${maxFrontMatterLength} characters and is not read.`;
    return { data: {}, problems: [{ code: "frontmatter_too_large", message, line: 1, severity: "error" }] };
  }
  if (isYamlTooDeep(text)) {
    const message = `The front matter is nested deeper than ${maxYamlDepth} levels and is not read.`;
    return { data: {}, problems: [invalid(message, 1)] };
  }
  return parseYaml(text) ?? readFrontMatterLines(text, parseYaml);
}

/** One YAML document that is a mapping; undefined where the text is not YAML or uses an alias. */
function parseYaml(text: string): FrontMatterReading | undefined {
  const lineCounter = new LineCounter();
  // `yaml` compares every key with every other one; `inspectYaml` does it in linear time.
  const options = { uniqueKeys: false, merge: false, prettyErrors: false, lineCounter };
  const document: Document = parseDocument(text, { ...options, logLevel: "silent" });
  if (document.errors.length > 0) return undefined;
  const found = inspectYaml(document.contents);
  if (found.hasAlias) return undefined;
  if (document.contents === null) return { data: {}, problems: [] };
  const lineOf = (offset: number): number => Math.max(1, lineCounter.linePos(offset).line);
  if (!isMap(document.contents)) {
    const message = "The front matter is not a list of keys and values.";
    const line = lineOf(document.contents.range?.[0] ?? 0);
    return {
      data: {},
      problems: [{ code: "frontmatter_not_a_mapping", message, line, severity: "error" }],
    };
  }
  const problems = found.duplicates.map((entry) => duplicateKey(entry.key, lineOf(entry.offset)));
  for (const warning of document.warnings) {
    const message = "The front matter uses a YAML tag that is not known; its value is read as plain data.";
    problems.push({ ...invalid(message, lineOf(warning.pos[0])), severity: "warning" });
  }
  const data = withoutPrototypeKeys(document.toJS({ maxAliasCount: 0 }));
  return { data: typeof data === "object" && data !== null ? { ...data } : {}, problems };
}

/** A key and the lines that belong to it; `line` is 1-based, of the text between the fences. */
interface Entry {
  readonly key: string;
  readonly value: string;
  readonly rest: readonly string[];
  readonly line: number;
}

const keyLine = /^([^\s:#'"[\]{}&*!|>%@`-][^\s:]*|"[^"\\]*"|'[^']*')[ \t]*:(?:[ \t]+(.*))?$/s;

/**
 * Reads front matter that is not YAML one key at a time, so that one invalid line does not affect the others.
 *
 * Reads a value that YAML cannot parse literally (`*.ts`, `a: b`, `[*.ts, *.tsx]`), unless it has an unclosed bracket or quote or
 * refers to an anchor. `parse` reads the YAML of one key.
 */
function readFrontMatterLines(
  text: string,
  parse: (text: string) => FrontMatterReading | undefined,
): FrontMatterReading {
  const { entries, strays } = entriesOf(text);
  const anchors = new Set(Array.from(text.matchAll(/(?:^|[\s,[{])&([^\s,[\]{}]+)/g), (match) => match[1]));
  const data = new Map<string, unknown>();
  const problems: FrontMatterProblem[] = strays.map((line) => invalid("This line is not YAML.", line));
  for (const entry of entries) {
    if (data.has(entry.key)) problems.push(duplicateKey(entry.key, entry.line));
    const entryText = [`${entry.key}: ${entry.value}`, ...entry.rest].join("\n");
    const reading = parse(entryText);
    const value =
      reading !== undefined && Object.hasOwn(reading.data, entry.key)
        ? { value: reading.data[entry.key] }
        : literalOf(entry, anchors);
    if (reading !== undefined)
      problems.push(...reading.problems.map((found) => ({ ...found, line: found.line + entry.line - 1 })));
    if (value === undefined)
      problems.push(invalid(`The value of "${quoteKey(entry.key)}" is not YAML.`, entry.line));
    else if (entry.key !== "__proto__") data.set(entry.key, value.value);
  }
  problems.sort((a, b) => a.line - b.line);
  return { data: Object.fromEntries(data), problems };
}

function entriesOf(text: string): { entries: Entry[]; strays: number[] } {
  const entries: { key: string; value: string; rest: string[]; line: number }[] = [];
  const strays: number[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const current = entries.at(-1);
    if (/^(?:[ \t]|-(?:[ \t]|$))/.test(line)) {
      if (current === undefined) strays.push(index + 1);
      else current.rest.push(line);
      continue;
    }
    const match = keyLine.exec(line);
    const key = match?.[1];
    if (key === undefined) strays.push(index + 1);
    else {
      const name = /^["']/.test(key) ? key.slice(1, -1) : key;
      entries.push({ key: name, value: (match?.[2] ?? "").trim(), rest: [], line: index + 1 });
    }
  }
  return { entries, strays };
}

function literalOf(entry: Entry, anchors: ReadonlySet<string | undefined>): { value: unknown } | undefined {
  if (entry.rest.length === 0) {
    const inside = /^\[(.*)\]$/.exec(entry.value)?.[1];
    if (inside === undefined) return literalScalar(entry.value, anchors);
    return literalList(splitOutsideBraces(inside), anchors);
  }
  if (entry.value !== "") return undefined;
  const items = entry.rest.map((line) => /^[ \t]*-[ \t]+(.*)$/.exec(line)?.[1]);
  if (items.some((item) => item === undefined)) return undefined;
  return literalList(
    items.map((item) => item ?? ""),
    anchors,
  );
}

function literalList(
  items: readonly string[],
  anchors: ReadonlySet<string | undefined>,
): { value: unknown[] } | undefined {
  const values: unknown[] = [];
  for (const item of items) {
    const read = literalScalar(item.trim(), anchors);
    if (read === undefined) return undefined;
    if (read.value !== "") values.push(read.value);
  }
  return { value: values };
}

function literalScalar(
  text: string,
  anchors: ReadonlySet<string | undefined>,
): { value: string } | undefined {
  const quoted = /^"([^"\\]*)"$|^'([^']*)'$/.exec(text);
  if (quoted !== null) return { value: quoted[1] ?? quoted[2] ?? "" };
  if (/^[&!|>]/.test(text) || !isBalanced(text)) return undefined;
  if (text.startsWith("*") && anchors.has(/^\*([^\s,[\]{}]*)/.exec(text)?.[1])) return undefined;
  return { value: text };
}

/** Whether every bracket, brace and double quote that opens is closed again. */
function isBalanced(text: string): boolean {
  const open: string[] = [];
  let quotes = 0;
  for (const character of text) {
    if (character === '"') quotes += 1;
    else if (character === "[") open.push("]");
    else if (character === "{") open.push("}");
    else if ((character === "]" || character === "}") && open.pop() !== character) return false;
  }
  return open.length === 0 && quotes % 2 === 0;
}

export type FrontMatterCode =
  | "frontmatter_unterminated"
  | "frontmatter_invalid"
  | "frontmatter_not_a_mapping"
  | "frontmatter_duplicate_key"
  | "frontmatter_too_large";

/** A problem of a front matter; `line` is 1-based, in the file. */
export interface FrontMatterProblem {
  readonly code: FrontMatterCode;
  readonly message: string;
  readonly line: number;
  readonly severity: "error" | "warning";
}

/** The result of one parser of the text between the fences; lines are 1-based, in that text. */
interface FrontMatterReading {
  readonly data: Readonly<Record<string, unknown>>;
  readonly problems: readonly FrontMatterProblem[];
}

function duplicateKey(key: string, line: number): FrontMatterProblem {
  const message = `The key "${quoteKey(key)}" occurs twice in the front matter; the last one counts.`;
  return { code: "frontmatter_duplicate_key", message, line, severity: "error" };
}

function invalid(message: string, line: number): FrontMatterProblem {
  return { code: "frontmatter_invalid", message, line, severity: "error" };
}

/** A key for a message: short and without control characters. */
function quoteKey(key: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a message
  return key.slice(0, 60).replace(/[\u0000-\u001f\u007f-\u009f]/g, " ");
}

/** Front matter as written, for writing it back: line ends are LF; "" where it is blank. */
export function frontMatterText(raw: string): string {
  return raw.trim() === "" ? "" : raw.replace(/\r\n?/g, "\n");
}

/** The problems of a file's front matter, as diagnostics of that file. */
export function frontMatterDiagnostics(path: string, problems: readonly FrontMatterProblem[]): Diagnostic[] {
  return problems.map(({ severity, code, message, line }) => ({
    severity,
    rule: "front-matter",
    code,
    message,
    path,
    line,
  }));
}
