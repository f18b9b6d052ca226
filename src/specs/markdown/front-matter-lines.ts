import type { FrontMatterProblem, FrontMatterReading } from "./front-matter-problem.ts";
import { duplicateKey, invalid, shownKey } from "./front-matter-problem.ts";
import { splitOutsideBraces } from "./split-outside-braces.ts";

/** A key and the lines that belong to it; `line` is 1-based, of the text between the fences. */
interface Entry {
  readonly key: string;
  readonly value: string;
  readonly rest: readonly string[];
  readonly line: number;
}

const keyLine = /^([^\s:#'"[\]{}&*!|>%@`-][^\s:]*|"[^"\\]*"|'[^']*')[ \t]*:(?:[ \t]+(.*))?$/s;

/**
 * Reads front matter that is not YAML one key at a time, so that one odd line costs only itself.
 *
 * A value that YAML cannot read is taken as it is written (`*.ts`, `a: b`, `[*.ts, *.tsx]`), unless
 * it opens something it does not close or refers to an anchor. `parse` reads the YAML of one key.
 */
export function readFrontMatterLines(
  text: string,
  parse: (text: string) => FrontMatterReading | undefined,
): FrontMatterReading {
  const { entries, strays } = entriesOf(text);
  const anchors = new Set(Array.from(text.matchAll(/(?:^|[\s,[{])&([^\s,[\]{}]+)/g), (match) => match[1]));
  const data = new Map<string, unknown>();
  const problems: FrontMatterProblem[] = strays.map((line) => invalid("This line is not YAML.", line));
  for (const entry of entries) {
    if (data.has(entry.key)) problems.push(duplicateKey(entry.key, entry.line));
    const whole = [`${entry.key}: ${entry.value}`, ...entry.rest].join("\n");
    const reading = parse(whole);
    const value =
      reading !== undefined && Object.hasOwn(reading.data, entry.key)
        ? { value: reading.data[entry.key] }
        : literalOf(entry, anchors);
    if (reading !== undefined)
      problems.push(...reading.problems.map((found) => ({ ...found, line: found.line + entry.line - 1 })));
    if (value === undefined)
      problems.push(invalid(`The value of "${shownKey(entry.key)}" is not YAML.`, entry.line));
    else if (entry.key !== "__proto__") data.set(entry.key, value.value);
  }
  problems.sort((a, b) => a.line - b.line);
  return { data: Object.fromEntries(data), problems };
}

function entriesOf(text: string): { entries: Entry[]; strays: number[] } {
  const entries: { key: string; value: string; rest: string[]; line: number }[] = [];
  const strays: number[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const current = entries.at(-1);
    if (/^(?:[ \t]|-(?:[ \t]|$))/.test(line)) {
      if (current === undefined) strays.push(index + 1);
      else current.rest.push(line);
      continue;
    }
    const match = keyLine.exec(line);
    const key = match?.[1];
    if (key === undefined) strays.push(index + 1);
    else {
      const name = /^["']/.test(key) ? key.slice(1, -1) : key;
      entries.push({ key: name, value: (match?.[2] ?? "").trim(), rest: [], line: index + 1 });
    }
  }
  return { entries, strays };
}

function literalOf(entry: Entry, anchors: ReadonlySet<string | undefined>): { value: unknown } | undefined {
  if (entry.rest.length === 0) {
    const inside = /^\[(.*)\]$/.exec(entry.value)?.[1];
    if (inside === undefined) return literalScalar(entry.value, anchors);
    return literalList(splitOutsideBraces(inside), anchors);
  }
  if (entry.value !== "") return undefined;
  const items = entry.rest.map((line) => /^[ \t]*-[ \t]+(.*)$/.exec(line)?.[1]);
  if (items.some((item) => item === undefined)) return undefined;
  return literalList(
    items.map((item) => item ?? ""),
    anchors,
  );
}

function literalList(
  items: readonly string[],
  anchors: ReadonlySet<string | undefined>,
): { value: unknown[] } | undefined {
  const values: unknown[] = [];
  for (const item of items) {
    const read = literalScalar(item.trim(), anchors);
    if (read === undefined) return undefined;
    if (read.value !== "") values.push(read.value);
  }
  return { value: values };
}

function literalScalar(
  text: string,
  anchors: ReadonlySet<string | undefined>,
): { value: string } | undefined {
  const quoted = /^"([^"\\]*)"$|^'([^']*)'$/.exec(text);
  if (quoted !== null) return { value: quoted[1] ?? quoted[2] ?? "" };
  if (/^[&!|>]/.test(text) || !isBalanced(text)) return undefined;
  if (text.startsWith("*") && anchors.has(/^\*([^\s,[\]{}]*)/.exec(text)?.[1])) return undefined;
  return { value: text };
}

/** Whether every bracket, brace and double quote that opens is closed again. */
function isBalanced(text: string): boolean {
  const open: string[] = [];
  let quotes = 0;
  for (const character of text) {
    if (character === '"') quotes += 1;
    else if (character === "[") open.push("]");
    else if (character === "{") open.push("}");
    else if ((character === "]" || character === "}") && open.pop() !== character) return false;
  }
  return open.length === 0 && quotes % 2 === 0;
}
