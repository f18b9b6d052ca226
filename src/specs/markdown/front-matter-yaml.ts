import type { Document, Node, YAMLMap } from "yaml";
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import { readFrontMatterLines } from "./front-matter-lines.ts";
import type { FrontMatterReading } from "./front-matter-problem.ts";
import { duplicateKey, invalid } from "./front-matter-problem.ts";

/** Front matter longer than this, in UTF-16 units, is not read. */
export const maxFrontMatterLength = 32_768;
/** The deepest nesting that is read; real front matter has three levels. */
export const maxFrontMatterDepth = 64;

/** Reads the text between two fences as YAML, and line by line where it is none. */
export function readYamlFrontMatter(text: string): FrontMatterReading {
  if (text.length > maxFrontMatterLength) {
    const message = `The front matter is longer than ${maxFrontMatterLength} characters and is not read.`;
    return { data: {}, problems: [{ code: "frontmatter_too_large", message, line: 1, severity: "error" }] };
  }
  if (isTooDeep(text)) {
    const message = `The front matter is nested deeper than ${maxFrontMatterDepth} levels and is not read.`;
    return { data: {}, problems: [invalid(message, 1)] };
  }
  return parseYaml(text) ?? readFrontMatterLines(text, parseYaml);
}

/** One YAML document that is a mapping; nothing where the text is not YAML or uses an alias. */
function parseYaml(text: string): FrontMatterReading | undefined {
  const lineCounter = new LineCounter();
  // `yaml` compares every key with every other one; `duplicateKeys` does it in linear time.
  const options = { uniqueKeys: false, merge: false, prettyErrors: false, lineCounter };
  const document: Document = parseDocument(text, { ...options, logLevel: "silent" });
  if (document.errors.length > 0) return undefined;
  const found = inspect(document.contents);
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
  return { data: withoutPrototypeKeys(document.toJS({ maxAliasCount: 0 })), problems };
}

interface Inspection {
  readonly hasAlias: boolean;
  readonly duplicates: readonly { readonly key: string; readonly offset: number }[];
}

/** Walks the nodes of a document; its depth was checked before it was parsed. */
function inspect(root: Node | null): Inspection {
  let hasAlias = false;
  const duplicates: { key: string; offset: number }[] = [];
  const visit = (node: unknown): void => {
    if (isAlias(node)) hasAlias = true;
    else if (isSeq(node)) for (const item of node.items) visit(item);
    else if (isMap(node)) visitMap(node);
  };
  const visitMap = (map: YAMLMap): void => {
    const seen = new Set<string>();
    for (const pair of map.items) {
      if (isScalar(pair.key)) {
        const key = String(pair.key.value);
        if (seen.has(key)) duplicates.push({ key, offset: pair.key.range?.[0] ?? 0 });
        seen.add(key);
      } else visit(pair.key);
      visit(pair.value);
    }
  };
  visit(root);
  return { hasAlias, duplicates };
}

/**
 * Whether brackets, or block markers on one line (`- - - a`), nest deeper than is read. Counts
 * characters without parsing, so that a hostile text never reaches a recursive parser.
 */
function isTooDeep(text: string): boolean {
  let depth = 0;
  let markers = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 91 || code === 123) {
      depth += 1;
      if (depth > maxFrontMatterDepth) return true;
    } else if (code === 93 || code === 125) depth = Math.max(0, depth - 1);
    else if (code === 10) markers = 0;
    else if ((code === 45 || code === 63 || code === 58) && isBlank(text.charCodeAt(index + 1))) {
      markers += 1;
      if (markers > maxFrontMatterDepth && isMarkerRun(text, index)) return true;
    }
  }
  return hasDeepIndent(text);
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9 || code === 10;
}

/** Whether only block markers stand before `index` on its line; prose may hold many hyphens. */
function isMarkerRun(text: string, index: number): boolean {
  const start = text.lastIndexOf("\n", index) + 1;
  return /^[-?: \t]*$/.test(text.slice(start, Math.min(index, start + 4 * maxFrontMatterDepth)));
}

/** Each level of a block needs a line that is indented deeper than the one before. */
function hasDeepIndent(text: string): boolean {
  const indents: number[] = [];
  for (const line of text.split("\n")) {
    const indent = line.search(/[^ ]/);
    if (indent === -1) continue;
    while (indents.length > 0 && (indents.at(-1) ?? 0) >= indent) indents.pop();
    indents.push(indent);
    if (indents.length > maxFrontMatterDepth) return true;
  }
  return false;
}

function withoutPrototypeKeys(value: unknown): Readonly<Record<string, unknown>> {
  const clean = (item: unknown): unknown => {
    if (Array.isArray(item)) return item.map(clean);
    if (typeof item !== "object" || item === null) return item;
    const entries = Object.entries(item).filter(([key]) => key !== "__proto__");
    return Object.fromEntries(entries.map(([key, entry]) => [key, clean(entry)]));
  };
  const cleaned = clean(value);
  return typeof cleaned === "object" && cleaned !== null ? { ...cleaned } : {};
}
