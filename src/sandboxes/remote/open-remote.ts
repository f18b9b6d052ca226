import { KitError } from "../../base/kit-error.ts";
import { invalid } from "../../files/obstacle.ts";
import type { Sandbox, SandboxMachines, SandboxOwner } from "../contract.ts";
import { applyChanges, readChanges } from "./changes.ts";
import type { RemoteDriver } from "./driver.ts";
import { createMachineLink, labelsOf } from "./machine-link.ts";
import { createMachineRecords, type MachineRecords } from "./records.ts";
import type { RemoteOptions } from "./remote-options.ts";
import { createRemoteSandbox, toView } from "./remote-sandbox.ts";
import { seedMachine } from "./seed.ts";

const defaultIdleMs = 300_000;

export interface Remote {
  readonly options: RemoteOptions;
  readonly driverAt: (root: string) => Promise<RemoteDriver>;
}

/** The sandbox of a session, whose machine is started when it is needed. Throws where its rules cannot be kept. */
export async function openRemote(remote: Remote, owner: SandboxOwner): Promise<Sandbox> {
  return createRemoteSandbox(await linkOf(remote, owner));
}

/** Removes the machine of a session. */
export async function removeRemote(remote: Remote, owner: SandboxOwner): Promise<void> {
  const root = rootOf(owner);
  const records = recordsOf(remote, await remote.driverAt(root), root);
  // A project that never made a machine needs no request to the vendor.
  if (remote.options.project === undefined && !(await records.isUsed())) return;
  const driver = await remote.driverAt(root);
  const known = await records.read(owner);
  if (known !== undefined) await driver.destroy(known);
  const labels = labelsOf(await records.project(), owner);
  for (const { id } of await driver.list(labels)) await driver.destroy(id);
  await records.remove(owner);
}

/** The machines of a project. */
export async function openMachines(remote: Remote, root: string): Promise<SandboxMachines> {
  const driver = await remote.driverAt(root);
  const records = recordsOf(remote, driver, root);
  const all = async () => {
    // A project that has no name yet has made no machine, and looking does not give it one.
    if (remote.options.project === undefined && !(await records.isUsed())) return [];
    return await driver.list({ kit_project: await records.project() });
  };
  return {
    async list() {
      const found = await all();
      return await Promise.all(
        found.map(async ({ id, state, labels, created_at }) => ({
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
      const found = (await all()).find((machine) => machine.id === id);
      if (found === undefined)
        throw new KitError({ code: "not_found", message: `This project has no machine ${id}.` });
      await driver.destroy(id);
      const { kit_agent: agent, kit_instance: instance_id, kit_session: session } = found.labels;
      if (agent === undefined || instance_id === undefined || session === undefined) return;
      const owner = { agent, instance_id, session };
      if ((await records.read(owner)) === id) await records.remove(owner);
    },
    apply: (changes) => applyChanges(root, changes),
    async changes(owner) {
      const [machine] = await driver.list(labelsOf(await records.project(), owner));
      if (machine === undefined) throw noMachine(owner);
      const parts = await linkOf(remote, { ...owner, project_root: root });
      try {
        return await readChanges(toView(parts));
      } finally {
        // One that runs is at work for the session, and rests when that has nothing to do.
        if (machine.state === "paused") await parts.link.rest();
      }
    },
  };
}

function noMachine({ agent, instance_id, session }: SandboxOwner): KitError {
  return new KitError({
    code: "not_found",
    message: `The session ${session} of ${agent}/${instance_id} has no machine.`,
    hint: "'kit sandboxes list' shows those of this project.",
  });
}

const rootOf = (owner: SandboxOwner): string => owner.project_root ?? process.cwd();

const recordsOf = (remote: Remote, driver: RemoteDriver, root: string): MachineRecords =>
  createMachineRecords(root, driver.name, remote.options.project);

async function linkOf(remote: Remote, owner: SandboxOwner) {
  const { options } = remote;
  const driver = await remote.driverAt(rootOf(owner));
  const link = createMachineLink({
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
  asked: RemoteOptions["network"] = [],
): readonly string[] | undefined {
  if (asked === "any") return undefined;
  const port = asked.find((host) => /:\d+$/.test(host));
  if (port !== undefined) throw invalid(`${driver.name} has no network rules for ports: ${port}.`);
  const enforcesNetwork =
    driver.network === "hosts" || (driver.network === "all-or-none" && asked.length === 0);
  if (enforcesNetwork) return asked;
  throw new KitError({
    code: "invalid_request",
    message:
      driver.network === undefined
        ? `${driver.name} has no network rules: its machines can reach every host.`
        : `${driver.name} has no network rules for single hosts.`,
    hint: 'Set network to "any" if that is what you want.',
  });
}
