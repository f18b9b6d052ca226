import { parse, type TomlTable } from "smol-toml";
import { attempt } from "../../base/attempt.ts";
import { canonical } from "../../base/json-text.ts";
import { isRecord } from "../../base/record.ts";

/** The settings of one server, and which of its keys kit writes. */
interface ServerEdit {
  /** Undefined: the server is removed. */
  readonly entry: Readonly<Record<string, unknown>> | undefined;
  readonly keys: readonly string[];
}

const table = "mcp_servers";

export function parseToml(text: string): TomlTable {
  return parse(text.replace(/^\ufeff/, ""));
}

/**
 * Sets the keys of a server in the text of Codex's settings, or removes the server. Every other line stays. Throws a sentence for a
 * text that is not TOML, and where no edit of lines changes this server alone: the parser decides that.
 */
export function setTomlServer(text: string, name: string, { entry, keys }: ServerEdit): string {
  const expected: Record<string, unknown> = parseToml(text);
  const servers = { ...(isRecord(expected[table]) ? expected[table] : {}) };
  const current = isRecord(servers[name]) ? servers[name] : {};
  const kept = Object.entries(current).filter(([key]) => !keys.includes(key));
  if (entry === undefined) delete servers[name];
  else servers[name] = { ...Object.fromEntries(kept), ...entry };
  const after = editLines(text, name, {
    entry,
    isOld: (key) =>
      entry === undefined || (keys.includes(key) && canonical(current[key]) !== canonical(entry[key])),
  });
  if (!isExactly(after, { ...expected, [table]: servers }))
    throw new SyntaxError(`kit finds no lines of ${table}.${name} that it can change.`);
  return after;
}

/** Whether a text says exactly this. An empty table of servers need not be there. */
function isExactly(text: string, expected: Readonly<Record<string, unknown>>): boolean {
  return attempt(
    () => canonical({ ...parseToml("[mcp_servers]"), ...parseToml(text) }) === canonical(expected),
    false,
  );
}

interface LineEdit {
  readonly entry: ServerEdit["entry"];
  /** Whether the lines of a key go, because its value is another one or none. */
  readonly isOld: (key: string) => boolean;
}

function editLines(text: string, name: string, { entry, isOld }: LineEdit): string {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const due = new Map(Object.entries(entry ?? {}).filter(([key]) => isOld(key)));
  const out: string[] = [];
  let at: string | undefined;
  let last = -1;
  for (const line of linesOf(text)) {
    const isHeading = /^\s*\[/.test(line);
    if (isHeading) at = headingIn(line, name);
    const key = isHeading ? "" : /^\s*(["']?)([\w-]+)\1\s*[=.]/.exec(line)?.[2];
    if (at === undefined || key === undefined) {
      out.push(line);
      continue;
    }
    const owner = at === "" ? key : (at.split(".")[0] ?? "");
    const isGone = owner === "" ? entry === undefined : isOld(owner);
    if (!isGone) out.push(line);
    else if (isHeading && out.at(-1)?.trim() === "") out.pop();
    else if (at === "" && due.has(owner)) {
      out.push(toLine(owner, due.get(owner)) + commentIn(line) + eol);
      due.delete(owner);
    }
    if (at === "") last = out.length;
  }
  const added = [...due].map(([key, value]) => toLine(key, value) + eol);
  if (added.length === 0) return out.join("");
  const place = last === -1 ? out.length : last;
  const above = out[place - 1]?.replace(/^\ufeff/, "") ?? "";
  const open = above === "" || above.endsWith("\n") ? "" : eol;
  const gap = last !== -1 || above.trim() === "" ? open : open + eol;
  const heading = last === -1 ? [`[${table}.${name}]${eol}`] : [];
  return out.toSpliced(place, 0, gap, ...heading, ...added).join("");
}

/** A text in quotes, a comment, other characters of a line, or one character that decides. */
const token =
  /"""(?:\\[\s\S]|[^\\])*?"{3,5}|'''[\s\S]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*|[^"'#[\]{}\n]+|[\s\S]/g;

/** The lines of a text that is TOML, each with its end; a value of several lines is in one. In linear time. */
function linesOf(text: string): readonly string[] {
  const lines: string[] = [];
  let start = 0;
  let depth = 0;
  for (const { 0: part, index } of text.matchAll(token)) {
    if (part === "[" || part === "{") depth += 1;
    else if (part === "]" || part === "}") depth -= 1;
    if (part !== "\n" || depth > 0) continue;
    lines.push(text.slice(start, index + 1));
    start = index + 1;
  }
  return start < text.length ? [...lines, text.slice(start)] : lines;
}

/** The comment at the end of a line, with the white space before it. A value of several lines has none that stays. */
function commentIn(line: string): string {
  if (line.trimEnd().includes("\n")) return "";
  const at = [...line.matchAll(token)].find(([part]) => part.startsWith("#"))?.index;
  return at === undefined ? "" : line.slice(line.slice(0, at).trimEnd().length).trimEnd();
}

/** Returns the rest of the name in the heading of a table in a server, "" for the server itself; undefined for other lines. */
function headingIn(line: string, name: string): string | undefined {
  const parts = /^\[([^[\]]+)\]\s*(?:#|$)/
    .exec(line.trim())?.[1]
    ?.split(".")
    .map((part) => part.trim().replace(/^(["'])(.*)\1$/, "$2"));
  return parts?.[0] === table && parts[1] === name ? parts.slice(2).join(".") : undefined;
}

function toLine(key: string, value: unknown): string {
  return `${key} = ${toToml(value)}`;
}

function toToml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toToml).join(", ")}]`;
  if (!isRecord(value)) return JSON.stringify(value).replaceAll("\u007f", "\\u007f");
  const pairs = Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)} = ${toToml(inner)}`);
  return `{ ${pairs.join(", ")} }`;
}
