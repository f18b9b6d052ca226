import { type DataFile, type DataProblem, type DataRecord, duplicateKey, listIn } from "./data-record.ts";
import { type JsonSpan, lineFinder, parseJsonWithSpans } from "./locate-json.ts";
import { readYaml } from "./read-yaml.ts";
import { withoutPrototypeKeys } from "./safe-yaml.ts";

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
 * takes time linear in the text. What cannot be read is a problem, and the other records load.
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
  // V8 says where, and quotes the text around the place, which may be long.
  const reason = (error instanceof Error ? error.message : String(error)).slice(0, 200);
  const own = /\(line (\d+) column \d+\)/.exec(reason)?.[1];
  const at = line ?? (own === undefined ? undefined : Number(own));
  return { message: `This is not JSON: ${reason}.`, ...(at !== undefined && { line: at }) };
}
