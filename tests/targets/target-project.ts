import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { repositoryRoot } from "../../scripts/files.ts";
import type { RunResult } from "../../src/cli/testing/run-kit.ts";

/** A project with each kind of source, built for every target. */
export interface TargetProject {
  readonly root: string;
  write(path: string, text: string): Promise<void>;
  /** Links packages of this checkout, or of another folder of packages, into the project. */
  link(names: readonly string[], from?: string): Promise<void>;
  /** Runs the command line of the kit installed in the project. */
  kit(args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<RunResult>;
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
    if (!success) throw new KitError({ code: "invalid_request", message: "This is not a message of the chat." });
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

/** Creates the project in a temporary folder, with kit unpacked like npm does it, and its packages next to it. */
export async function createTargetProject(
  more: Readonly<Record<string, string>> = {},
): Promise<TargetProject> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "kit-target-")));
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  };
  const link = async (
    names: readonly string[],
    from = join(repositoryRoot, "node_modules"),
  ): Promise<void> => {
    for (const name of names) {
      const target = join(root, "node_modules", name);
      await mkdir(dirname(target), { recursive: true });
      await symlink(join(from, name), target);
    }
  };
  for (const [path, text] of Object.entries({ ...files, ...more })) await write(path, text);
  for (const path of ["package.json", "bin", "dist"])
    await cp(join(repositoryRoot, path), join(root, "node_modules/kit", path), { recursive: true });
  const { dependencies } = JSON.parse(await readFile(join(repositoryRoot, "package.json"), "utf8"));
  // `kit build` imports the bundler by name.
  await link([...Object.keys(dependencies), "rolldown"]);
  return {
    root,
    write,
    link,
    kit: (args, environment = {}) => runInstalled(root, args, environment),
    remove: () => rm(root, { recursive: true, force: true }),
  };
}

function runInstalled(
  root: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<RunResult> {
  const { NO_COLOR: _, FORCE_COLOR: __, KIT_API_KEYS: ___, ...variables } = process.env;
  return new Promise((resolve) => {
    const words = [join(root, "node_modules/kit/bin/kit.mjs"), ...args];
    const env = { ...variables, ...environment };
    execFile(process.execPath, words, { cwd: root, env }, (error, stdout, stderr) => {
      const exitCode = error === null ? 0 : typeof error.code === "number" ? error.code : null;
      resolve({ exitCode, stdout, stderr });
    });
  });
}
