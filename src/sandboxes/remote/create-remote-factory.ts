import { KitError } from "../../base/kit-error.ts";
import type { Sandbox, SandboxFactory, SandboxOwner } from "../contract.ts";
import type { RemoteDriver } from "./driver.ts";
import { createMachineLink, labelsOf } from "./machine-link.ts";
import { createMachineRecords, type MachineRecords } from "./records.ts";
import type { RemoteOptions } from "./remote-options.ts";
import { createRemoteSandbox, isolationBy } from "./remote-sandbox.ts";

const defaultIdleMs = 300_000;

/** The sandboxes of one vendor. Opening one talks to nobody: the first call that needs the machine starts it. */
export function createRemoteFactory(
  options: RemoteOptions,
  driverOf: (root: string) => RemoteDriver,
): SandboxFactory {
  const rootOf = (owner: SandboxOwner): string => owner.project_root ?? process.cwd();
  const parts = new Map<string, { readonly driver: RemoteDriver; readonly records: MachineRecords }>();
  const at = (root: string) => {
    const known = parts.get(root);
    if (known !== undefined) return known;
    const driver = driverOf(root);
    const made = { driver, records: createMachineRecords(root, driver.name, options.project) };
    parts.set(root, made);
    return made;
  };
  const { name } = driverOf(process.cwd());
  return {
    name,
    isolation: async () => isolationBy(name, "unshare"),
    async open(owner): Promise<Sandbox> {
      owner.signal?.throwIfAborted();
      const { driver, records } = at(rootOf(owner));
      const link = createMachineLink({
        driver,
        records,
        owner,
        env: options.env ?? {},
        network: networkFor(driver, options.network),
        idleMs: options.idleMs ?? defaultIdleMs,
        async seed() {
          // Nothing of the project unless it is asked for.
        },
      });
      return createRemoteSandbox({ name, link, persistent: driver.pause !== undefined });
    },
    async remove(owner) {
      const { driver, records } = at(rootOf(owner));
      // Where no machine was ever made, nobody is asked.
      if (options.project === undefined && !(await records.isUsed())) return;
      const known = await records.read(owner);
      if (known !== undefined) await driver.destroy(known);
      for (const { id } of await driver.list(labelsOf(await records.project(), owner)))
        await driver.destroy(id);
      await records.remove(owner);
    },
  };
}

/** The rules for a machine. Throws where somebody counts on rules that the vendor does not have. */
function networkFor(
  driver: RemoteDriver,
  asked: RemoteOptions["network"] = [],
): readonly string[] | undefined {
  if (asked === "any") return undefined;
  const keeps = driver.network === "hosts" || (driver.network === "all-or-none" && asked.length === 0);
  if (keeps) return asked;
  throw new KitError({
    code: "invalid_request",
    message:
      driver.network === undefined
        ? `${driver.name} has no network rules: a machine reaches whatever it likes.`
        : `${driver.name} has no network rules for single hosts.`,
    hint: 'Set network to "any" if that is what you want.',
  });
}
