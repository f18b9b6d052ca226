/** One file of a new project. */
export interface TemplateFile {
  readonly path: string;
  readonly content: string;
}

/** What `kit init` writes: small, complete, and meant to be changed. */
export function templateFiles(project: {
  readonly name: string;
  readonly kitDependency: string;
}): readonly TemplateFile[] {
  return [
    { path: "package.json", content: packageJson(project) },
    { path: "tsconfig.json", content: tsconfig },
    { path: ".gitignore", content: "node_modules/\n.kit/\n.env\n" },
    { path: "kit.config.ts", content: config },
    { path: "AGENTS.md", content: agents(project.name) },
    { path: "src/agents/reviewer.ts", content: reviewer },
    { path: "src/workflows/review-file.ts", content: workflow },
    { path: ".agents/skills/explain-file/SKILL.md", content: skill },
    { path: ".agents/roles/careful.md", content: role },
    { path: "tests/reviewer.test.ts", content: test },
  ];
}

function packageJson({
  name,
  kitDependency,
}: {
  readonly name: string;
  readonly kitDependency: string;
}): string {
  const value = {
    name,
    private: true,
    type: "module",
    scripts: { start: "kit dev", test: "node --test 'tests/**/*.test.ts'" },
    dependencies: { kit: kitDependency },
  };
  return `${JSON.stringify(value, null, 2)}\n`;
}

const tsconfig = `{
  "compilerOptions": {
    "target": "es2024",
    "module": "nodenext",
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

/** Also answers at POST /agents/reviewer/{id} when kit serves this project. */
export const triggers = { webhook: true };

export default createAgent((ctx) => ({
  description: "Reviews a change or a file.",
  instructions: \`You review code for the team. This is review \${ctx.id}.
Ask guidelines_for which rules apply to a file before you judge it. Name file and line.\`,
}));
`;

const workflow = `import type { KitContext } from "kit";
import reviewer from "../agents/reviewer.ts";

/** kit run review-file --payload '{"file": "src/agents/reviewer.ts"}' */
export async function run(ctx: KitContext): Promise<string> {
  const file = ctx.payload["file"];
  if (typeof file !== "string") throw new Error('Give a file: --payload \\'{"file": "src/app.ts"}\\'');
  ctx.log.info(\`Reviewing \${file}\`);
  const agent = await ctx.init(reviewer);
  const { text } = await agent.session().prompt(\`Which rules apply to \${file}, and does it follow them?\`);
  return text;
}
`;

const skill = `---
name: explain-file
description: Explains what a file does and which rules apply to it.
input_schema:
  type: object
  properties:
    file:
      type: string
      description: Path in the project.
  required: [file]
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

const test = `import assert from "node:assert/strict";
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
