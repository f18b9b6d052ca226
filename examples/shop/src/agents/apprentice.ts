import { createAgent } from "kit";
import type { Script, ScriptedTurn } from "kit/testing";

/**
 * A pretended coding agent: its model is a script, so it needs no key and no network. It does task 3 of the spec catalog-search, first with
 * a test that asserts nothing, as agents in a hurry do, and properly once kit has refused that.
 *
 *     kit run --spec catalog-search --agent apprentice
 */
const code = `
/** The author whose name is closest to the query: the one with the longest beginning of a word in common. */
export function suggestAuthor(books: readonly Book[], query: string): string | undefined {
  const words = fold(query).split(" ").filter(Boolean);
  let best: { author: string; length: number } | undefined;
  for (const { author } of books) {
    for (const name of fold(author).split(" ")) {
      const length = Math.max(0, ...words.map((word) => sameBeginning(word, name)));
      if (length > (best?.length ?? 0)) best = { author, length };
    }
  }
  return best?.author;
}

function sameBeginning(left: string, right: string): number {
  let length = 0;
  while (length < left.length && left[length] === right[length]) length += 1;
  return length;
}
`;

const search = "src/catalog/search.ts";
const tests = "src/catalog/search.test.ts";
const before = "function fold(text: string): string {";
const imports = 'import { searchBooks } from "./search.ts";';
const anchor = 'test("an empty search box shows an empty page"';
const empty = `test("catalog-search#1.3 suggests the closest author", () => {
  assert.equal(typeof suggestAuthor, "function");
});
`;
const honest = `test("catalog-search#1.3 suggests the closest author when nothing is found", () => {
  assert.equal(suggestAuthor(shelf, "Dvorska"), "Marek Dvořák");
  assert.equal(suggestAuthor(shelf, "brandl"), "Odile Brandt");
  assert.equal(suggestAuthor(shelf, "xyz"), undefined);
});
`;

const edit = (path: string, old: string, text: string): ScriptedTurn => ({
  toolCalls: [{ name: "edit", input: { path, old, new: text } }],
});

/** Its turns after the first prompt, and after a refusal. */
const works: readonly (readonly ScriptedTurn[])[] = [
  [
    edit(search, before, `${code.trimStart()}\n${before}`),
    edit(tests, imports, 'import { searchBooks, suggestAuthor } from "./search.ts";'),
    edit(tests, anchor, `${empty}\n${anchor}`),
    { text: "Done: the shop suggests the closest author, and a test shows it." },
  ],
  [edit(tests, empty, honest), { text: "The test asserts now which author is suggested." }],
];

/** Reads only the conversation, so that it goes on after a restart where it was. */
const script: Script = ({ prompt }) => {
  const texts = prompt.map(({ role, content }) => (role === "user" ? JSON.stringify(content) : ""));
  const refusals = texts.filter((text) => text.includes("The task is not done.")).length;
  const task = texts.findLastIndex((text) => /Do this task|The task is not done\./.test(text));
  if (!texts.some((text) => text.includes("Suggest the closest author")))
    return { text: "I have only learned task 3 of catalog-search." };
  const turn = prompt.slice(task).filter(({ role }) => role === "assistant").length;
  return works[refusals]?.[turn] ?? { text: "There is nothing left that I know." };
};

export default createAgent(async () => {
  const { createScriptedModel } = await import("kit/testing");
  return { model: createScriptedModel(script), instructions: "You do tasks of this bookshop's specs." };
});
