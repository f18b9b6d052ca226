import type { Document } from "yaml";
import { isMap, LineCounter, parseDocument } from "yaml";
import { inspectYaml, isYamlTooDeep, maxYamlDepth, withoutPrototypeKeys } from "../data/safe-yaml.ts";
import { readFrontMatterLines } from "./front-matter-lines.ts";
import type { FrontMatterReading } from "./front-matter-problem.ts";
import { duplicateKey, invalid } from "./front-matter-problem.ts";

/** Front matter longer than this, in UTF-16 units, is not read. */
const maxFrontMatterLength = 32_768;

/** Reads the text between two fences as YAML, and line by line where it is none. */
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

/** One YAML document that is a mapping; nothing where the text is not YAML or uses an alias. */
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
    problems.push({
      ...invalid(message, lineOf(warning.pos[0])),
      severity: "warning",
    });
  }
  const data = withoutPrototypeKeys(document.toJS({ maxAliasCount: 0 }));
  return { data: typeof data === "object" && data !== null ? { ...data } : {}, problems };
}
