import { isMap, isSeq, LineCounter, type Node, parseAllDocuments } from "yaml";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { inspectYaml, isYamlTooDeep, maxYamlDepth, withoutPrototypeKeys } from "./safe-yaml.ts";

const dataFormats = ["json", "jsonl", "yaml"] as const;
export type DataFormat = (typeof dataFormats)[number];

/** The format of a data file by its extension. */
export function dataFormatOf(path: string): DataFormat | undefined {
  const extension = /\.([a-z]+)$/i.exec(path)?.[1]?.toLowerCase();
  if (extension === "ndjson") return "jsonl";
  return extension === "yml" ? "yaml" : dataFormats.find((format) => format === extension);
}

/**
 * The records of a data file: a list of records, `{specs: [...]}`, `{blocks: [...]}`, or one record; in JSONL a record per line,
 * and in YAML any of these per document. Never throws, expands no alias, and takes time linear in the text. An unreadable record
 * is a problem; the others load.
 */
export function readRecords(text: string, format: DataFormat): DataFile {
  if (text.trim() === "") return { records: [], problems: [] };
  switch (format) {
    case "json":
      return readJson(text);
    case "jsonl":
      return readJsonLines(text);
    case "yaml":
      return readYaml(text);
  }
}

function readJson(text: string): DataFile {
  const lineOf = lineFinder(text);
  try {
    const { value, span, duplicates } = parseJsonWithSpans(text);
    const problems = duplicates.map(({ key, offset }) => duplicateKey(key, lineOf(offset)));
    return { records: jsonRecords(value, span, lineOf), problems };
  } catch (error) {
    return { records: [], problems: [notJson(error)] };
  }
}

function readJsonLines(text: string): DataFile {
  const records: DataRecord[] = [];
  const problems: DataProblem[] = [];
  for (const [index, source] of text.split(/\r\n|\n|\r/).entries()) {
    if (source.trim() === "") continue;
    const line = index + 1;
    try {
      const { value, duplicates } = parseJsonWithSpans(source);
      for (const { key } of duplicates) problems.push(duplicateKey(key, line));
      records.push({
        value: withoutPrototypeKeys(value),
        startLine: line,
        endLine: line,
        lineOf: () => line,
      });
    } catch (error) {
      problems.push(notJson(error, line));
    }
  }
  return { records, problems };
}

function jsonRecords(value: unknown, span: JsonSpan, lineOf: (offset: number) => number): DataRecord[] {
  const toRecord = (item: unknown, at: JsonSpan | undefined): DataRecord => {
    const startLine = lineOf(at?.start ?? 0);
    return {
      value: withoutPrototypeKeys(item),
      startLine,
      endLine: lineOf(Math.max(0, (at?.end ?? 1) - 1)),
      lineOf: (field) => {
        const member = at?.members.get(field);
        return member === undefined ? startLine : lineOf(member.start);
      },
    };
  };
  if (Array.isArray(value)) return value.map((item, index) => toRecord(item, span.items[index]));
  const list = listIn(value);
  if (list === undefined) return [toRecord(value, span)];
  return list.items.map((item, index) => toRecord(item, span.members.get(list.key)?.items[index]));
}

function notJson(error: unknown, line?: number): DataProblem {
  // V8's message has the position and quotes the text around it, which can be long.
  const reason = (error instanceof Error ? error.message : String(error)).slice(0, 200);
  const statedLine = /\(line (\d+) column \d+\)/.exec(reason)?.[1];
  const at = line ?? (statedLine === undefined ? undefined : Number(statedLine));
  return { message: `This is not JSON: ${reason}.`, ...(at !== undefined && { line: at }) };
}

/** YAML longer than this, in UTF-16 units, is not read: its parser takes seconds for a hostile megabyte. */
const maxYamlLength = 256 * 1024;
/** The limit of a line of YAML: the parser can scan a line once per word. */
const maxYamlLine = 32 * 1024;

/** The records of every document of a YAML text. Expands no alias. */
function readYaml(source: string): DataFile {
  const text = source.includes("\r") ? source.replace(/\r\n?/g, "\n") : source;
  const excess = yamlExcess(text);
  if (excess !== undefined) return { records: [], problems: [excess] };
  const lineCounter = new LineCounter();
  const lineOf = (offset: number): number => Math.max(1, lineCounter.linePos(offset).line);
  // `yaml` compares every key with every other one; `inspectYaml` does it in linear time.
  const options = {
    uniqueKeys: false,
    merge: false,
    prettyErrors: false,
    lineCounter,
    logLevel: "silent",
  } as const;
  const records: DataRecord[] = [];
  const problems: DataProblem[] = [];
  for (const document of parseAllDocuments(text, options)) {
    const [error] = document.errors;
    if (error !== undefined) {
      problems.push({ message: `This is not YAML: ${error.message}`, line: lineOf(error.pos[0]) });
      continue;
    }
    const { hasAlias, duplicates } = inspectYaml(document.contents);
    if (hasAlias) {
      const line = lineOf(document.contents?.range?.[0] ?? 0);
      problems.push({ message: "YAML aliases are not read: write the value out.", line });
      continue;
    }
    for (const { key, offset } of duplicates) problems.push(duplicateKey(key, lineOf(offset)));
    const value = document.toJS({ maxAliasCount: 0 });
    if (document.contents === null) continue;
    for (const record of yamlRecords(value, document.contents, lineOf)) records.push(record);
  }
  return { records, problems };
}

/** The reason not to parse a text as YAML; `undefined` if it can be parsed. */
function yamlExcess(text: string): DataProblem | undefined {
  const problem = (what: string, line?: number): DataProblem => ({
    message: `${what} and is not read.`,
    isLimit: true,
    ...(line !== undefined && { line }),
  });
  if (text.length > maxYamlLength)
    return problem(`The file has more than ${maxYamlLength} characters, which only JSON and JSONL may have,`);
  const long = text.split("\n").findIndex((line) => line.length > maxYamlLine);
  if (long !== -1)
    return problem(
      `The file has a line of more than ${maxYamlLine} characters, which only JSON and JSONL may have,`,
      long + 1,
    );
  return isYamlTooDeep(text) ? problem(`The file is nested deeper than ${maxYamlDepth} levels`) : undefined;
}

function yamlRecords(value: unknown, node: Node, lineOf: (offset: number) => number): DataRecord[] {
  const toRecord = (item: unknown, at: unknown): DataRecord => {
    const range = (at as Partial<Node> | undefined)?.range ?? node.range ?? [0, 0, 0];
    const startLine = lineOf(range[0]);
    return {
      value: withoutPrototypeKeys(item),
      startLine,
      // The range of a block ends on the line after it.
      endLine: Math.max(startLine, lineOf(Math.max(0, range[1] - 1))),
      lineOf: (field) => {
        const pair = isMap(at) ? at.items.find(({ key }) => String(key) === field) : undefined;
        const offset = (pair?.key as Partial<Node> | undefined)?.range?.[0];
        return offset === undefined ? startLine : lineOf(offset);
      },
    };
  };
  if (Array.isArray(value) && isSeq(node))
    return value.map((item, index) => toRecord(item, node.items[index]));
  const list = listIn(value);
  if (list === undefined || !isMap(node)) return [toRecord(value, node)];
  const seq = node.get(list.key, true);
  return list.items.map((item, index) => toRecord(item, isSeq(seq) ? seq.items[index] : undefined));
}

/** The offsets of a JSON value and of its parts in their text; `end` is exclusive. */
export interface JsonSpan {
  readonly start: number;
  end: number;
  readonly items: JsonSpan[];
  readonly members: Map<string, JsonSpan>;
}

interface LocatedJson {
  readonly value: unknown;
  readonly span: JsonSpan;
  /** Keys that occur a second time in their object; `JSON.parse` keeps the last value. */
  readonly duplicates: readonly { readonly key: string; readonly offset: number }[];
}

/** Deeper values are refused, because code that walks them can be recursive. */
const maxDataDepth = 64;

/**
 * Parses JSON and locates every value. Throws `SyntaxError` for invalid JSON and for nesting deeper than `maxDataDepth`. Linear
 * in the text, and without recursion (unlike libraries), because the text can be hostile.
 */
export function parseJsonWithSpans(text: string): LocatedJson {
  if (isTooDeep(text)) throw new SyntaxError(`it is nested deeper than ${maxDataDepth} levels`);
  const value: unknown = JSON.parse(text);
  return { value, ...locate(text) };
}

/** Whether brackets and braces outside of strings nest too deep; before anything else reads the text. */
function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 34) at = stringEnd(text, at) - 1;
    else if (code === 91 || code === 123) {
      depth += 1;
      if (depth > maxDataDepth) return true;
    } else if (code === 93 || code === 125) depth -= 1;
  }
  return false;
}

/** The offset after the string that starts at `at`; the end of the text if it never ends. */
function stringEnd(text: string, at: number): number {
  for (let end = at + 1; end < text.length; end += 1) {
    const code = text.charCodeAt(end);
    if (code === 92) end += 1;
    else if (code === 34) return end + 1;
  }
  return text.length;
}

/** Relies on the text being JSON, so that every mark outside of strings has its one meaning. */
function locate(text: string): Omit<LocatedJson, "value"> {
  const root = spanAt(0, text.length);
  const duplicates: { key: string; offset: number }[] = [];
  const open: { span: JsonSpan; isObject: boolean; key: string | undefined }[] = [];
  const add = (span: JsonSpan): void => {
    const parent = open.at(-1);
    if (parent?.key === undefined) (parent?.span ?? root).items.push(span);
    else {
      parent.span.members.set(parent.key, span);
      parent.key = undefined;
    }
  };
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    const parent = open.at(-1);
    if (code === 34) {
      const end = stringEnd(text, at);
      if (parent?.isObject === true && parent.key === undefined) {
        const key = keyOf(text.slice(at, end));
        if (parent.span.members.has(key)) duplicates.push({ key, offset: at });
        parent.key = key;
      } else add(spanAt(at, end));
      at = end;
    } else if (code === 91 || code === 123) {
      const span = spanAt(at, at);
      add(span);
      open.push({ span, isObject: code === 123, key: undefined });
      at += 1;
    } else if (code === 93 || code === 125) {
      at += 1;
      const closed = open.pop();
      if (closed !== undefined) closed.span.end = at;
    } else if (code === 44 || code === 58 || code <= 32) {
      at += 1;
    } else {
      const start = at;
      while (at < text.length && !isBoundary(text.charCodeAt(at))) at += 1;
      add(spanAt(start, at));
    }
  }
  return { span: root.items[0] ?? root, duplicates };
}

function spanAt(start: number, end: number): JsonSpan {
  return { start, end, items: [], members: new Map() };
}

function isBoundary(code: number): boolean {
  return code === 44 || code === 93 || code === 125 || code <= 32;
}

function keyOf(quoted: string): string {
  const key: unknown = JSON.parse(quoted);
  return typeof key === "string" ? key : quoted;
}

/** The 1-based lines of offsets that are asked for in any order. */
export function lineFinder(text: string): (offset: number) => number {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}

/** A record of a data file, and its place. */
export interface DataRecord {
  readonly value: unknown;
  readonly startLine: number;
  readonly endLine: number;
  /** The line of a field, or of the record where it has no such field. */
  lineOf(field: string): number;
}

export interface DataProblem {
  readonly message: string;
  readonly line?: number;
  readonly field?: string;
  /** Set where a size or depth is more than is read. */
  readonly isLimit?: boolean;
}

interface DataFile {
  readonly records: readonly DataRecord[];
  readonly problems: readonly DataProblem[];
}

/** The keys below which a file can have its records. */
const listKeys = ["specs", "blocks"];

/** The list of records in an object, and its key. */
function listIn(value: unknown): { key: string; items: readonly unknown[] } | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const found = Object.entries(value).find(([key, items]) => listKeys.includes(key) && Array.isArray(items));
  return found === undefined ? undefined : { key: found[0], items: found[1] };
}

function duplicateKey(key: string, line: number): DataProblem {
  return {
    message: `The key ${JSON.stringify(key.slice(0, 60))} occurs twice; the last one counts.`,
    line,
    field: key,
  };
}

/** A file that is wrong in more places than these is wrong as a whole. */
const maxDiagnostics = 100;

/** The first diagnostics of a file, and how many more there are. */
export function atMost(diagnostics: readonly Diagnostic[], path: string): readonly Diagnostic[] {
  const more = diagnostics.length - maxDiagnostics;
  if (more <= 0) return diagnostics;
  const message = `${more} more problems of this file are not listed.`;
  return [...diagnostics.slice(0, maxDiagnostics), { severity: "error", rule: "limit", message, path }];
}
