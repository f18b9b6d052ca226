import { type CompletionItem, CompletionItemKind } from "vscode-languageserver";
import type { OpenCriteria } from "../../project/features/open-criteria.ts";
import type { OpenText } from "../../project/features/text-layer.ts";
import { startedWord } from "./line-words.ts";

/** A place in a text. */
interface Cursor {
  readonly lines: readonly string[];
  /** From 0. */
  readonly line: number;
  /** The text of the line as far as the cursor. */
  readonly before: string;
}

/** The criteria, or features, that the word in front of the cursor can become. The range is kit's: editors split keys into words. */
export function completionsAt(criteria: OpenCriteria, opened: OpenText, cursor: Cursor): CompletionItem[] {
  const { before, line } = cursor;
  const keys = frontMatterCompletions(opened, cursor);
  if (keys !== undefined) return keys;
  const word = startedWord(before);
  if (word === undefined) return [];
  const range = { start: { line, character: word.from }, end: { line, character: before.length } };
  const item = (newText: string, detail: string): CompletionItem => ({
    label: newText,
    kind: CompletionItemKind.Reference,
    detail,
    filterText: newText,
    textEdit: { range, newText },
  });
  if (word.kind === "number")
    return criteria.beside(opened.path).map(({ number, text }) => item(number, text));
  if (word.kind === "key")
    return criteria
      .ofName(word.name)
      .map(({ id, number, text }) => item(`${word.name}#${number}`, `${id} ${text}`));
  // In other files than tests, the name of a feature is a word like others.
  if (opened.test() === undefined || word.name === "") return [];
  return criteria
    .labels()
    .filter((label) => label.startsWith(word.name))
    .map((label) => item(`${label}#`, "criteria"));
}

/** The keys of a front matter, or the values of one; undefined outside of a front matter that kit knows the keys of. */
function frontMatterCompletions(
  opened: OpenText,
  { lines, line, before }: Cursor,
): CompletionItem[] | undefined {
  const known = opened.frontMatter();
  const isInside = line > 0 && isFence(lines[0]) && !lines.slice(1, line).some(isFence);
  if (!isInside || Object.keys(known).length === 0) return undefined;
  const [, key, space = "", value = ""] = /^([\w-]+):([ \t]*)([\w-]*)$/.exec(before) ?? [];
  const started = key === undefined ? /^[\w-]*$/.exec(before)?.[0] : value;
  if (started === undefined) return [];
  const after = (lines[line] ?? "").slice(before.length);
  const rest = /^[\w-]*/.exec(after)?.[0].length ?? 0;
  const range = {
    start: { line, character: before.length - started.length },
    end: { line, character: before.length + rest },
  };
  const item = (label: string, newText: string, kind: CompletionItemKind): CompletionItem => ({
    label,
    kind,
    filterText: label,
    textEdit: { range, newText },
  });
  if (key !== undefined)
    return (known[key] ?? []).map((each) =>
      item(each, space === "" ? ` ${each}` : each, CompletionItemKind.Value),
    );
  const end = lines.findIndex((text, index) => index > 0 && isFence(text));
  const others = lines.slice(1, end === -1 ? undefined : end).filter((_, index) => index + 1 !== line);
  return Object.keys(known)
    .filter((each) => !others.some((text) => text.startsWith(`${each}:`)))
    .map((each) =>
      item(each, after.slice(rest).startsWith(":") ? each : `${each}: `, CompletionItemKind.Property),
    );
}

function isFence(line: string | undefined): boolean {
  return line?.trimEnd() === "---";
}
