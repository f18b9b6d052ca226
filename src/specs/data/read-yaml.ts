import type { Node } from "yaml";
import { isMap, isSeq, LineCounter, parseAllDocuments } from "yaml";
import { type DataFile, type DataProblem, type DataRecord, duplicateKey, listIn } from "./data-record.ts";
import { inspectYaml, isYamlTooDeep, maxYamlDepth, withoutPrototypeKeys } from "./safe-yaml.ts";

/** YAML longer than this, in UTF-16 units, is not read: its parser takes seconds for a hostile megabyte. */
const maxYamlLength = 256 * 1024;
/** The same for a line of it, which the parser may go over once for each of its words. */
const maxYamlLine = 32 * 1024;

/** The records of every document of a YAML text. Expands no alias. */
export function readYaml(source: string): DataFile {
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
