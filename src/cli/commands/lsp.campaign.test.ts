import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { CodeAction, CompletionItem, Hover, Location } from "vscode-languageserver";
import { repositoryForTests } from "../../testing/repository-for-tests.ts";
import {
  requirements as plainRequirements,
  plan,
  rule,
  spec,
  steering,
  tasks,
  testFile,
  tests,
} from "../lsp/testing/checkout-spec.ts";
import { type LspClient, openClient } from "../lsp/testing/open-client.ts";

const requirements = plainRequirements.replace("place nothing", "<b>place</b> nothing");

let client: LspClient;
const repository = repositoryForTests({
  [spec]: requirements,
  [plan]: tasks,
  [testFile]: tests,
  [rule]: steering,
  "src/checkout.ts": "export {};\n",
  "kit.config.ts": `console.log("code of the folder"); throw new Error("code ran");\n`,
});
beforeAll(async () => {
  client = await openClient(repository.root);
  client.open(spec, requirements);
  client.open(plan, tasks);
  client.open(testFile, tests);
  client.open(rule, steering);
});
afterAll(async () => expect(await client.end()).toBe(0));
const lines = (locations: readonly Location[]): readonly string[] =>
  locations.map(({ uri, range }) => `${uri.slice(client.uri("").length + 1)}:${range.start.line + 1}`);

test("problems follow the text that is typed, and the file on the disk stays as it is", async () => {
  const problems = await client.problems(rule);
  expect(problems).toEqual([]);
  client.change(rule, steering.replace("src/**/*.ts", "scr/**/*.ts"));
  const [dead] = await client.problems(rule, ({ diagnostics }) => diagnostics.length > 0);
  expect(dead).toMatchObject({
    code: "glob_no_file",
    source: "kit",
    range: { start: { line: 2, character: 19 }, end: { line: 2, character: 30 } },
  });
  client.change(rule, steering);
  expect(await client.problems(rule)).toEqual([]);
  expect(readFileSync(join(repository.root, rule), "utf8")).toBe(steering);
});

test("a fix replaces the faulty text, for the version that the editor has", async () => {
  client.change(rule, steering.replace("src/**/*.ts", "checkout.ts"));
  await client.problems(rule, ({ diagnostics }) => diagnostics.length > 0);
  const range = { start: { line: 2, character: 0 }, end: { line: 2, character: 40 } };
  const ask = (only?: string[]): Promise<CodeAction[]> =>
    client.ask("codeAction", [rule, 2], { range, context: { diagnostics: [], ...(only && { only }) } });
  expect(await ask(["refactor"])).toEqual([]);
  const [fix] = await ask();
  expect(fix?.edit?.documentChanges).toMatchObject([
    { textDocument: { uri: client.uri(rule) }, edits: [{ newText: "**/checkout.ts" }] },
  ]);
  client.change(rule, steering);
  expect(await client.problems(rule)).toEqual([]);
});

test("hover shows the rules of a file on its first line only, by the unsaved rules", async () => {
  const rules = await client.ask<Hover>("hover", [testFile, 0]);
  expect(rules.contents).toMatchObject({
    kind: "markdown",
    value: expect.stringContaining("1 rule applies"),
  });
  expect(JSON.stringify(rules.contents)).toContain("Kiro");
  client.change(rule, steering.replace("src/**/*.ts", "lib/**/*.ts"));
  expect(await client.ask("hover", [testFile, 0])).toBeNull();
  client.change(rule, steering);
});

test("hover shows the text of a criterion as text, with its tests and their last result", async () => {
  const hover = await client.ask<Hover>("hover", [testFile, "checkout#1.2"]);
  expect(JSON.stringify(hover)).toContain("no result");
  expect(JSON.stringify(hover)).not.toContain("<b>place");
  expect(hover.range).toEqual({ start: { line: 1, character: 6 }, end: { line: 1, character: 18 } });
  expect(await client.ask("hover", [spec, "User Story"])).toBeNull();
});

test("definition leads from a test and from a task to the criterion, and back to the tests", async () => {
  expect(lines(await client.ask("definition", [testFile, "checkout#1.2"]))).toEqual([`${spec}:10`]);
  expect(lines(await client.ask("definition", [plan, "_Requirements: 1.2"]))).toEqual([`${spec}:10`]);
  expect(lines(await client.ask("definition", [spec, "declined"]))).toEqual([`${testFile}:2`]);
  const context = { includeDeclaration: true };
  expect(lines(await client.ask("references", [spec, "declined"], { context }))).toEqual([
    `${spec}:10`,
    `${testFile}:2`,
    `${plan}:4`,
  ]);
});

test("lines and criteria are those of the open texts, until these are closed", async () => {
  client.change(spec, `\n\n${requirements}3. WHEN it is late THEN the system SHALL wait\n`);
  expect(lines(await client.ask("definition", [testFile, "checkout#1.2"]))).toEqual([`${spec}:12`]);
  client.change(testFile, tests.replace("1.2", "1.3"));
  expect(lines(await client.ask("definition", [testFile, "checkout#1.3"]))).toEqual([`${spec}:13`]);
  client.close(spec);
  expect(lines(await client.ask("definition", [testFile, "checkout#1.3"]))).toEqual([]);
  const [unknown] = await client.problems(testFile, ({ diagnostics }) => diagnostics.length > 0);
  expect(unknown).toMatchObject({ code: "criterion_unknown", range: { start: { line: 1, character: 6 } } });
  client.open(spec, requirements);
  client.change(testFile, tests);
});

test("completion offers criteria after a key's #, numbers in tasks, and replaces the whole word", async () => {
  client.change(testFile, `${tests.split("\n")[0]}\ntest("checkout#1.`);
  const keys = await client.ask<CompletionItem[]>("completion", [testFile, `test("checkout#1.`]);
  expect(keys.map(({ label }) => label)).toEqual(["checkout#1.1", "checkout#1.2"]);
  expect(keys[0]?.textEdit).toMatchObject({ range: { start: { line: 1, character: 6 } } });
  client.change(plan, `${tasks}  - _Requirements: 1.2, 1`);
  const numbers = await client.ask<CompletionItem[]>("completion", [plan, "_Requirements: 1.2, 1"]);
  expect(numbers.map(({ label }) => label)).toEqual(["1.1", "1.2"]);
  client.change(testFile, tests);
  client.change(plan, tasks);
});

test("a file that another process writes is known without a word of the editor", async () => {
  const late = tests.replace("1.2", "2.1");
  client.change(testFile, late);
  await client.problems(testFile, ({ diagnostics }) => diagnostics.length === 1);
  client.close(spec);
  writeFileSync(
    join(repository.root, spec),
    `${requirements}\n### Requirement 2: Late\n\n#### Acceptance Criteria\n\n1. WHEN late THEN the system SHALL wait\n`,
  );
  await client.problems(testFile, ({ diagnostics }) => diagnostics.length === 0);
  client.change(testFile, tests);
});

test("wrong input gets empty answers: other schemes, files outside, places beyond the end, addresses that do not decode", async () => {
  for (const uri of ["untitled:Untitled-1", "file:///elsewhere/a.md", "file:///%E0%A4%A", "git:/a.md", ""]) {
    client.open(uri || "x:", "checkout#1.2\n");
    expect(await client.ask("hover", [uri || "x:", 0])).toBeNull();
    expect(await client.ask("definition", [uri || "x:", 0])).toEqual([]);
  }
  const position = { line: 1_000, character: 1_000 };
  expect(await client.ask("definition", [spec, 0], { position })).toEqual([]);
  expect(await client.ask("completion", [spec, 0], { position })).toEqual([]);
  await expect(client.connection.sendRequest("textDocument/unknown", {})).rejects.toThrow(/unknown/i);
});

test("the code of a folder that no person trusts is not run, and the log says so", async () => {
  await client.ask("hover", [testFile, 0]);
  expect(client.log.join("\n")).toContain("kit.config.ts");
  expect(client.stderr() + client.log.join("\n")).not.toContain("code of the folder");
});

test("a whole disk is refused, and an editor that leaves ends the command", async () => {
  const other = await openClient(repository.root, ["/"]);
  other.open(testFile, tests);
  expect(await other.ask("hover", [testFile, 0])).toBeNull();
  expect(other.log.join("\n")).toContain("a whole home folder or disk");
  expect(await other.leave()).toBe(0);
});
