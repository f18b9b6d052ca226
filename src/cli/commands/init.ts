import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { addTrust, trustsAll } from "../../app/trust/trust.ts";
import { attempt } from "../../base/attempt.ts";
import { type Command, defineCommand, flag } from "../command.ts";
import { configNames } from "../find-root.ts";
import { type KitPackage, kitPackage } from "../init/kit-package.ts";
import { type MissingField, mergeManifest, missingFields } from "../init/merge-manifest.ts";
import { packageFields, templateFiles } from "../init/template-files.ts";
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
  options: {
    merge: flag("--merge", "Add to an existing package.json what it lacks: type, scripts, packages"),
  },
  examples: ["kit init my-agents", "kit init", "kit init --merge"],
  details:
    "Writes an agent, a workflow, a skill, a role, a configuration and tests. Keeps files that exist. 'kit run' works at once; 'npm install' is for tests, types and editors.",
  async run({ args: [dir = "."], options: { merge = false } }, context) {
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
    const manifest = kept.includes("package.json")
      ? attempt(() => JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) ?? {}, {})
      : undefined;
    const missing = manifest === undefined ? [] : missingFields(manifest, packageFields(versions));
    const isMerged = merge && missing.length > 0;
    if (isMerged) mergeManifest(join(folder, "package.json"), missing);
    const next = nextSteps({ folder, cwd: context.cwd, versions, missing: isMerged ? [] : missing });
    if (context.json) {
      const merged = isMerged ? { merged: missing.map(fieldName) } : {};
      output.json({ folder: relative(context.cwd, folder) || ".", written, kept, ...merged, next });
      return 0;
    }
    for (const path of written) output.line(`${output.style("green", "+")} ${path}`);
    for (const path of kept) {
      if (isMerged && path === "package.json")
        output.line(`${output.style("green", "~")} ${path} (added ${missing.map(fieldName).join(", ")})`);
      else output.line(`${output.style("dim", "=")} ${path} (kept as it was)`);
    }
    printSteps(output, next);
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

function fieldName({ table, key }: MissingField): string {
  return table === undefined ? key : `${table}.${key}`;
}

/** The next steps as lines to print: comments start with #. */
function nextSteps(project: {
  readonly folder: string;
  readonly cwd: string;
  readonly versions: KitPackage;
  /** The fields that the package.json lacks. */
  readonly missing: readonly MissingField[];
}): readonly string[] {
  const { folder, cwd, versions, missing } = project;
  const fields = missing.filter(({ table }) => table === undefined || table === "scripts");
  const packages = missing.filter(({ table }) => table === "devDependencies");
  const steps = [
    ...(folder === cwd ? [] : [`cd ${quoted(relative(cwd, folder))}`]),
    ...(fields.length === 0
      ? []
      : ["# Your package.json lacks these ('kit init --merge' adds all that it lacks):"]),
    ...fields.map((field) => `npm pkg set ${quoted(`${fieldName(field)}=${field.value}`)}`),
    'kit run --prompt "Which rules apply to src/agents/reviewer.ts?"',
    `kit run review-file --payload '{"file": "src/agents/reviewer.ts"}'`,
    `kit run --skill explain-file --payload '{"file": "src/agents/reviewer.ts"}' --role careful`,
  ];
  if (versions.unbuilt !== undefined) {
    steps.push("# This kit runs from a checkout that was never built; to install it, build it first:");
    steps.push(`(cd ${quoted(versions.unbuilt)} && npm run build)`);
  }
  if (missing.some(({ table }) => table === "dependencies")) {
    steps.push("# Your package.json does not ask for kit yet:");
    steps.push(`npm install ${quoted(/^\d/.test(versions.kit) ? `kit@${versions.kit}` : versions.kit)}`);
  }
  if (packages.length > 0) {
    steps.push("# For types and editors:");
    steps.push(
      `npm install --save-dev ${packages.map(({ key, value }) => quoted(`${key}@${value}`)).join(" ")}`,
    );
  }
  return [...steps, "npm install && npm test", "# Over HTTP, read again as you edit it:", "kit dev"];
}

function quoted(word: string): string {
  return /^[\w./:@^=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
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
