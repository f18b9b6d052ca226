import { isDeepStrictEqual } from "node:util";
import { parse, type TomlTable } from "smol-toml";
import { attempt } from "../../base/attempt.ts";

/**
 * Adds a key with a text value to the text of a TOML file; comments, order and line ends stay. Returns undefined if no
 * place changes nothing but this key: the caller then shows the line to a person.
 *
 * For example:
 * setTomlKey('[agent]\nmax_turns = 5 # enough\n', ["agent", "sandbox"], "e2b");
 */
export function setTomlKey(text: string, path: readonly string[], value: string): string | undefined {
  const expected = parseToml(text);
  if (!setIn(expected, path, value)) return undefined;
  for (const candidate of candidates(text, path, JSON.stringify(value))) {
    if (parsesTo(candidate, expected)) return candidate;
  }
  return undefined;
}

type TextTable = Readonly<Record<string, string | undefined>>;

/**
 * Adds a table at the end of an array of tables in the text of a TOML file; comments, order and line ends stay. Returns
 * undefined if no place changes nothing but this table.
 *
 * For example:
 * addTomlTable("", ["agent", "approvals", "allow"], { tool: "bash" });
 */
export function addTomlTable(text: string, path: readonly string[], table: TextTable): string | undefined {
  const lines = tomlTable(path, table);
  const expected = parseToml(text);
  const added = parse(lines.slice(1).join("\n"));
  if (!pushTo(expected, path, added)) return undefined;
  for (const candidate of tablePlaces(text, path, lines)) if (parsesTo(candidate, expected)) return candidate;
  return undefined;
}

/** Returns the lines of a table of an array. Escapes characters that are invisible or that change the text's direction. */
export function tomlTable(path: readonly string[], table: TextTable): readonly string[] {
  return [`[[${path.join(".")}]]`, ...fieldsOf(table)];
}

function fieldsOf(table: TextTable): readonly string[] {
  return Object.entries(table).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key} = ${tomlText(value)}`],
  );
}

const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

function tomlText(value: string): string {
  return JSON.stringify(value).replace(
    unseen,
    (character) => `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, "0")}`,
  );
}

function pushTo(root: TomlTable, path: readonly string[], added: TomlTable): boolean {
  const table = tableAround(root, path);
  if (table === undefined) return false;
  const last = path.at(-1) ?? "";
  const list = table[last] ?? [];
  if (!Array.isArray(list)) return false;
  table[last] = [...list, added];
  return true;
}

/** Maximum of brackets at which kit tries an inline table: each costs one pass of the parser. */
const maxBrackets = 200;

/** Yields candidates: after the existing tables, at the end of the file, then inside inline tables and lists. */
function* tablePlaces(text: string, path: readonly string[], table: readonly string[]): Iterable<string> {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = text.split(/\r?\n/);
  const name = path.join(".");
  const heading = lines.findLastIndex(
    (line) => headingOf(line.replace("[[", "[").replace("]]", "]")) === name,
  );
  if (heading !== -1) {
    const last = lastContent(lines, heading);
    yield lines.toSpliced(last + 1, 0, "", ...table).join(eol);
  }
  const textAbove = withoutMark(text).trim() === "" ? text : `${text.replace(/(\r?\n)*$/, "")}${eol}${eol}`;
  yield `${textAbove}${table.join(eol)}${eol}`;
  const inline = `{ ${table.slice(1).join(", ")} }`;
  const brackets = [...text.matchAll(/[\]}]/g)].slice(-maxBrackets);
  for (const { index, 0: bracket } of brackets) {
    const before = text.slice(0, index);
    const after = text.slice(index);
    const items =
      bracket === "]"
        ? [inline]
        : [`${path.at(-1)} = [${inline}]`, `${path.slice(-2).join(".")} = [${inline}]`];
    const end = bracket === "}" ? " " : "";
    for (const item of items) {
      for (const comma of [", ", " ", ""]) yield `${before.trimEnd()}${comma}${item}${end}${after}`;
      // The last line can end with a comment.
      for (const comma of ["", ", "]) yield `${before}${comma}${item}${end}${after}`;
    }
  }
}

/** Returns the value at a path of a parsed file; undefined if there is none. */
export function valueAt(table: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === "object" && value !== null && Object.hasOwn(value, key)
        ? Reflect.get(value, key)
        : undefined,
    table,
  );
}

/** Returns the table for the last key of a path and creates it if it is missing; undefined if another value is in its place. */
function tableAround(root: TomlTable, path: readonly string[]): TomlTable | undefined {
  let table: TomlTable = root;
  for (const key of path.slice(0, -1)) {
    // The parser creates the table, so that both sides compare equal.
    const inner = table[key] ?? parse("");
    if (typeof inner !== "object" || Array.isArray(inner) || inner instanceof Date) return undefined;
    table[key] = inner;
    table = inner;
  }
  return table;
}

function setIn(root: TomlTable, path: readonly string[], value: string): boolean {
  const table = tableAround(root, path);
  if (table === undefined) return false;
  const last = path.at(-1) ?? "";
  if (Object.hasOwn(table, last)) return false;
  table[last] = value;
  return true;
}

function parsesTo(text: string, expected: TomlTable): boolean {
  return attempt(() => isDeepStrictEqual(parseToml(text), expected), false);
}

/** Yields places for the line, the most natural first. A line in a string can look like a heading, so the parser checks each. */
function* candidates(text: string, path: readonly string[], value: string): Iterable<string> {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = text.split(/\r?\n/);
  const insert = (index: number, line: string): string => lines.toSpliced(index, 0, line).join(eol);
  const table = path.slice(0, -1).join(".");
  const assignment = `${path.at(-1)} = ${value}`;
  for (const [index, line] of lines.entries()) {
    if (table === "" || headingOf(line) !== table) continue;
    const last = lastContent(lines, index);
    yield insert(last + 1, indentLike(lines[last === index ? index : last] ?? "") + assignment);
    yield insert(index + 1, indentLike(line) + assignment);
  }
  const firstHeading = lines.findIndex((line) => /^\s*\[/.test(line));
  const top = firstHeading === -1 ? lines.length : firstHeading;
  if (table === "") {
    yield insert(lastContent(lines.slice(0, top), -1) + 1, assignment);
    return;
  }
  const dotted = lines.slice(0, top).findLastIndex((line) => line.trimStart().startsWith(`${table}.`));
  if (dotted !== -1) yield insert(dotted + 1, `${table}.${assignment}`);
  const textAbove =
    text === "" || withoutMark(text).trim() === "" ? text : `${text.replace(/(\r?\n)*$/, "")}${eol}${eol}`;
  yield `${textAbove}[${table}]${eol}${assignment}${eol}`;
}

/** Returns the table whose heading is the line: `[ "agent" ] # ours` is `agent`. */
function headingOf(line: string): string | undefined {
  const [, name] = /^\s*\[([^[\]]+)\]\s*(?:#.*)?$/.exec(withoutMark(line)) ?? [];
  return name
    ?.split(".")
    .map((part) => part.trim().replace(/^(["'])(.*)\1$/, "$2"))
    .join(".");
}

/** Finds the last line below a heading that is neither blank nor a comment: comments above the next heading belong to that one. */
function lastContent(lines: readonly string[], heading: number): number {
  const next = lines.findIndex((line, index) => index > heading && /^\s*\[/.test(line));
  const section = lines.slice(0, next === -1 ? lines.length : next);
  return Math.max(
    heading,
    section.findLastIndex((line) => !/^\s*(#|$)/.test(line)),
  );
}

function indentLike(line: string): string {
  return /^[ \t]*/.exec(withoutMark(line))?.[0] ?? "";
}

/** Parses a text. Throws if it is not TOML. */
export function parseToml(text: string): TomlTable {
  return parse(withoutMark(text));
}

/** Removes the byte order mark, with which Windows editors begin a file. */
function withoutMark(text: string): string {
  return text.replace(/^\uFEFF/, "");
}
