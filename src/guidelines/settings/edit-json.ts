import { canonical } from "../../base/json-text.ts";

/** A value in a text of JSON with comments, and where it is. */
export interface JsonNode {
  readonly start: number;
  /** The offset after its last character. */
  readonly end: number;
  /** The parsed value; objects have no prototype. */
  readonly value: unknown;
  /** The members of an object, in order. */
  readonly members?: readonly JsonMember[];
}

interface JsonMember {
  readonly key: string;
  readonly start: number;
  readonly node: JsonNode;
  /** The offset of the comma behind it; undefined if there is none. */
  comma?: number;
}

/** Deeper texts are refused. */
const maxDepth = 100;

const token = /[ \t\r\n]+|\/\/[^\r\n]*|\/\*[\s\S]*?\*\//y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a text of JSON has none
const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const literal = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** Parses JSON in which comments and trailing commas may be. Throws a sentence with the line. Linear in the text. */
export function parseJson(text: string): JsonNode {
  let at = text.startsWith("\ufeff") ? 1 : 0;
  const refuse = (why: string): SyntaxError =>
    new SyntaxError(`Line ${text.slice(0, at).split(/\r\n?|\n/).length} is not JSON: ${why}.`);
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const [found] = pattern.exec(text) ?? [];
    at += found?.length ?? 0;
    return found;
  };
  const skip = (): void => {
    while (take(token) !== undefined);
  };
  const takeOne = (character: string): boolean => {
    skip();
    if (text[at] !== character) return false;
    at += 1;
    return true;
  };
  const readObject = (start: number, depth: number): JsonNode => {
    const value: Record<string, unknown> = Object.create(null);
    const members: JsonMember[] = [];
    while (!takeOne("}")) {
      const last = members.at(-1);
      if (last !== undefined && last.comma === undefined) throw refuse("a comma or } is missing");
      const keyStart = at;
      const written = take(string);
      if (written === undefined) throw refuse("a key in double quotes is missing");
      const key: string = JSON.parse(written);
      if (Object.hasOwn(value, key)) throw refuse(`the key ${written.slice(0, 80)} is there twice`);
      if (!takeOne(":")) throw refuse("a colon is missing");
      const node = read(depth + 1);
      value[key] = node.value;
      const member: JsonMember = { key, start: keyStart, node };
      if (takeOne(",")) member.comma = at - 1;
      members.push(member);
    }
    return { start, end: at, value, members };
  };
  const readList = (start: number, depth: number): JsonNode => {
    const value: unknown[] = [];
    for (let needsComma = false; !takeOne("]"); ) {
      if (needsComma) throw refuse("a comma or ] is missing");
      value.push(read(depth + 1).value);
      needsComma = !takeOne(",");
    }
    return { start, end: at, value };
  };
  const read = (depth: number): JsonNode => {
    if (depth > maxDepth) throw refuse(`it is nested deeper than ${maxDepth} levels`);
    skip();
    const start = at;
    if (takeOne("{")) return readObject(start, depth);
    if (takeOne("[")) return readList(start, depth);
    const written = take(string) ?? take(literal);
    if (written === undefined) throw refuse("a value is missing");
    return { start, end: at, value: JSON.parse(written) };
  };
  const root = read(0);
  skip();
  if (at < text.length) throw refuse("text follows the end");
  return root;
}

/**
 * Sets the value at a path of keys, or removes it (`undefined`); missing objects on the way are created. Every byte outside of the
 * value stays: comments, order, line ends. Throws a sentence for a text that is not JSON, or where something else is in the way.
 */
export function setJson(text: string, path: readonly string[], value: unknown): string {
  let node = parseJson(text);
  for (const [depth, key] of path.entries()) {
    const { members } = node;
    if (members === undefined)
      throw new SyntaxError(
        `${depth === 0 ? "It" : `"${path.slice(0, depth).join(".")}"`} is not an object.`,
      );
    const member = members.find((each) => each.key === key);
    if (member === undefined) {
      if (value === undefined) return text;
      const inner = path.slice(depth + 1).reduceRight<unknown>((each, name) => ({ [name]: each }), value);
      return insert(text, { start: node.start, end: node.end, members }, [key, inner]);
    }
    if (depth === path.length - 1) {
      if (value === undefined) return remove(text, members, member);
      if (canonical(member.node.value) === canonical(value)) return text;
      const { start, end } = member.node;
      return text.slice(0, start) + print(text, value, indentAt(text, member.start)) + text.slice(end);
    }
    node = member.node;
  }
  return text;
}

type ObjectNode = Required<Pick<JsonNode, "start" | "end" | "members">>;

function insert(text: string, { start, end, members }: ObjectNode, [key, value]: [string, unknown]): string {
  const eol = /\r\n|\n|\r/.exec(text)?.[0] ?? "\n";
  const close = end - 1;
  const last = members.at(-1);
  const [first] = members;
  const isOneLine = first !== undefined && !/[\r\n]/.test(text.slice(start, close));
  const contentEnd = last === undefined ? start + 1 : (last.comma ?? last.node.end - 1) + 1;
  const comma = last === undefined || last.comma !== undefined ? "" : ",";
  if (isOneLine)
    return `${text.slice(0, contentEnd)}${comma} ${JSON.stringify(key)}: ${JSON.stringify(value)}${text.slice(contentEnd)}`;
  const outer = indentAt(text, start);
  const ownLine = first !== undefined && isBlank(lineBefore(text, first.start));
  const indent = ownLine ? indentAt(text, first.start) : outer + unitOf(text);
  const trivia = text.slice(contentEnd, close);
  const kept = trivia.trimEnd();
  const rest = trivia.slice(kept.length);
  const member = `${JSON.stringify(key)}: ${print(text, value, indent)}`;
  const tail = /[\r\n]/.test(rest) ? rest : eol + outer;
  return `${text.slice(0, contentEnd)}${comma}${kept}${eol}${indent}${member}${tail}${text.slice(close)}`;
}

function remove(text: string, members: readonly JsonMember[], member: JsonMember): string {
  let [from, to] = [member.start, member.comma === undefined ? member.node.end : member.comma + 1];
  // Without a trailing comma, the last member takes away the comma before it.
  const before = member.comma === undefined ? members[members.indexOf(member) - 1]?.comma : undefined;
  const left = lineBefore(text, from);
  const right = /^[ \t]*(?:\r\n|\n|\r)/.exec(text.slice(to))?.[0];
  if (isBlank(left) && right !== undefined) {
    from -= left.length;
    to += right.length;
  } else to += /^[ \t]*/.exec(text.slice(to))?.[0].length ?? 0;
  const head = text.slice(0, from);
  return (before === undefined ? head : head.slice(0, before) + head.slice(before + 1)) + text.slice(to);
}

/** The white space with which the line of an offset begins. */
function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(lineBefore(text, offset))?.[0] ?? "";
}

/** The part of the line of an offset that is before it. */
function lineBefore(text: string, offset: number): string {
  const before = text.slice(0, offset);
  return before.slice(Math.max(before.lastIndexOf("\n"), before.lastIndexOf("\r")) + 1);
}

function isBlank(text: string): boolean {
  return /^\ufeff?[ \t]*$/.test(text);
}

function unitOf(text: string): string {
  return /[\r\n]([ \t]+)\S/.exec(text)?.[1] ?? "  ";
}

function print(text: string, value: unknown, indent: string): string {
  const eol = /\r\n|\n|\r/.exec(text)?.[0] ?? "\n";
  return JSON.stringify(value, null, unitOf(text)).replaceAll("\n", eol + indent);
}
