import { hash } from "node:crypto";
import { KitError } from "../../base/kit-error.ts";
import { forbidden, invalid } from "../../files/obstacle.ts";
import type { DirectoryEntry, FileStat, Sandbox, SandboxMachines, SandboxOwner } from "../contract.ts";
import { replaceText } from "../host/replace-text.ts";
import { applyChanges, readChanges } from "./changes.ts";
import type { RemoteDriver } from "./driver.ts";
import { labelsOf, MachineLink } from "./machine-link.ts";
import { createMachineRecords, type MachineRecords } from "./records.ts";
import { execRemotely } from "./remote-exec.ts";
import { isolationBy, type RemoteOptions } from "./remote-options.ts";
import { globRemotely, grepRemotely } from "./remote-search.ts";
import { namesOf, pathIn, type RemoteView, runOnPath } from "./remote-view.ts";
import { scripts, withInput } from "./scripts.ts";
import { seedMachine } from "./seed.ts";

const defaultIdleMs = 300_000;

export interface Remote {
  readonly options: RemoteOptions;
  readonly driverAt: (root: string) => Promise<RemoteDriver>;
}

/** Opens a session's sandbox without starting its machine. Throws if the vendor cannot enforce the network rules. */
export async function openRemote(remote: Remote, owner: SandboxOwner): Promise<Sandbox> {
  return createRemoteSandbox(await linkOf(remote, owner));
}

export async function removeRemote(remote: Remote, owner: SandboxOwner): Promise<void> {
  const root = rootOf(owner);
  const records = recordsOf(remote, await remote.driverAt(root), root);
  // Without a recorded machine there is nothing to remove, so send no request to the vendor.
  if (remote.options.project === undefined && !(await records.hasProject())) return;
  const driver = await remote.driverAt(root);
  const machineId = await records.read(owner);
  if (machineId !== undefined) await driver.destroy(machineId);
  const labels = labelsOf(await records.project(), owner);
  for (const { id } of await driver.list(labels)) await driver.destroy(id);
  await records.remove(owner);
}

/** The machines of a project. */
export async function openMachines(remote: Remote, root: string): Promise<SandboxMachines> {
  const driver = await remote.driverAt(root);
  const records = recordsOf(remote, driver, root);
  const listMachines = async () => {
    // A project without an id has created no machine; listing must not create the id.
    if (remote.options.project === undefined && !(await records.hasProject())) return [];
    return await driver.list({ kit_project: await records.project() });
  };
  return {
    async list() {
      const machines = await listMachines();
      return await Promise.all(
        machines.map(async ({ id, state, labels, created_at }) => ({
          id,
          sandbox: driver.name,
          state,
          agent: labels.kit_agent ?? "",
          instance_id: labels.kit_instance ?? "",
          session: labels.kit_session ?? "",
          created_at,
          in_use: await records.holds(id),
        })),
      );
    },
    async destroy(id) {
      const machine = (await listMachines()).find((machine) => machine.id === id);
      if (machine === undefined)
        throw new KitError({ code: "not_found", message: `This project has no machine ${id}.` });
      await driver.destroy(id);
      const { kit_agent: agent, kit_instance: instance_id, kit_session: session } = machine.labels;
      if (agent === undefined || instance_id === undefined || session === undefined) return;
      const owner = { agent, instance_id, session };
      if ((await records.read(owner)) === id) await records.remove(owner);
    },
    apply: (changes) => applyChanges(root, changes),
    async changes(owner) {
      const [machine] = await driver.list(labelsOf(await records.project(), owner));
      if (machine === undefined) throw noMachine(owner);
      const connected = await linkOf(remote, { ...owner, project_root: root });
      try {
        return await readChanges(toView(connected));
      } finally {
        // If the machine was running, the session uses it and pauses it later.
        await (machine.state === "paused" ? connected.link.pause() : connected.link.leave());
      }
    },
  };
}

function noMachine({ agent, instance_id, session }: SandboxOwner): KitError {
  return new KitError({
    code: "not_found",
    message: `The session ${session} of ${agent}/${instance_id} has no machine.`,
    hint: "'kit sandboxes list' shows the machines of this project.",
  });
}

const rootOf = (owner: SandboxOwner): string => owner.project_root ?? process.cwd();

const recordsOf = (remote: Remote, driver: RemoteDriver, root: string): MachineRecords =>
  createMachineRecords(root, driver.name, remote.options.project);

async function linkOf(remote: Remote, owner: SandboxOwner) {
  const { options } = remote;
  const driver = await remote.driverAt(rootOf(owner));
  const link = new MachineLink({
    driver,
    records: recordsOf(remote, driver, rootOf(owner)),
    owner,
    env: options.env ?? {},
    network: networkFor(driver, options.network ?? owner.network),
    idleMs: options.idleMs ?? defaultIdleMs,
    seed: (open) => seedMachine(open, options, owner),
  });
  return {
    link,
    name: driver.name,
    persistent: driver.pause !== undefined,
    requiresWall: owner.isolation?.isolation === "required",
  };
}

/** The network rules for a machine. Throws for rules that the vendor cannot enforce. */
function networkFor(
  driver: RemoteDriver,
  hosts: RemoteOptions["network"] = [],
): readonly string[] | undefined {
  if (hosts === "any") return undefined;
  const port = hosts.find((host) => /:\d+$/.test(host));
  if (port !== undefined) throw invalid(`${driver.name} has no network rules for ports: ${port}.`);
  const enforcesNetwork =
    driver.network === "hosts" || (driver.network === "all-or-none" && hosts.length === 0);
  if (enforcesNetwork) return hosts;
  throw new KitError({
    code: "invalid_request",
    message:
      driver.network === undefined
        ? `${driver.name} has no network rules: its machines can reach every host.`
        : `${driver.name} has no network rules for single hosts.`,
    hint: 'Set the option network to "any" to allow every host.',
  });
}

/** The limit for models and strings; `download` reads larger files. */
const maxReadBytes = 16 * 1024 * 1024;
const maxDownloadBytes = 1024 * 1024 * 1024;
/** Creates a sandbox on a session's machine, which the first call starts. */
function createRemoteSandbox(
  options: Pick<RemoteView, "link" | "name" | "persistent" | "requiresWall">,
): Sandbox {
  return viewFrom(toView(options));
}

/** The view of a machine's workspace from its root. */
function toView(options: Pick<RemoteView, "link" | "name" | "persistent" | "requiresWall">): RemoteView {
  return { ...options, cwd: "", closing: new AbortController(), running: new Set() };
}

function viewFrom(view: RemoteView): Sandbox {
  const { link, closing, running } = view;
  const read = (path: string, maxBytes: number): Promise<Buffer> => readFrom(view, path, maxBytes);
  const write = (path: string, content: string | Uint8Array): Promise<void> =>
    writeTo(view, path, { content: Buffer.from(content) });
  return {
    name: view.name,
    capabilities: { exec: true, literalExec: true, persistent: view.persistent },
    cwd: view.cwd,
    isolation: async () => isolationBy(view.name, (await link.open()).wall),
    async resolve(path, options) {
      const inside = pathIn(view, path);
      if (inside === "") return "";
      const script = options?.keepLink === true ? scripts.resolveEntry : scripts.resolve;
      return await runOnPath(view, inside, { script });
    },
    stat: async (path) => toStat(await runOnPath(view, pathIn(view, path), { script: scripts.stat })),
    exists: async (path) =>
      (await runOnPath(view, pathIn(view, path), { script: scripts.exists })).trim() === "1",
    list: async (path = "") => toEntries(await runOnPath(view, pathIn(view, path), { script: scripts.list })),
    readFile: async (path) => (await read(path, maxReadBytes)).toString("utf8"),
    readBytes: async (path) => new Uint8Array(await read(path, maxReadBytes)),
    writeFile: write,
    writeBytes: write,
    async mkdir(path) {
      await runOnPath(view, pathIn(view, path), { script: scripts.mkdir });
    },
    async rm(path, options) {
      const inside = pathIn(view, path);
      if (inside === "") throw forbidden("The workspace itself cannot be removed.");
      const args = [options?.recursive === true ? "1" : "0"];
      await runOnPath(view, inside, { script: scripts.remove, args, repeatable: false });
    },
    async edit(path, change) {
      const bytes = await read(path, maxReadBytes);
      const { text, replacements } = replaceText(bytes, change, pathIn(view, path));
      await writeTo(view, path, { content: Buffer.from(text), expected: hash("sha256", bytes) });
      return { replacements };
    },
    grep: (request) => grepRemotely(view, request),
    glob: (pattern, options) => globRemotely(view, pattern, options ?? {}),
    exec(request) {
      const command = execRemotely(view, request).finally(() => running.delete(command));
      running.add(command);
      return command;
    },
    upload: write,
    download: async (path) => new Uint8Array(await read(path, maxDownloadBytes)),
    at: (folder) => viewFrom({ ...view, cwd: pathIn(view, folder) }),
    async close() {
      closing.abort();
      await Promise.allSettled(running);
      await link.pause();
    },
  };
}

async function readFrom(view: RemoteView, path: string, maxBytes: number): Promise<Buffer> {
  const text = await runOnPath(view, pathIn(view, path), { script: scripts.read, args: [String(maxBytes)] });
  return Buffer.from(text, "base64");
}

async function writeTo(
  view: RemoteView,
  path: string,
  { content, expected = "" }: { readonly content: Buffer; readonly expected?: string },
): Promise<void> {
  if (path === "" || path.endsWith("/")) throw invalid("The path to write must name a file, not a folder.");
  await runOnPath(view, pathIn(view, path), {
    ...withInput(scripts.write, content),
    args: [expected, String(content.length)],
    // With `expected`, a retry would find the text that a lost first attempt wrote, and report a conflict.
    repeatable: expected === "",
  });
}

function toStat(text: string): FileStat {
  const [kind = "", size, seconds] = text.trim().split("|");
  return {
    kind: kind === "directory" ? "directory" : kind.startsWith("regular") ? "file" : "other",
    size: Number(size),
    modified_at: new Date(Math.round(Number(seconds) * 1000)).toISOString(),
  };
}

const kinds: Readonly<Record<string, FileStat["kind"]>> = { f: "file", d: "directory", l: "link" };

function toEntries(text: string): readonly DirectoryEntry[] {
  return namesOf(Buffer.from(text, "base64"))
    .map((entry): DirectoryEntry => ({ name: entry.slice(1), kind: kinds[entry.charAt(0)] ?? "other" }))
    .sort((entry, other) => (entry.name < other.name ? -1 : 1));
}
