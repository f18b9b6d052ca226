import { createInterface } from "node:readline";
import { isProtectedPath } from "../../agents/policy/protected-paths.ts";
import { isVendorKind } from "../../app/config/sandbox-schema.ts";
import { untrustedCode } from "../../app/trust/trust.ts";
import { KitError } from "../../base/kit-error.ts";
import type { SandboxChanges, SandboxMachine, SandboxMachines } from "../../sandboxes/contract.ts";
import { asText } from "../choices.ts";
import { type Command, type CommandContext, defineCommand, type ExitCode, flag, option } from "../command.ts";
import { canAsk } from "../print/output.ts";
import { type Column, count, printTable, timeColumn } from "../print/table.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";
import { noteOfUnrunCode, withProject } from "../with-project.ts";

const details =
  "Asks the vendors that the configuration and the agents of this project name; their API keys must be set.";

export const sandboxesList: Command = defineCommand({
  options: {},
  examples: ["kit sandboxes list", "kit sandboxes list --json"],
  details: `Lists the machines of this project, running or paused, whoever made them. ${details}`,
  run: (_, context) =>
    withMachines(context, async (vendors) => {
      const machines = (await listAll(vendors)).map(({ machine }) => machine);
      const { output } = context;
      if (context.json) output.json({ sandboxes: machines });
      else if (machines.length === 0) output.note("This project has no machine at a vendor.");
      else printTable(output, machines, columns);
    }),
});

export const sandboxesPrune: Command = defineCommand({
  options: {
    all: flag("--all", "Also remove machines that sessions use, with the work on them"),
    yes: flag("-y, --yes", "Remove the machines without asking"),
    dryRun: flag("--dry-run", "Print what would be removed, and remove nothing"),
  },
  examples: ["kit sandboxes prune --dry-run", "kit sandboxes prune --yes"],
  details: `Removes the machines of this project that no session uses, such as those left by a crash. Never removes machines of another project. ${details}`,
  run: ({ options }, context) =>
    withMachines(context, async (vendors) => {
      const { output } = context;
      const { all = false, yes = false, dryRun = false } = options;
      const chosen = (await listAll(vendors)).filter(({ machine }) => all || !machine.in_use);
      const machines = chosen.map(({ machine }) => machine);
      const machineText = count(machines.length, "machine");
      if (!context.json && machines.length > 0) printTable(output, machines, columns);
      const isMeant =
        machines.length > 0 &&
        !dryRun &&
        (yes || (await agrees(context, `Remove ${machineText}, with the files on it?`)));
      const removed: SandboxMachine[] = [];
      for (const { machine, machines } of isMeant ? chosen : []) {
        context.signal.throwIfAborted();
        await machines.destroy(machine.id);
        removed.push(machine);
      }
      if (context.json) output.json({ dry_run: dryRun, removed: dryRun ? machines : removed });
      else if (machines.length === 0) output.note("No machine to remove.");
      else
        output.note(
          isMeant
            ? `Removed ${machineText}.`
            : dryRun
              ? `${machineText} would be removed.`
              : "Nothing was removed.",
        );
    }),
});

const target = [
  { usage: "<agent>", description: "The agent whose machine it is", completes: "agent" },
  { usage: "<instance>", description: "Its instance" },
] as const;
const session = option("--session <name>", "The session of the instance (default: default)", asText);

export const sandboxesDiff: Command = defineCommand({
  arguments: target,
  options: { session },
  examples: ["kit sandboxes diff fixer pr-42", "kit sandboxes diff fixer pr-42 > changes.patch"],
  details: `Prints, as a patch, what the session has changed since its machine started. ${details}`,
  run: ({ args, options }, context) =>
    withChanges({ args, session: options.session, context }, async ({ changes }) => {
      const { output } = context;
      if (context.json) output.json(changes);
      else if (changes.patch === "") output.note("Nothing has changed.");
      else for (const line of linesOf(changes.patch)) output.line(styled(context, line));
    }),
});

export const sandboxesApply: Command = defineCommand({
  arguments: target,
  options: {
    session,
    yes: flag("-y, --yes", "Apply the changes without asking"),
    protectedToo: flag(
      "--allow-protected",
      "Also apply changes to files that decide what kit, Git and CI run",
    ),
  },
  examples: ["kit sandboxes apply fixer pr-42", "kit sandboxes apply fixer pr-42 --yes"],
  details: `Shows what the session has changed, asks, and applies all of it to the files here, or nothing. Commits nothing. ${details}`,
  run: ({ args, options }, context) =>
    withChanges({ args, session: options.session, context }, async ({ changes, machines }) => {
      const { output } = context;
      const files = changes.files.map(({ path }) => path);
      if (changes.patch === "") {
        if (context.json) output.json({ applied: [] });
        else output.note("Nothing has changed.");
        return 0;
      }
      if (!context.json) for (const line of linesOf(changes.patch)) output.line(styled(context, line));
      const changedFiles = changes.files.filter(({ path, change }) =>
        isProtectedPath({ path, cwd: "", removes: change === "deleted" }, []),
      );
      if (changedFiles.length > 0 && options.protectedToo !== true) throw isKept(changedFiles);
      const isMeant =
        options.yes === true || (await agrees(context, `Apply this to ${count(files.length, "file")}?`));
      if (isMeant) await machines.apply(changes);
      if (context.json) output.json({ applied: isMeant ? files : [] });
      else output.note(isMeant ? `Applied to ${count(files.length, "file")}.` : "Nothing was applied.");
    }),
});

function isKept(files: SandboxChanges["files"]): KitError {
  const listed = files
    .slice(0, 5)
    .map(({ path }) => safeLine(path))
    .join(", ");
  return new KitError({
    code: "forbidden",
    message: `The changes touch files that decide which code runs on this machine: ${listed}${files.length > 5 ? ", …" : ""}. Nothing was applied.`,
    hint: "Read the patch; --allow-protected applies it with them.",
  });
}

/** The lines of a patch; its last line may be an empty line of the file. */
const linesOf = (patch: string): readonly string[] => patch.replace(/\n$/, "").split("\n");

/** A patch line: unchanged for other programs, without control characters for a terminal. */
function styled({ output }: CommandContext, line: string): string {
  if (!output.isTerminal) return line;
  const text = safeLine(line);
  if (/^(?:\+\+\+|---|diff |index |new file|deleted file)/.test(line)) return output.style("dim", text);
  return line.startsWith("+")
    ? output.style("green", text)
    : line.startsWith("-")
      ? output.style("red", text)
      : text;
}

/** Asks for confirmation at the terminal; without a terminal, requires `--yes`. */
async function agrees({ input, output, json }: CommandContext, question: string): Promise<boolean> {
  if (json || !canAsk({ input, output }))
    throw usageError("There is no terminal for the confirmation.", "Confirm with --yes.");
  output.note(`${question} [y/N]`);
  const lines = createInterface({ input, terminal: false });
  try {
    const answer = await new Promise<string>((resolve) => {
      lines.once("line", resolve);
      lines.once("close", () => resolve(""));
    });
    return /^(?:y|yes)$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}

const columns: readonly Column<SandboxMachine>[] = [
  { header: "MACHINE", value: ({ sandbox, id }) => `${sandbox}/${id}` },
  {
    header: "STATE",
    value: ({ state }) => state,
    style: ({ state }) => (state === "running" ? "green" : "dim"),
  },
  { header: "INSTANCE", value: ({ agent, instance_id }) => `${agent}/${instance_id}`, style: () => "cyan" },
  { header: "SESSION", value: ({ session: name }) => name },
  {
    header: "USE",
    value: ({ in_use }) => (in_use ? "in use" : "left over"),
    style: ({ in_use }) => (in_use ? undefined : "yellow"),
  },
  timeColumn("MADE", ({ created_at }) => created_at),
];

/** The vendors of a project; one vendor may occur twice, with two accounts. */
type Vendors = readonly SandboxMachines[];

interface FoundMachine {
  readonly machine: SandboxMachine;
  readonly machines: SandboxMachines;
}

async function listAll(vendors: Vendors): Promise<readonly FoundMachine[]> {
  const machinesByKey = new Map<string, FoundMachine>();
  for (const machines of vendors) {
    for (const machine of await machines.list())
      machinesByKey.set(`${machine.sandbox}/${machine.id}`, { machine, machines });
  }
  return [...machinesByKey.values()];
}

interface ChangesRequest {
  readonly args: readonly string[];
  readonly session: string | undefined;
  readonly context: CommandContext;
}

function withChanges(
  { args: [agent = "", instance_id = ""], session: name = "default", context }: ChangesRequest,
  use: (found: { readonly changes: SandboxChanges; readonly machines: SandboxMachines }) => Promise<ExitCode>,
): Promise<ExitCode> {
  return withMachines(context, async (vendors) => {
    const owner = { agent, instance_id, session: name };
    const machine = (await listAll(vendors)).find(
      ({ machine }) =>
        machine.agent === agent && machine.instance_id === instance_id && machine.session === name,
    );
    if (machine !== undefined)
      return await use({ ...machine, changes: await machine.machines.changes(owner) });
    throw new KitError({
      code: "not_found",
      message: `The session ${name} of ${agent}/${instance_id} has no machine.`,
      hint: "'kit sandboxes list' shows those of this project.",
    });
  });
}

/** The vendors of the project's sandboxes. */
async function withMachines(
  context: CommandContext,
  use: (vendors: Vendors) => Promise<ExitCode>,
): Promise<ExitCode> {
  return await withProject(
    context,
    async ({ project, loaded }) => {
      noteOfUnrunCode(loaded, context);
      const kind = loaded.config.agent?.sandbox;
      if (loaded.untrustedCode === true && typeof kind === "string" && isVendorKind(kind))
        throw untrustedCode(`The package for ${kind}`);
      const { openProjectService } = await import("../../app/service/open-project-service.ts");
      const { app } = await openProjectService({
        project,
        loaded,
        works: false,
        code: loaded.untrustedCode !== true,
      });
      try {
        const factories = new Set(await app.sandboxes());
        const vendors = await Promise.all([...factories].map((factory) => factory.machines?.(project.root)));
        return await use(vendors.filter((machines) => machines !== undefined));
      } finally {
        await app.close();
      }
    },
    { sendsKeys: true },
  );
}
