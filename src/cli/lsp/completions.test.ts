import { afterAll, beforeAll, expect, test } from "vitest";
import type { CompletionItem, TextEdit } from "vscode-languageserver";
import { createTemporaryRepository, type TemporaryRepository } from "../../testing/temporary-repository.ts";
import { type LspClient, openClient } from "./testing/open-client.ts";

let repository: TemporaryRepository;
let client: LspClient;
beforeAll(async () => {
  const config = '[[specs.custom]]\ninclude = "notes/*.md"\n';
  repository = await createTemporaryRepository({ "kit.toml": config, "AGENTS.md": "Use cents.\n" });
  client = await openClient(repository.root);
});
afterAll(async () => {
  expect(await client.end()).toBe(0);
  await repository[Symbol.asyncDispose]();
});

/** The choices of an editor at the mark `|` of a text, each with the line after it. */
async function offered(path: string, marked: string): Promise<Record<string, string>> {
  const text = marked.replace("|", "");
  client.open(path, text);
  const before = marked.slice(0, marked.indexOf("|")).split("\n");
  const position = { line: before.length - 1, character: before.at(-1)?.length ?? 0 };
  const items = await client.ask<CompletionItem[]>("completion", [path, 0], { position });
  client.close(path);
  const lines = text.split("\n");
  return Object.fromEntries(
    items.map(({ label, textEdit }) => {
      const { range, newText } = textEdit as TextEdit;
      const line = lines[range.start.line] ?? "";
      return [label, line.slice(0, range.start.character) + newText + line.slice(range.end.character)];
    }),
  );
}

test.each([
  [".kiro/steering/a.md", ["inclusion", "fileMatchPattern", "name", "description"]],
  [".cursor/rules/a.mdc", ["description", "globs", "alwaysApply"]],
  [".claude/rules/a.md", ["paths"]],
  [".clinerules/a.md", ["paths"]],
  [".github/instructions/a.instructions.md", ["applyTo", "description", "name", "excludeAgent"]],
  [".windsurf/rules/a.md", ["trigger", "globs", "description"]],
  ["src/cart.spec.md", ["name", "description", "targets"]],
  ["AGENTS.md", []],
  ["CLAUDE.md", []],
  [".github/copilot-instructions.md", []],
  ["README.md", []],
])("completion offers the keys of the front matter that the tool of %s reads", async (path, keys) => {
  expect(Object.keys(await offered(path, "---\n|\n---\nText.\n"))).toEqual(keys);
});

test("completion offers the values of a key, whatever part of the line is there", async () => {
  const steering = ".kiro/steering/a.md";
  const values = ["always", "fileMatch", "auto", "manual"];
  expect(await offered(steering, "---\ninclusion:|\n")).toEqual(
    Object.fromEntries(values.map((value) => [value, `inclusion: ${value}`])),
  );
  expect(await offered(steering, "---\ninclusion: fi|xed\n---\n")).toMatchObject({
    fileMatch: "inclusion: fileMatch",
  });
  expect(await offered(steering, "---\nname: |\n---\n")).toEqual({});
  expect(await offered(".cursor/rules/a.mdc", "---\nalwaysApply: |\n---\n")).toHaveProperty("true");
  expect(await offered("notes/a.md", "---\nspec_type: |\n---\n")).toHaveProperty("constraint");
});

test("completion leaves out keys that are there, keeps the colon, and is silent outside of the front matter", async () => {
  const rule = ".cursor/rules/a.mdc";
  expect(await offered(rule, "---\nglobs: src\nal|ways: true\n---\n")).toEqual({
    description: "description: true",
    alwaysApply: "alwaysApply: true",
  });
  expect(await offered(rule, "---\nglobs: src\n---\n|\n")).toEqual({});
  expect(await offered(rule, "|---\nglobs: src\n---\n")).toEqual({});
  expect(await offered(rule, "---\nglobs:\n  - |\n---\n")).toEqual({});
});
