import { mkdirSync, readFileSync, statSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { type Command, defineCommand } from "../command.ts";
import { type KitPackage, kitPackage } from "../init/kit-package.ts";
import { templateFiles } from "../init/template-files.ts";
import { writeTemplate } from "../init/write-template.ts";
import type { Output } from "../output.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";

export const init: Command = defineCommand({
  arguments: [
    { usage: "[dir]", description: "The project's folder, made when it is missing; default: this one" },
  ],
  options: {},
  examples: ["kit init my-agents", "kit init"],
  details:
    "Writes an agent, a workflow, a skill, a role, a configuration and tests. Files that exist are kept. 'kit run' works at once; 'npm install' is for tests, types and editors.",
  async run({ args: [dir = "."] }, context) {
    const { output } = context;
    const folder = resolve(context.cwd, dir);
    makeFolder(folder, dir);
    const versions = kitPackage(folder);
    const { written, kept } = await writeTemplate(folder, templateFiles({ name: nameOf(folder), versions }));
    const next = nextSteps({ folder, cwd: context.cwd, kept, versions });
    if (context.json) {
      output.json({ folder: relative(context.cwd, folder) || ".", written, kept, next });
      return 0;
    }
    for (const path of written) output.line(`${output.style("green", "+")} ${path}`);
    for (const path of kept) output.line(`${output.style("dim", "=")} ${path} (kept as it was)`);
    printSteps(output, next);
    return 0;
  },
});

function makeFolder(folder: string, asWritten: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === false)
    throw usageError(`${asWritten} is a file.`, "Name a folder.");
  mkdirSync(folder, { recursive: true });
}

/** A name that npm accepts. */
function nameOf(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-")
    .replace(/^-+|-+$/g, "");
  // A package cannot depend on one of its own name.
  return name === "" || name === "kit" || name === "node_modules" ? "my-agents" : name;
}

/** What to do now, line by line: remarks start with #. */
function nextSteps(project: {
  readonly folder: string;
  readonly cwd: string;
  readonly kept: readonly string[];
  readonly versions: KitPackage;
}): readonly string[] {
  const { folder, cwd, kept, versions } = project;
  const steps = [
    ...(folder === cwd ? [] : [`cd ${quoted(relative(cwd, folder))}`]),
    'kit run --prompt "Which rules apply to src/agents/reviewer.ts?"',
    `kit run review-file --payload '{"file": "src/agents/reviewer.ts"}'`,
    `kit run --skill explain-file --payload '{"file": "src/agents/reviewer.ts"}' --role careful`,
  ];
  if (versions.unbuilt !== undefined) {
    steps.push("# This kit runs from a checkout that was never built; to install it, build it first:");
    steps.push(`(cd ${quoted(versions.unbuilt)} && npm run build)`);
  }
  if (kept.includes("package.json") && !asksForKit(folder)) {
    steps.push("# Your package.json does not ask for kit yet:");
    steps.push(`npm install ${quoted(versions.kit.replace(/^\^/, "kit@^"))}`);
  }
  const install = kept.includes("package.json") ? "npm install" : "npm install && npm test";
  return [...steps, install];
}

function asksForKit(folder: string): boolean {
  try {
    const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return [manifest.dependencies, manifest.devDependencies].some((list) => list?.kit !== undefined);
  } catch {
    return false;
  }
}

function quoted(word: string): string {
  return /^[\w./:@^-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function printSteps(output: Output, steps: readonly string[]): void {
  output.line("\nTry:");
  for (const step of steps) {
    const line = safeLine(step);
    output.line(`  ${step.startsWith("#") ? output.style("dim", line) : line}`);
  }
}
