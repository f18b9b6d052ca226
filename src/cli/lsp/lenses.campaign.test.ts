import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { CodeLens, Hover, Location, ShowDocumentParams } from "vscode-languageserver";
import { repositoryForTests } from "../../testing/repository-for-tests.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { runKit } from "../testing/run-kit.ts";
import { plan, requirements, rule, spec, steering, tasks, testFile, tests } from "./testing/checkout-spec.ts";
import { type LspClient, openClient } from "./testing/open-client.ts";

let client: LspClient;
const repository = repositoryForTests({
  [spec]: requirements,
  [plan]: tasks,
  [testFile]: tests,
  [rule]: steering,
});
beforeAll(async () => {
  client = await openClient(repository.root);
  client.open(spec, requirements);
  client.open(plan, tasks);
  client.open(testFile, tests);
});
afterAll(async () => expect(await client.end()).toBe(0));

test("lenses have their titles when the editor asks for them, and each fact is in hover, too", async () => {
  const lenses = await client.ask<CodeLens[]>("codeLens", [spec, 0]);
  expect(lenses.map(({ range, command }) => [range.start.line + 1, command])).toEqual([
    [3, undefined],
    [10, undefined],
  ]);
  const titles = await Promise.all(
    lenses.map((lens) => client.connection.sendRequest<CodeLens>("codeLens/resolve", lens)),
  );
  // This editor shows no documents: a lens that it clicks does nothing.
  expect(titles.map(({ command }) => command)).toEqual([
    { title: "1 of 2 criteria with tests, 1 task", command: "" },
    { title: "1 test: without a result", command: "" },
  ]);
  const block = await client.ask<Hover>("hover", [spec, "Requirement 1"]);
  expect(JSON.stringify(block.contents)).toContain("1 of 2 criteria with tests, 1 task");
  expect(JSON.stringify(block.contents)).toContain("Build it");
  const [rules, ...others] = await client.ask<CodeLens[]>("codeLens", [testFile, 0]);
  expect(others).toEqual([]);
  const resolved = await client.connection.sendRequest<CodeLens>("codeLens/resolve", rules);
  expect(resolved).toMatchObject({ range: { start: { line: 0 } }, command: { title: "1 rule applies" } });
  expect(await client.ask("codeLens", [plan, 0])).toEqual([]);
});

test("a lens has a command that its editor can run, with the tests that failed first", async () => {
  const report = `<testsuites><testcase name="checkout#1.2 places nothing" classname="test" file="src/checkout.test.ts" time="0.01"><failure message="no"/></testcase></testsuites>`;
  writeFileSync(join(repository.root, "report.xml"), report);
  const recorded = await runKit(["specs", "results", "report.xml"], { cwd: repository.root });
  expect(recorded.exitCode, recorded.stderr).toBe(0);
  const capabilities = { workspace: { executeCommand: {} }, window: { showDocument: { support: true } } };
  const editor = await openClient(repository.root, undefined, { capabilities });
  const opened: ShowDocumentParams[] = [];
  editor.connection.onRequest("window/showDocument", (params: ShowDocumentParams) => {
    opened.push(params);
    return { success: true };
  });
  const lensOf = async (asked: LspClient, line: number): Promise<CodeLens> => {
    asked.open(spec, requirements);
    const lenses = await asked.ask<CodeLens[]>("codeLens", [spec, 0]);
    return await asked.connection.sendRequest(
      "codeLens/resolve",
      lenses.find(({ range }) => range.start.line === line),
    );
  };
  const { command } = await lensOf(editor, 9);
  expect(command).toMatchObject({ title: "1 test: failed", command: "kit.open" });
  await editor.connection.sendRequest("workspace/executeCommand", { ...command });
  expect(opened).toMatchObject([
    { uri: editor.uri(testFile), selection: { start: { line: 1, character: 0 } } },
  ]);
  for (const arguments_ of [["file:///etc/passwd", 0], [editor.uri(testFile), "0"], []])
    await editor.connection.sendRequest("workspace/executeCommand", {
      command: "kit.open",
      arguments: arguments_,
    });
  expect(opened).toHaveLength(1);
  expect(await editor.end()).toBe(0);

  const own = { initializationOptions: { show_places: "kit.showPlaces" } };
  const other = await openClient(repository.root, undefined, own);
  const { command: listing } = await lensOf(other, 2);
  expect(listing).toMatchObject({
    command: "kit.showPlaces",
    arguments: [other.uri(spec), { line: 2 }, [{ uri: other.uri(plan) }]],
  });
  expect(await other.end()).toBe(0);
});

test("each title of a lens, and each line that it leads to, is in the hover of its line", async () => {
  const testText = `checkout#1.1\n${tests}`;
  const editor = await openClient(repository.root, undefined, {
    initializationOptions: { show_places: "kit.showPlaces" },
  });
  const seen = new Set<string>();
  for (const [path, text] of [
    [spec, requirements],
    [plan, tasks],
    [testFile, testText],
    ["src/cart.ts", "export {};\n"],
  ] as const) {
    editor.open(path, text);
    for (const lens of await editor.ask<CodeLens[]>("codeLens", [path, 0])) {
      const { command, range } = await editor.connection.sendRequest<CodeLens>("codeLens/resolve", lens);
      const position = range.start;
      const hover = await editor.ask<Hover>("hover", [path, 0], { position });
      const markdown = (hover.contents as { value: string }).value.replaceAll("\\", "");
      expect(markdown).toContain(command?.title);
      const [, , locations] = (command?.arguments ?? []) as [string, object, Location[]];
      for (const { uri, range: target } of locations) {
        const file = uri.slice(editor.uri("").length).replace(/^\//, "");
        expect(markdown).toContain(`${file}:${target.start.line + 1}`);
      }
      expect(locations.length).toBeGreaterThan(0);
      seen.add((lens.data as { kind: string }).kind);
    }
  }
  expect(seen).toEqual(new Set(["block", "criterion", "rules"]));
  expect(await editor.end()).toBe(0);
});

test("an editor that can read lenses again is asked to, and one that does not resolve them has the titles at once", async () => {
  const editor = await openClient(repository.root, undefined, {
    capabilities: {
      workspace: { codeLens: { refreshSupport: true } },
      textDocument: { codeLens: { resolveSupport: { properties: [] } } },
    },
  });
  let asked = 0;
  editor.connection.onRequest("workspace/codeLens/refresh", () => {
    asked += 1;
    return null;
  });
  editor.open(testFile, tests);
  const other = ".claude/rules/late.md";
  await expect.poll(() => asked).toBeGreaterThan(0);
  mkdirSync(join(repository.root, ".claude/rules"), { recursive: true });
  writeFileSync(join(repository.root, other), "Late.\n");
  await expect
    .poll(async () =>
      (await editor.ask<CodeLens[]>("codeLens", [testFile, 0])).map(({ command }) => command?.title),
    )
    .toEqual(["2 rules apply"]);
  await expect.poll(() => asked).toBeGreaterThan(1);
  expect(await editor.end()).toBe(0);
});

test("problems follow the disk although the results of tests cannot be read", async () => {
  await using own = await createTemporaryRepository({
    [rule]: steering.replace("src/**/*.ts", "late/*.ts"),
    ".kit/test-results.db": "This is no database. ".repeat(400),
  });
  const editor = await openClient(own.root);
  editor.open(rule, steering.replace("src/**/*.ts", "late/*.ts"));
  await editor.problems(rule, ({ diagnostics: [first] }) => first?.code === "glob_no_file");
  mkdirSync(join(own.root, "late"));
  writeFileSync(join(own.root, "late/a.ts"), "");
  await editor.problems(rule, ({ diagnostics }) => diagnostics.length === 0);
  expect(await editor.end()).toBe(0);
});
