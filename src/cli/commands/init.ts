import { mkdir } from "node:fs/promises";
import { basename, relative, resolve } from "node:path";
import { type Command, defineCommand } from "../command.ts";
import { kitDependency } from "../init/kit-dependency.ts";
import { templateFiles } from "../init/template-files.ts";
import { writeTemplate } from "../init/write-template.ts";
import { safeLine } from "../text/safe-text.ts";

export const init: Command = defineCommand({
  arguments: [
    { usage: "[dir]", description: "The project's folder, made when it is missing; default: this one" },
  ],
  options: {},
  examples: ["kit init my-agents", "kit init"],
  details:
    "Writes an agent, a workflow, a skill, a role, a configuration and a test. Files that exist are kept.",
  async run({ args: [dir = "."] }, context) {
    const { output } = context;
    const folder = resolve(context.cwd, dir);
    await mkdir(folder, { recursive: true });
    const name =
      basename(folder)
        .toLowerCase()
        .replace(/[^a-z0-9-]+/g, "-")
        .replace(/^-+|-+$/g, "") || "my-agents";
    const { written, kept } = await writeTemplate(
      folder,
      templateFiles({ name, kitDependency: kitDependency(folder) }),
    );
    if (context.json) {
      output.json({ folder: relative(context.cwd, folder) || ".", written, kept });
      return 0;
    }
    for (const path of written) output.line(`${output.style("green", "+")} ${path}`);
    for (const path of kept) output.line(`${output.style("dim", "=")} ${path} (kept as it was)`);
    const enter = folder === context.cwd ? "" : `cd ${safeLine(relative(context.cwd, folder))}\n  `;
    output.line(`\nTry:\n  ${enter}kit run --prompt "Which rules apply to src/agents/reviewer.ts?"`);
    output.line(
      `  kit run review-file --payload '{"file": "src/agents/reviewer.ts"}'\n  npm install && npm test`,
    );
    return 0;
  },
});
