import { extname, relative, sep } from "node:path";
import { parseConfig } from "../../app/config/config-schema.ts";
import { type LoadedConfig, loadConfig } from "../../app/config/load-config.ts";
import { parseToml, setTomlKey, valueAt } from "../../app/config/set-toml-key.ts";
import { readFileInside, writeFileInside } from "../../project/features/write-file.ts";
import { type Addition, additions, findAddition } from "../add/additions.ts";
import { findPackageFolder, installCommand, runManager } from "../add/package-manager.ts";
import { installedVersion, type PackagePlan, peerOf, planPackage } from "../add/peer-versions.ts";
import type { ManagerName } from "../choices.ts";
import { parsePackageManager } from "../choices.ts";
import { type Command, type CommandContext, defineCommand, type ExitCode, flag, option } from "../command.ts";
import { checkAddition } from "../doctor/check-addition.ts";
import { type Check, printChecks } from "../doctor/checks.ts";
import type { Output } from "../print/output.ts";
import { type Column, printTable } from "../print/table.ts";
import { safeLine } from "../text/safe-text.ts";
import { loadProjectConfig } from "../with-project.ts";

export const add: Command = defineCommand({
  arguments: [
    {
      usage: "[name]",
      description: "What to add; default: list everything that can be added",
      completes: additions.map(({ name }) => name),
    },
  ],
  options: {
    dryRun: flag("--dry-run", "Print what would be installed and written, and do neither"),
    manager: option(
      "--with <manager>",
      "npm, pnpm, yarn or bun, in place of the one that the project uses",
      parsePackageManager,
    ),
  },
  examples: ["kit add anthropic", "kit add postgres --dry-run", "kit add"],
  details:
    "Installs the packages at the version that kit is tested with, writes the keys into kit.toml, names the variable to set, and checks the result as 'kit doctor' does. Keeps newer versions that kit supports, and configured keys with another value. For kit.config.ts it prints what to write. Never writes keys or passwords to a file.",
  run: ({ args: [name], options: { dryRun = false, manager } }, context) =>
    name === undefined ? list(context) : addOne(findAddition(name), { dryRun, manager }, context),
});

/** The steps of one addition. */
interface Plan {
  readonly addition: Addition;
  readonly packages: readonly PackagePlan[];
  /** The commands that install missing packages. */
  readonly command: readonly string[] | undefined;
  readonly change: ConfigurationChange;
  readonly dryRun: boolean;
}

async function addOne(
  addition: Addition,
  { dryRun, manager }: { readonly dryRun: boolean; readonly manager: ManagerName | undefined },
  context: CommandContext,
): Promise<ExitCode> {
  const { root, output } = context;
  const folder = findPackageFolder(root);
  const loaded = await loadProjectConfig(context, { runsCode: true, sendsKeys: true, dotEnv: true });
  const packages = addition.packages.map((name) => planPackage(peerOf(name), folder));
  const missing = packages.flatMap(({ name, install }) =>
    install === undefined ? [] : [`${name}@${install}`],
  );
  const command = missing.length === 0 ? undefined : installCommand(folder, missing, manager);
  const change = await planConfiguration(addition, { root, loaded });
  const plan: Plan = { addition, packages, command, change, dryRun };
  if (!context.json) printPlan(plan, output);
  if (dryRun) {
    if (context.json) output.json(toJson(plan, []));
    else output.note("Nothing was done (--dry-run).");
    return 0;
  }
  if (command !== undefined) await runManager(command, { folder, context });
  await change.write?.();
  const { environment, file } = loaded;
  const { config } = await loadConfig({ cwd: root, environment, file });
  const checks = await checkAddition(addition, { root, folder, loaded: { ...loaded, config } });
  if (context.json) output.json(toJson(plan, checks));
  else printResult(plan, checks, output);
  return checks.some(({ status }) => status === "error") ? 1 : 0;
}

function printPlan({ packages, command, change, dryRun }: Plan, output: Output): void {
  for (const { name, installed, install } of packages)
    if (install === undefined) output.line(`${output.style("dim", "=")} ${name} ${installed ?? ""} (kept)`);
  // Commands to copy are not wrapped.
  if (command !== undefined) output.line(`${output.style("green", dryRun ? "+" : "$")} ${command.join(" ")}`);
  for (const { key, present } of change.differing)
    output.line(
      `${output.style("dim", "=")} ${key} stays ${safeLine(JSON.stringify(present) ?? String(present))}`,
    );
  if (dryRun) printChange(change, output);
}

function printChange({ file, lines, write }: ConfigurationChange, output: Output): void {
  if (lines.length === 0) return;
  const name = safeLine(file);
  if (write === undefined) output.line(`${output.style("yellow", "!")} Add to ${name} by hand:`);
  for (const line of lines)
    output.line(write === undefined ? `    ${line}` : `${output.style("green", "+")} ${name}: ${line}`);
}

function printResult({ addition, change, command }: Plan, checks: readonly Check[], output: Output): void {
  const { name, remark, docs } = addition;
  printChange(change, output);
  if (command === undefined && change.lines.length === 0) output.note(`${name} was added before.`);
  for (const { key, value } of change.differing)
    output.line(`${output.style("yellow", "!")} To use it: ${key} = ${JSON.stringify(value)}`);
  if (remark !== undefined) output.line(`${output.style("yellow", "!")} ${remark}`);
  output.line(`  ${output.style("dim", `Read on in ${docs} of kit.`)}`);
  printChecks(output, checks);
}

function toJson({ addition, packages, command, change, dryRun }: Plan, checks: readonly Check[]): unknown {
  const { name, kind, variables = [], docs } = addition;
  const { write, ...rest } = change;
  return {
    name,
    kind,
    dry_run: dryRun,
    packages: packages.map(({ name, tested, installed = null, install = null }) => ({
      name,
      tested,
      installed,
      install,
    })),
    command: command ?? null,
    configuration: { ...rest, by_hand: rest.lines.length > 0 && write === undefined },
    variables,
    docs,
    checks,
  };
}

interface ListRow {
  readonly name: string;
  readonly kind: string;
  readonly packages: readonly {
    readonly name: string;
    readonly tested: string;
    readonly installed: string | null;
  }[];
  readonly variables: readonly string[];
  readonly docs: string;
}

function list({ root, output, json }: CommandContext): Promise<ExitCode> {
  const rows = additions.map(
    ({ name, kind, packages, variables = [], docs }): ListRow => ({
      name,
      kind,
      packages: packages.map((peer) => {
        const { tested } = peerOf(peer);
        return { name: peer, tested, installed: installedVersion(peer, root) ?? null };
      }),
      variables,
      docs,
    }),
  );
  if (json) output.json({ additions: rows });
  else printTable(output, rows, columns);
  return Promise.resolve(0);
}

const columns: readonly Column<ListRow>[] = [
  { header: "NAME", value: ({ name }) => name },
  { header: "KIND", value: ({ kind }) => kind },
  {
    header: "INSTALLED",
    value: ({ packages }) => {
      const [first] = packages;
      return packages.every(({ installed }) => installed !== null) ? (first?.installed ?? "") : "-";
    },
    style: ({ packages }) => (packages.every(({ installed }) => installed !== null) ? "green" : "dim"),
  },
  {
    header: "PACKAGE",
    value: ({ packages }) => packages.map(({ name }) => name).join(" "),
    // A person names the addition, and its line stays one line at 80 columns.
    forPeople: () => "",
  },
  { header: "VARIABLE", value: ({ variables }) => variables[0] ?? "" },
];

/** The keys that a project's configuration lacks for an addition. */
interface ConfigurationChange {
  /** The file, relative to the root. */
  readonly file: string;
  /** The lines to add, by kit or by hand. */
  readonly lines: readonly string[];
  /** Keys that already have another value. The user set them, so they stay. */
  readonly differing: readonly { readonly key: string; readonly value: string; readonly present: unknown }[];
  /** Writes the file. Throws `conflict` if the file has changed since. Absent where the user has to edit it. */
  readonly write?: () => Promise<void>;
}

/** The change, computed but not written; without lines if all keys exist. */
async function planConfiguration(
  { configuration = {} }: Addition,
  { root, loaded }: { readonly root: string; readonly loaded: LoadedConfig },
): Promise<ConfigurationChange> {
  const file = loaded.file === undefined ? "kit.toml" : relative(root, loaded.file).split(sep).join("/");
  const isToml = extname(file) === ".toml";
  const isInside = !file.startsWith("../");
  const bytes = isToml && isInside ? await readFileInside(root, { path: file }) : undefined;
  const text = bytes === undefined ? "" : new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  // Variables override the file; this reads what the file itself says.
  const ownConfig =
    loaded.file === undefined
      ? {}
      : (await loadConfig({ cwd: root, file: loaded.file, environment: {} })).config;
  const keys = Object.entries(configuration).map(([key, value]) => ({
    key,
    value,
    present: valueAt(ownConfig, key.split(".")),
  }));
  const differing = keys.filter(({ value, present }) => present !== undefined && present !== value);
  const missing = keys.filter(({ present }) => present === undefined);
  if (missing.length === 0) return { file, lines: [], differing };
  const lines = isToml
    ? missing.map(({ key, value }) => `${key} = ${JSON.stringify(value)}`)
    : codeLines(missing);
  if (!isToml || !isInside) return { file, lines, differing };
  let changed: string | undefined = text;
  for (const { key, value } of missing)
    changed = changed === undefined ? undefined : setTomlKey(changed, key.split("."), value);
  if (changed === undefined || parseConfig(parseToml(changed)).issues.length > 0)
    return { file, lines, differing };
  const content = changed;
  return {
    file,
    lines,
    differing,
    write: () =>
      writeFileInside({ root, readOnly: false }, { path: file, content, expected: bytes ?? null }).then(
        () => undefined,
      ),
  };
}

/** As they stand in `kit.config.ts`: `agent: { sandbox: "e2b" },`. */
function codeLines(keys: readonly { readonly key: string; readonly value: string }[]): readonly string[] {
  return keys.map(({ key, value }) => {
    const path = key.split(".");
    const inner = `${path.at(-1)}: ${JSON.stringify(value)}`;
    return `${path.slice(0, -1).reduceRight((text, name) => `${name}: { ${text} }`, inner)},`;
  });
}
