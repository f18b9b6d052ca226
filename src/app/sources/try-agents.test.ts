import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { loadProjectSources } from "./sources.ts";
import { type TryOptions, tryAgents } from "./try-agents.ts";

async function findProblems(
  files: Readonly<Record<string, string>>,
  options: Partial<TryOptions> = {},
): Promise<readonly string[]> {
  await using repository = await createTemporaryRepository({
    "package.json": '{"type": "module"}',
    ...files,
  });
  const { root } = repository;
  const { agents, problems } = await loadProjectSources(root, { code: true });
  const loaded = { config: {}, environment: {} } as TryOptions["loaded"];
  const tried = await tryAgents({ root, agents, loaded, hasPackage: () => false, ...options });
  return [...problems, ...tried].map(({ path, message }) => `${path}: ${message}`);
}

const kit = new URL("../../index.ts", import.meta.url).href;
const head = `import { createAgent, defineTool } from "${kit}";\n`;

test("a mistake inside an agent's function is found with its line, before any prompt", async () => {
  const found = await findProblems({
    "src/agents/field.ts": `${head}export default createAgent(() => ({\n  projectInstruction: "x",\n}));\n`,
    "src/agents/tool.ts": `${head}export default createAgent((ctx) => ({\n  tools: [\n    defineTool({ name: "add", description: "Adds.", parameters: {}, execute: () => ctx.id }),\n  ],\n}));\n`,
    "src/agents/named.ts": `${head}export default createAgent(async () => ({\n  tools: [defineTool({\n    name: "read",\n    description: "Reads.",\n    input: {},\n    execute: () => "",\n  })],\n}));\n`,
    "src/agents/below.ts": `${head}export default createAgent(() => ({\n  subagents: [\n    { name: "a", allowedCommand: [] },\n  ],\n}));\n`,
  });
  expect(found).toEqual([
    expect.stringMatching(
      /^src\/agents\/below\.ts: `subagents\[0\]\.allowedCommand` .*allowedCommands\?.*\(line 4\)$/,
    ),
    expect.stringMatching(/^src\/agents\/field\.ts: .*did you mean projectInstructions\?.*\(line 3\)$/),
    expect.stringMatching(
      /^src\/agents\/named\.ts: .*"read", which is that of a built-in tool\. \(line 4\)$/,
    ),
    expect.stringMatching(/^src\/agents\/tool\.ts: .*`parameters` .*`?input`?.*\(line 4\)$/),
  ]);
});

test("a mistake in a plain profile is found when its file is loaded, with its line", async () => {
  const found = await findProblems({
    "src/agents/plain.ts": `${head}export default createAgent({\n  allowedCommand: [],\n});\n`,
    "src/agents/tool.ts": `${head}export default createAgent({ tools: [\n  defineTool({ name: "bash", description: "x", input: {}, execute: () => "" }),\n] });\n`,
  });
  expect(found).toEqual([
    expect.stringMatching(/^src\/agents\/plain\.ts: `allowedCommand` .*\(line 3\)$/),
    expect.stringMatching(/^src\/agents\/tool\.ts: .*"bash", which is that of a built-in tool\. \(line 3\)$/),
  ]);
});

test("an agent that needs a payload, throws or takes long is no problem, and its signal fires", async () => {
  const found = await findProblems({
    "src/agents/payload.ts": `${head}export default createAgent(({ payload }) => ({ instructions: payload.text.trim() }));\n`,
    "src/agents/throws.ts": `${head}export default createAgent(() => { throw new TypeError("No database here."); });\n`,
    "src/agents/works.ts": `${head}export default createAgent(async (ctx) => { await ctx.dispatch("payload", {}); return {}; });\n`,
    "src/agents/closes.ts": `${head}export default createAgent(({ signal }) => { signal.addEventListener("abort", () => { globalThis.closedByTrial = true; }); return {}; });\n`,
  });
  expect(found).toEqual([]);
  expect(globalThis).toMatchObject({ closedByTrial: true });
});

test("a model whose package is missing is named with the command that installs it", async () => {
  const files = {
    "src/agents/a.ts": `${head}export default createAgent({\n  model: ["offline/guide", "anthropic/claude-x"],\n});\n`,
    "src/agents/b.ts": `${head}export default createAgent(() => ({ subagents: [{ name: "c", model: "fake/m" }] }));\n`,
  };
  const loaded = { config: { agent: { model: "openai:gpt" } }, environment: {} } as TryOptions["loaded"];
  expect(await findProblems(files, { loaded })).toEqual([
    'agent.model: The package of the model "openai:gpt" is not installed: npm install @ai-sdk/openai.',
    'src/agents/a.ts: The package of the model "anthropic/claude-x" is not installed: npm install @ai-sdk/anthropic. (line 3)',
    'src/agents/b.ts: The package of the model "fake/m" is not installed: npm install @ai-sdk/openai-compatible. (line 2)',
  ]);
  expect(await findProblems(files, { loaded, hasPackage: () => true })).toEqual([]);
});
