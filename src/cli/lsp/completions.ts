import { type CompletionItem, CompletionItemKind } from "vscode-languageserver";
import type { OpenCriteria } from "../../project/features/open-criteria.ts";
import type { OpenText } from "../../project/features/text-layer.ts";
import { startedWord } from "./line-words.ts";

/** The criteria, or features, that the word in front of the cursor can become. The range is kit's: editors split keys into words. */
export function completionsAt(
  criteria: OpenCriteria,
  opened: OpenText,
  cursor: { readonly before: string; readonly line: number },
): CompletionItem[] {
  const { before, line } = cursor;
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
