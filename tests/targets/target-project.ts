import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { repositoryRoot } from "../../scripts/files.ts";

/** A project with each kind of source, as people have it, that is built for every target. */
export interface TargetProject {
  readonly root: string;
  write(path: string, text: string): Promise<void>;
  remove(): Promise<void>;
}

export const webhookSecret = `whsec_${Buffer.from("a secret of the tests, 24").toString("base64")}`;
export const apiKey = "key-of-the-target-tests-1";

const files: Readonly<Record<string, string>> = {
  "package.json": `{"name": "target-shop", "private": true, "type": "module", "dependencies": {"kit": "*", "zod": "*"}}\n`,
  "kit.config.ts": `import { defineConfig } from "kit";
import { agentSettings } from "./src/settings.ts";
export default defineConfig({ agent: { model: "offline/guide", ...agentSettings } });
`,
  "src/settings.ts": "export const agentSettings = { max_turns: 12 };\n",
  "AGENTS.md": "# Rules\n\n## Money\n\nAmounts are whole cents. See @docs/money.md\n",
  "docs/money.md": "# Cents\n\nA cent is the smallest amount.\n",
  "docs/unread.md": "# Nothing reads this.\n",
  ".kiro/specs/returns/requirements.md": `# Requirements

## Requirement 1: Returns

**User Story:** As a customer, I want to return goods, so that I am not stuck with them.

#### Acceptance Criteria

1. WHEN a return is asked for within 30 days THEN the system SHALL accept it.
`,
  ".agents/roles/careful.md": "---\ndescription: Checks twice.\n---\nChange little.\n",
  ".agents/skills/explain/SKILL.md":
    "---\nname: explain\ndescription: Explains a file.\n---\nExplain it. See tone.txt.\n",
  ".agents/skills/explain/tone.txt": "Friendly.\n",
  "src/agents/reviewer.ts": `import { readFileSync } from "node:fs";
import { createAgent } from "kit";
export const triggers = { webhook: true };
const tone = readFileSync(new URL("./tone.md", import.meta.url), "utf8");
export default createAgent((ctx) => ({ description: "Reviews.", instructions: \`You review \${ctx.id}. \${tone}\` }));
`,
  "src/agents/tone.md": "Be short.\n",
  "src/webhooks/chat.ts": `import { KitError } from "kit";
import { defineWebhook } from "kit/webhooks";
import { z } from "zod";
const Delivery = z.object({ thread: z.string(), text: z.string() });
export default defineWebhook({
  scheme: "standard",
  secret: (env) => env.CHAT_SECRET,
  async handle({ payload, dispatch }) {
    const { success, data } = Delivery.safeParse(payload);
    if (!success) throw new KitError({ code: "invalid_request", message: "This is no message of the chat." });
    await dispatch("reviewer", { id: data.thread, input: data.text });
  },
});
`,
  "src/workflows/count.ts": `import { defineWorkflow } from "kit";
import { z } from "zod";
import reviewer from "../agents/reviewer.ts";
export default defineWorkflow({
  payload: z.object({ text: z.string(), wait_ms: z.number().default(0), ask: z.boolean().default(false) }),
  async run(ctx) {
    const { text, wait_ms, ask } = ctx.payload;
    const words = await ctx.step("count", () => text.split(" ").length);
    if (wait_ms > 0) await ctx.sleep(wait_ms);
    if (!ask) return { words };
    const agent = await ctx.init(reviewer);
    return { words, answer: (await agent.session().prompt("Which rules apply to src/a.ts?")).text };
  },
});
`,
};

/** Makes the project in a temporary folder, with kit and zod as npm would link them. */
export async function createTargetProject(
  more: Readonly<Record<string, string>> = {},
): Promise<TargetProject> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "kit-target-")));
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  };
  for (const [path, text] of Object.entries({ ...files, ...more })) await write(path, text);
  await mkdir(join(root, "node_modules"), { recursive: true });
  await symlink(repositoryRoot, join(root, "node_modules/kit"));
  await symlink(join(repositoryRoot, "node_modules/zod"), join(root, "node_modules/zod"));
  return { root, write, remove: () => rm(root, { recursive: true, force: true }) };
}
