import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { addTrust, trustsAll } from "../../app/trust/trust.ts";
import { type Command, defineCommand } from "../command.ts";
import { configNames } from "../find-root.ts";
import { type KitPackage, kitPackage } from "../init/kit-package.ts";
import { templateFiles } from "../init/template-files.ts";
import { writeTemplate } from "../init/write-template.ts";
import type { Output } from "../print/output.ts";
import { safeLine } from "../text/safe-text.ts";
import { makeNamedFolder } from "../write-files.ts";

export const init: Command = defineCommand({
  arguments: [
    {
      usage: "[dir]",
      description: "The project's folder, created if it is missing; default: the current one",
    },
  ],
  options: {},
  examples: ["kit init my-agents", "kit init"],
  details:
    "Writes an agent, a workflow, a skill, a role, a configuration and tests. Keeps files that exist. 'kit run' works at once; 'npm install' is for tests, types and editors.",
  async run({ args: [dir = "."] }, context) {
    const { output } = context;
    const folder = resolve(context.cwd, dir);
    makeNamedFolder(folder, dir);
    const versions = kitPackage(folder);
    // A second configuration file would make every command fail.
    const configuration = configNames.find((name) => existsSync(join(folder, name))) ?? "kit.config.ts";
    const isNew = readdirSync(folder).length === 0;
    const files = templateFiles({ name: nameOf(folder), versions, configuration });
    const { written, kept } = await writeTemplate(folder, files);
    if (isNew) trustNew(folder);
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

/** A package name that npm accepts. */
function nameOf(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-")
    .replace(/^-+|-+$/g, "");
  // A package cannot depend on a package of the same name.
  return name === "" || name === "kit" || name === "node_modules" ? "my-agents" : name;
}

/** The next steps as lines to print: comments start with #. */
function nextSteps(project: {
  readonly folder: string;
  readonly cwd: string;
  readonly kept: readonly string[];
  readonly versions: KitPackage;
}): readonly string[] {
  const { folder, cwd, kept, versions } = project;
  const manifest = kept.includes("package.json") ? readManifest(folder) : undefined;
  const steps = [
    ...(folder === cwd ? [] : [`cd ${quoted(relative(cwd, folder))}`]),
    ...(manifest?.type === "commonjs" ? moduleSteps : []),
    'kit run --prompt "Which rules apply to src/agents/reviewer.ts?"',
    `kit run review-file --payload '{"file": "src/agents/reviewer.ts"}'`,
    `kit run --skill explain-file --payload '{"file": "src/agents/reviewer.ts"}' --role careful`,
  ];
  if (versions.unbuilt !== undefined) {
    steps.push("# This kit runs from a checkout that was never built; to install it, build it first:");
    steps.push(`(cd ${quoted(versions.unbuilt)} && npm run build)`);
  }
  if (manifest !== undefined && !dependsOnKit(manifest)) {
    steps.push("# Your package.json does not ask for kit yet:");
    steps.push(`npm install ${quoted(/^\d/.test(versions.kit) ? `kit@${versions.kit}` : versions.kit)}`);
  }
  const install = manifest !== undefined ? "npm install" : "npm install && npm test";
  return [...steps, install, "# Over HTTP, read again as you edit it:", "kit dev"];
}

// npm 11 writes "commonjs" into every new package.json, but kit writes ES modules.
const moduleSteps = [
  "# Your package.json says that its files are CommonJS, and agents are ES modules:",
  "npm pkg set type=module",
];

function dependsOnKit({ dependencies, devDependencies }: Manifest): boolean {
  return dependencies?.kit !== undefined || devDependencies?.kit !== undefined;
}

interface Manifest {
  readonly type?: unknown;
  readonly dependencies?: { readonly kit?: unknown };
  readonly devDependencies?: { readonly kit?: unknown };
}

function readManifest(folder: string): Manifest {
  try {
    return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) ?? {};
  } catch {
    return {};
  }
}

function quoted(word: string): string {
  return /^[\w./:@^-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A folder that was empty contains only the person's own code. */
function trustNew(folder: string): void {
  if (trustsAll(process.env)) return;
  try {
    addTrust(folder, { code: true }, process.env);
  } catch {
    // Without a state folder, commands that only list say how to trust it.
  }
}

function printSteps(output: Output, steps: readonly string[]): void {
  output.line("\nTry:");
  for (const step of steps) {
    const line = safeLine(step);
    output.line(`  ${step.startsWith("#") ? output.style("dim", line) : line}`);
  }
}
