import { isMap, isSeq, LineCounter, type Node, parseAllDocuments } from "yaml";
import { type DataFile, type DataProblem, type DataRecord, duplicateKey, listIn } from "./data-record.ts";
import { type JsonSpan, lineFinder, parseJsonWithSpans } from "./locate-json.ts";
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
 * The records of a data file: a list of them, `{specs: [...]}`, `{blocks: [...]}`, or one record; a
 * line each in JSONL, and any of these per document in YAML. Never throws, expands no alias, and
 * takes time linear in the text. An unreadable record is a problem; the others load.
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
  // V8 names the position, and quotes the text around it, which may be long.
  const reason = (error instanceof Error ? error.message : String(error)).slice(0, 200);
  const own = /\(line (\d+) column \d+\)/.exec(reason)?.[1];
  const at = line ?? (own === undefined ? undefined : Number(own));
  return { message: `This is not JSON: ${reason}.`, ...(at !== undefined && { line: at }) };
}

/** YAML longer than this, in UTF-16 units, is not read: its parser takes seconds for a hostile megabyte. */
const maxYamlLength = 256 * 1024;
/** The same for a line of it, which the parser may go over once for each of its words. */
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

/** Why a text is not given to the YAML parser. */
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
      // The range of a block ends on the line behind it.
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
