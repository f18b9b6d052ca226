// Most front matter is a handful of `key: value` lines, and a cold index reads thousands of files.
// What is not plainly simple is left to `readYamlFrontMatter`; a property test holds both equal.

const keyLine = /^([A-Za-z_][A-Za-z0-9_-]*):(?:[ ]+(.*))?$/;
const listLine = /^( *)- +(.*)$/;
const reservedKey = /^(?:null|true|false|__proto__)$/i;
/** Plain scalars that begin like this can be neither a number (`.inf`, `.5`) nor an indicator. */
const plainStart = /^(?:[A-Za-z/_]|\.[a-hj-mo-z])/;
/** A glob that begins with a star; YAML takes it for an alias, so it is read as it is written. */
const starGlob = /^\*(?:[A-Za-z0-9*/._, -]|\{[A-Za-z0-9*/._, -]*\})*$/;
/**
 * What means the same read as YAML and taken as it is written: a list with a star glob is no YAML, and
 * all of its items are taken as they are written then, `true` too.
 */
const besideStar = /^(?:"[^"\\]+"|'[^']+'|[^"'[\]{}]+)$/;
const quotedList = /^\[ *(?:(?:"[^"\\]*"|'[^']*') *(?:, *(?:"[^"\\]*"|'[^']*') *)*)?\]$/;
const notPlain = /:(?:[ \t]|$)|[ \t]#/;
const unprintable = /[^\t\x20-\x7e\u00a0-\u2027\u2030-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;
const notRead: unique symbol = Symbol("not read");

/** The data of trivially plain front matter (line ends are LF), or nothing where YAML must read it. */
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
    const match = keyLine.exec(line);
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
