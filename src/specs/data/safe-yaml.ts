import { isAlias, isMap, isScalar, isSeq, type Node, type YAMLMap } from "yaml";

/** The deepest nesting of YAML that is read; hand-written files have a handful of levels. */
export const maxYamlDepth = 64;

/** Parts of a YAML document that a caller rejects: aliases, which can expand without limit, and duplicate keys. */
interface YamlInspection {
  readonly hasAlias: boolean;
  readonly duplicates: readonly { readonly key: string; readonly offset: number }[];
}

/** Walks the nodes of a document whose depth was checked before it was parsed. Linear in the nodes. */
export function inspectYaml(root: Node | null): YamlInspection {
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
export function isYamlTooDeep(text: string): boolean {
  let depth = 0;
  let markers = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 91 || code === 123) {
      depth += 1;
      if (depth > maxYamlDepth) return true;
    } else if (code === 93 || code === 125) depth = Math.max(0, depth - 1);
    else if (code === 10) markers = 0;
    else if ((code === 45 || code === 63 || code === 58) && isBlank(text.charCodeAt(index + 1))) {
      markers += 1;
      if (markers > maxYamlDepth && isMarkerRun(text, index)) return true;
    }
  }
  return hasDeepIndent(text);
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9 || code === 10;
}

/** Whether there are only block markers before `index` on its line; prose can have many hyphens. */
function isMarkerRun(text: string, index: number): boolean {
  const start = text.lastIndexOf("\n", index) + 1;
  return /^[-?: \t]*$/.test(text.slice(start, Math.min(index, start + 4 * maxYamlDepth)));
}

/** Each level of a block needs a line that is indented deeper than the one before. */
function hasDeepIndent(text: string): boolean {
  const indents: number[] = [];
  for (const line of text.split("\n")) {
    const indent = line.search(/[^ ]/);
    if (indent === -1) continue;
    while (indents.length > 0 && (indents.at(-1) ?? 0) >= indent) indents.pop();
    indents.push(indent);
    if (indents.length > maxYamlDepth) return true;
  }
  return false;
}

/** Removes `__proto__` keys, which would change the prototype of a copied object. */
export function withoutPrototypeKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutPrototypeKeys);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([key]) => key !== "__proto__");
  return Object.fromEntries(entries.map(([key, entry]) => [key, withoutPrototypeKeys(entry)]));
}

// A fast path: most front matter is a few `key: value` lines, and a cold index reads thousands of files. `readYamlFrontMatter`
// reads everything else; a property test compares the two.

const plainKeyLine = /^([A-Za-z_][A-Za-z0-9_-]*):(?:[ ]+(.*))?$/;
const listLine = /^( *)- +(.*)$/;
const reservedKey = /^(?:null|true|false|__proto__)$/i;
/** Plain scalars that begin like this can be neither a number (`.inf`, `.5`) nor an indicator. */
const plainStart = /^(?:[A-Za-z/_]|\.[a-hj-mo-z])/;
/** A glob that begins with a star; YAML parses it as an alias, so it is read literally. */
const starGlob = /^\*(?:[A-Za-z0-9*/._, -]|\{[A-Za-z0-9*/._, -]*\})*$/;
/**
 * Values that mean the same as YAML and literally. A list with a star glob is not YAML, so all its items are read literally, even
 * `true`.
 */
const besideStar = /^(?:"[^"\\]+"|'[^']+'|[^"'[\]{}]+)$/;
const quotedList = /^\[ *(?:(?:"[^"\\]*"|'[^']*') *(?:, *(?:"[^"\\]*"|'[^']*') *)*)?\]$/;
const notPlain = /:(?:[ \t]|$)|[ \t]#/;
const unprintable = /[^\t\x20-\x7e\u00a0-\u2027\u2030-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;
const notRead: unique symbol = Symbol("not read");

/** The data of plain front matter (line ends are LF); `undefined` if the text needs the YAML parser. */
export function readPlainFrontMatter(text: string): Record<string, unknown> | undefined {
  // An anchor would make a star the alias of something.
  if (/[\s,[]&\S/.test(text)) return undefined;
  const data: Record<string, unknown> = {};
  let listKey: string | undefined;
  let listIndent = -1;
  let list: unknown[] = [];
  let hasStar = false;
  let isLiteral = true;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    if (unprintable.test(line)) return undefined;
    const item = listKey === undefined ? null : listLine.exec(line);
    if (item !== null) {
      const indent = item[1]?.length ?? 0;
      const value = scalarOf(item[2] ?? "");
      if (value === notRead || value === null || (listIndent !== -1 && indent !== listIndent))
        return undefined;
      if (listIndent === -1 && listKey !== undefined) {
        list = [];
        hasStar = false;
        isLiteral = true;
        data[listKey] = list;
        listIndent = indent;
      }
      list.push(value);
      const source = item[2] ?? "";
      if (source.startsWith("*")) hasStar = true;
      else if (typeof value !== "string" || !besideStar.test(source.trimEnd())) isLiteral = false;
      if (hasStar && !isLiteral) return undefined;
      continue;
    }
    const match = plainKeyLine.exec(line);
    const key = match?.[1];
    if (key === undefined || reservedKey.test(key) || Object.hasOwn(data, key)) return undefined;
    const value = scalarOf(match?.[2] ?? "");
    if (value === notRead) return undefined;
    data[key] = value;
    listKey = value === null ? key : undefined;
    listIndent = -1;
  }
  return data;
}

function scalarOf(source: string): unknown {
  const text = source.trimEnd();
  if (text === "") return null;
  const first = text[0];
  if (first === '"' || first === "'") {
    const inner = text.slice(1, -1);
    if (text.length < 2 || !text.endsWith(first) || inner.includes(first) || inner.includes("\\"))
      return notRead;
    return inner;
  }
  if (first === "*") return starGlob.test(text) ? text : notRead;
  if (first === "[") {
    if (!quotedList.test(text)) return notRead;
    return Array.from(text.matchAll(/"([^"]*)"|'([^']*)'/g), (match) => match[1] ?? match[2]);
  }
  if (!plainStart.test(text) || notPlain.test(text)) return notRead;
  switch (text.toLowerCase()) {
    case "true":
    case "false":
    case "null":
      return text === "true" ? true : text === "false" ? false : notRead;
    default:
      return text;
  }
}
