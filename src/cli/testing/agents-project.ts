import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll } from "vitest";
import { type ProviderServer, startProviderServer } from "../../testing/provider-server/provider-server.ts";

/** A project with agents in a temporary folder. */
export interface AgentsProject {
  readonly root: string;
  write(path: string, text: string): void;
  read(path: string): string;
  remove(): void;
}

const files: Readonly<Record<string, string>> = {
  "CLAUDE.md": "# Rules\n\n## Money\n\nAmounts are whole cents.\n",
  "src/money.ts": "export const euro = 100;\n",
  "src/agents/reviewer.ts": `import { createAgent } from "kit";
export const triggers = { webhook: true };
export default createAgent((ctx) => ({
  instructions: \`You review \${ctx.payload["what"] ?? "code"} as \${ctx.id}.\`,
  model: "local/reviewing",
}));
`,
  "src/agents/broken.ts": "export default createAgent({\n",
  "src/agents/_helper.ts": 'throw new Error("a helper is not an agent");\n',
  "src/workflows/count.ts": `import { KitError, type KitContext } from "kit";
import reviewer from "../agents/reviewer.ts";
export async function run(ctx: KitContext) {
  const { text } = ctx.payload;
  if (text === undefined) throw new KitError({ code: "invalid_request", message: "Give a text." });
  if (typeof text !== "string") throw new Error("the text is none");
  ctx.log.info("Counting", { characters: text.length });
  if (ctx.payload["ask"] !== true) return { words: text.split(" ").length };
  const agent = await ctx.init(reviewer);
  return (await agent.session().prompt(text)).text;
}
`,
  "src/workflows/deploy.ts": `import { createAgent, type KitContext } from "kit";
const agent = createAgent({ name: "deployer", allowShell: true, allowCompoundCommands: true });
export async function run(ctx: KitContext) {
  const session = (await ctx.init(agent)).session();
  ctx.log.warn(\`The token is \${ctx.env["DEPLOY_TOKEN"]}\`);
  const { stdout } = await session.shell("echo token $DEPLOY_TOKEN", { secrets: ["DEPLOY_TOKEN"] });
  return stdout + (await session.shell("echo without $DEPLOY_TOKEN")).stdout;
}
`,
  ".agents/roles/careful.md": "---\ndescription: Checks twice.\nmodel: local/careful\n---\nChange little.\n",
  ".agents/skills/explain/SKILL.md": `---
name: explain
description: Explains a file.
metadata:
  kit-input-schema: '{"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}'
---
Explain the file to a colleague.
`,
};

export const providerKey = "sk-test-0123456789abcdef";

function createAgentsProject(more: Readonly<Record<string, string>> = {}): AgentsProject {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "kit-run-")));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  for (const [path, text] of Object.entries({ ...files, ...more })) write(path, text);
  return {
    root,
    write,
    read: (path) => readFileSync(join(root, path), "utf8"),
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** A server that speaks a provider's protocol, and a project whose `local/…` models it serves, until the end of the file's tests. */
export async function createServedProject(): Promise<{
  readonly project: AgentsProject;
  readonly server: ProviderServer;
}> {
  const server = await startProviderServer();
  const toml = `[providers.local]\nbase_url = "${server.providers.local?.base_url}"\napi_key = "${providerKey}"\n`;
  const project = createAgentsProject({ "kit.toml": toml });
  afterAll(async () => {
    await server.close();
    project.remove();
  });
  return { server, project };
}

/** No key of whoever runs the tests decides which model answers. */
export const withoutKeys: Readonly<Record<string, string>> = Object.fromEntries(
  ["ANTHROPIC", "OPENAI", "GOOGLE_GENERATIVE_AI", "GEMINI", "OPENROUTER"].map((name) => [
    `${name}_API_KEY`,
    "",
  ]),
);
