import { describe, expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { runCode } from "./run-code.suite.ts";

const agent = 'import { createAgent } from "kit";\nexport default createAgent({ instructions: "x" });\n';

/** Returns what an app reports for one agent file, beside another that is fine. */
async function load(text: string, path = "src/agents/broken.ts"): Promise<unknown> {
  await using folder = await createTemporaryRepository({
    "package.json": '{"type": "module"}',
    "src/agents/fine.ts": agent,
    [path]: text,
  });
  return await runCode(
    folder.root,
    `const app = await open();
     say({ agents: app.agents().map(({ name, triggers }) => [name, triggers.webhook]), workflows: app.workflows().map(({ name }) => name), problems: app.problems().map(({ path, message }) => path + ": " + message) });
     await app.close();`,
  );
}

describe("a file that cannot be used is named with the reason and the line, and the others work", () => {
  test.each([
    ["a syntax error", "export default {\n  a: 1\n  b: 2\n};\n", "Expected ',', got 'ident' (line 3)"],
    [
      "what Node cannot leave out",
      "enum A { B }\n",
      "Node runs TypeScript by leaving its types out (line 1)",
    ],
    ["an exception", '\n\nthrow new Error("no luck");\n', "no luck (line 3)"],
    ["something thrown that is not an error", "throw null;\n", "It threw null, which is not an error."],
    ["a missing file", 'import "./_gone.ts";\n', "Cannot find module 'src/agents/_gone.ts'"],
    ["an import without extension", 'import "./_gone";\n', "imports name the file with its extension"],
    ["a missing package", 'import "not-installed";\n', "Cannot find package 'not-installed'"],
    [
      "an export that kit does not have",
      'import { makeAgent } from "kit";\nmakeAgent();\n',
      "does not provide an export named 'makeAgent' (line 1)",
    ],
    [
      "a field that no profile has",
      'import { createAgent } from "kit";\nexport default createAgent({ allowedCommand: ["git"] });\n',
      "`allowedCommand` is not a field of a profile; did you mean allowedCommands?",
    ],
    ["no default export", "export const a = 1;\n", "It has no agent as its default export"],
    ["another default export", "export default {};\n", "It has no agent as its default export"],
    [
      "odd triggers",
      `${agent}export const triggers = { webhook: "yes" };\n`,
      "`triggers.webhook` must be true or false, not a text.",
    ],
  ])("%s", async (_name, text, message) => {
    const loaded = (await load(text)) as { agents: unknown; problems: readonly string[] };
    expect(loaded.agents).toEqual([["fine", false]]);
    expect(loaded.problems).toHaveLength(1);
    expect(loaded.problems[0]).toMatch(/^src\/agents\/broken\.ts: /);
    expect(loaded.problems[0]).toContain(message);
    expect(loaded.problems[0]).not.toContain("/tmp/");
  });

  test("an entry of a command list that allows nothing is a problem, and the agent still works", async () => {
    const loaded = (await load(
      'import { createAgent } from "kit";\nexport default createAgent({ allowedCommands: ["git", "awk"] });\n',
    )) as { readonly agents: readonly unknown[]; readonly problems: readonly string[] };
    expect(loaded.agents).toHaveLength(2);
    expect(loaded.problems).toEqual([
      expect.stringMatching(/^src\/agents\/.*: allowedCommands: "awk" runs nothing.*unsafe: true \}\.$/),
    ]);
  });

  test("an error in a helper is reported with the helper's place", async () => {
    await using folder = await createTemporaryRepository({
      "src/agents/a.ts": 'import { help } from "./_help.ts";\nhelp();\n',
      "src/agents/_help.ts": '\nexport function help(): void {\n  throw new Error("helpless");\n}\n',
    });
    const problems = await runCode(
      folder.root,
      "const app = await open(); say(app.problems()[0].message); await app.close();",
    );
    expect(problems).toBe("helpless (src/agents/_help.ts:3)");
  });

  test("a workflow without run", async () => {
    expect(await load("export const walk = 1;\n", "src/workflows/walk.ts")).toMatchObject({
      workflows: [],
      problems: [expect.stringContaining("src/workflows/walk.ts: It exports no run function")],
    });
  });
});

test("a file that never finishes loading is abandoned", async () => {
  await using folder = await createTemporaryRepository({
    "src/agents/a.ts": "await new Promise(() => {});\n",
  });
  const source = '{ kind: "agent", name: "a", path: "src/agents/a.ts" }';
  expect(
    await runCode(folder.root, `say(await loadSource(root, ${source}, { timeLimitMs: 50 }));`),
  ).toMatchObject({
    path: "src/agents/a.ts",
    message: "It did not finish loading within 0.05 s.",
  });
});

test("an agent is reachable over HTTP if its file exports triggers, and invalid triggers are a problem", async () => {
  const declarations: Readonly<Record<string, readonly [declaration: string, webhook: boolean | string]>> = {
    nothing: ["", false],
    empty: ["export const triggers = {};", false],
    webhook: ["export const triggers = { webhook: true };", true],
    http: ["export const triggers = { http: true };", true],
    both: ["export const triggers = { webhook: true, http: true };", true],
    closed: ["export const triggers = { webhook: false };", false],
    quarrel: ["export const triggers = { webhook: false, http: true };", "say the same thing"],
    misspelled: ["export const triggers = { webhok: true };", "did you mean webhook?"],
    unknown: ["export const triggers = { schedule: true };", "`triggers.schedule` is not a trigger"],
    text: [
      'export const triggers = { webhook: "true" };',
      "`triggers.webhook` must be true or false, not a text.",
    ],
    number: ["export const triggers = { http: 1 };", "`triggers.http` must be true or false, not 1."],
    list: ['export const triggers = ["webhook"];', "`triggers` must be an object such as"],
    flag: ["export const triggers = true;", "`triggers` must be an object such as"],
    none: ["export const triggers = null;", "`triggers` must be an object such as"],
    throwing: ["export const triggers = { get webhook() { throw new Error('odd'); } };", "odd"],
    inherited: ["export const triggers = Object.create({ webhook: true });", false],
  };
  await using folder = await createTemporaryRepository(
    Object.fromEntries(
      Object.entries(declarations).map(([name, [text]]) => [`src/agents/${name}.ts`, `${agent}${text}\n`]),
    ),
  );
  const loaded = (await runCode(
    folder.root,
    `const app = await open();
     say({ agents: app.agents().map(({ name, triggers }) => [name, triggers.webhook]), problems: app.problems().map(({ path, message }) => [path, message]) });
     await app.close();`,
  )) as { agents: [string, boolean][]; problems: [string, string][] };
  const found = new Map<string, unknown>([
    ...loaded.agents,
    ...loaded.problems.map(
      ([path, message]) => [path.replace(/^src\/agents\/|\.ts$/g, ""), message] as const,
    ),
  ]);
  for (const [name, [, expected]] of Object.entries(declarations)) {
    const required = typeof expected === "string" ? expect.stringContaining(expected) : expected;
    expect([name, found.get(name)]).toEqual([name, required]);
  }
});

test("a misspelled export is found when the file is loaded, with a suggestion", async () => {
  const create = 'import { createAgent } from "kit";\nexport default createAgent';
  const tool = (fields: string): string =>
    `${create}({ tools: [{ name: "t", description: "T.", execute: () => "", ${fields} }] });`;
  const webhook = (fields: string): string =>
    `import { defineWebhook } from "kit/webhooks";\nexport default defineWebhook({ scheme: "github", secret: (env) => env.S, handle: () => undefined, ${fields} });`;
  const slips: Readonly<Record<string, readonly [text: string, said: string]>> = {
    "agents/parameters": [
      tool("parameters: {}"),
      "`tools[0].parameters` is not a field of a tool; did you mean input?",
    ],
    "agents/schema": [tool("inputSchema: {}"), "did you mean input?"],
    "agents/missing": [tool(""), "`tools[0].input` must be a schema of an object"],
    "agents/output": [
      `${create}({ output: { type: "object", required: "name" } });`,
      "`output` is not a valid JSON Schema: `required` must be a list of texts",
    ],
    "agents/defined": [
      'import { createAgent, defineTool } from "kit";\nexport default createAgent({ tools: [defineTool({ name: "t", description: "T.", parameters: {}, execute: () => "" })] });',
      'The tool "t": `parameters` is not a field of a tool; did you mean input? (line 2)',
    ],
    "agents/below": [
      `${create}({ subagents: [{ name: "s", instruction: "x" }] });`,
      "did you mean instructions?",
    ],
    "agents/command": [
      `${create}({ commands: [{ name: "c", action: "npm test", timeout: 1 }] });`,
      "did you mean timeoutMs?",
    ],
    "agents/skill": [
      `${create}({ skills: [{ name: "s", description: "S.", instructions: "x", input_schema: {} }] });`,
      "did you mean inputSchema?",
    ],
    "agents/role": [
      `${create}({ roles: [{ name: "r", description: "R.", instructions: "x", thinking_level: "low" }] });`,
      "did you mean thinkingLevel?",
    ],
    "agents/system": [`${create}({ systemPrompt: "x" });`, "did you mean instructions?"],
    "agents/inside": [
      `${create}({ triggers: { webhook: true } });`,
      "`export const triggers` beside the agent",
    ],
    "agents/trigger": [
      `${create}({});\nexport const trigger = { webhook: true };`,
      "did you mean `triggers`?",
    ],
    "agents/schedule": [`${create}({});\nexport const schedule = "@daily";`, "the file of a workflow may"],
    "workflows/payloads": [
      "export const payloads = {};\nexport const run = () => 1;",
      "did you mean `payload`?",
    ],
    "workflows/shedule": [
      'export const shedule = "@daily";\nexport const run = () => 1;',
      "did you mean `schedule`?",
    ],
    "workflows/triggers": [
      "export const triggers = { webhook: true };\nexport const run = () => 1;",
      "the file of an agent may",
    ],
    "webhooks/text": [webhook('secret: "hunter2-hunter2"'), "`secret` must be a function"],
    "webhooks/scheme": [webhook('scheme: "gitlab"'), "`scheme` must be one of standard, github, slack"],
    "webhooks/field": [webhook("toleranceSecnds: 3"), "did you mean toleranceSeconds?"],
  };
  const helper =
    "export const helper = 1;\nexport const schema = {};\nexport const _triggers = 1;\nexport class Review {}\n";
  await using folder = await createTemporaryRepository({
    ...Object.fromEntries(Object.entries(slips).map(([name, [text]]) => [`src/${name}.ts`, `${text}\n`])),
    ".agents/agents/near.ts": `${create}({});\n`,
    ".agents/workflows/near.ts": "export const run = () => 1;\n",
    "src/agents/fine.ts": `${create}({});\n${helper}`,
    "src/workflows/fine.ts": `export const run = () => 1;\n${helper}`,
  });
  const loaded = (await runCode(
    folder.root,
    `const app = await open();
     say({ names: [...app.agents(), ...app.workflows()].map(({ path }) => path), problems: app.problems().map(({ path, message }) => [path, message]) });
     await app.close();`,
  )) as { names: string[]; problems: [string, string][] };
  expect(loaded.names.toSorted()).toEqual([
    ".agents/agents/near.ts",
    ".agents/workflows/near.ts",
    "src/agents/fine.ts",
    "src/workflows/fine.ts",
  ]);
  const problems = new Map(loaded.problems);
  for (const [name, [, expected]] of Object.entries(slips))
    expect([name, problems.get(`src/${name}.ts`)]).toEqual([name, expect.stringContaining(expected)]);
  expect(JSON.stringify(loaded.problems)).not.toContain("hunter2");
});

test("kit and its entries can be imported although nothing is installed, also late", async () => {
  await using folder = await createTemporaryRepository({
    "package.json": "{}",
    "src/workflows/late.ts": `import { KitError } from "kit";
export async function run() {
  const { local } = await import("kit/sandboxes/local");
  const { createScriptedModel } = await import("kit/testing");
  return [KitError.name, local().name, typeof createScriptedModel];
}
`,
  });
  const code = 'const app = await open(); say((await app.run("late")).result); await app.close();';
  expect(await runCode(folder.root, code)).toEqual(["KitError", "local", "function"]);
});

test("a webhook is found by its file, and an invalid one is a problem", async () => {
  await using folder = await createTemporaryRepository({
    "src/webhooks/chat.ts": `import { defineWebhook } from "kit/webhooks";
export default defineWebhook({ scheme: "slack", secret: (env) => env.CHAT_SECRET, handle: () => "ok" });
`,
    "src/webhooks/none.ts": "export const a = 1;\n",
  });
  const code =
    "const app = await open(); say({ webhooks: app.webhooks().map(({ name }) => name), problems: app.problems() }); await app.close();";
  expect(await runCode(folder.root, code)).toMatchObject({
    webhooks: ["chat"],
    problems: [
      {
        path: "src/webhooks/none.ts",
        message: expect.stringContaining("export default defineWebhook"),
        source: { kind: "webhook", name: "none" },
      },
    ],
  });
});
