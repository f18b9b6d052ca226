import { join } from "node:path";
import type { SandboxFactory } from "../contract.ts";
import type { RemoteDriver } from "./driver.ts";
import { isolationBy, type RemoteOptions } from "./remote-options.ts";

/**
 * Creates the sandboxes of one vendor. Opening one sends no request: the first call that needs the machine starts
 * it. `driverAt` loads the vendor's driver with the package of the project at `root`.
 */
export function createRemoteFactory(
  name: string,
  options: RemoteOptions,
  driverAt: (root: string) => Promise<RemoteDriver>,
): SandboxFactory {
  // Load the code when the first sandbox is opened, not when kit is imported.
  const load = async () => await import("./open-remote.ts");
  return {
    name,
    isolation: async () => isolationBy(name, "unshare"),
    async open(context) {
      context.signal?.throwIfAborted();
      const { openRemote } = await load();
      return await openRemote({ options, driverAt }, context);
    },
    locate({ project_root }) {
      // A machine starts with the project's files; only its open sandbox can read their current state.
      const folder = project_root ?? process.cwd();
      const hasProject = options.upload === true || typeof options.upload === "string";
      return hasProject
        ? { folder, shared: true }
        : { folder, shared: false, above: join(folder, ".kit", "machines", "none") };
    },
    async remove(owner) {
      const { removeRemote } = await load();
      await removeRemote({ options, driverAt }, owner);
    },
    async machines(root) {
      const { openMachines } = await load();
      return await openMachines({ options, driverAt }, root);
    },
  };
}
