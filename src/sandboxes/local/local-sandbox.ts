import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import type { SandboxFactory } from "../contract.ts";
import type { LocalOptions } from "./open-local.ts";

/**
 * A sandbox in a real folder that all sessions share; commands run as the user of this process. File calls cannot
 * leave the folder, but without isolation a command can do everything that the user can: allow commands with care.
 *
 * @example
 * import { createAgent } from "kit";
 * import { local } from "kit/sandboxes/local";
 *
 * export default createAgent(() => ({ instructions: "Fix the tests.", sandbox: local() }));
 */
export function local(options: LocalOptions = {}): SandboxFactory {
  return {
    name: "local",
    async isolation(owner) {
      const { isolationOf, mergeIsolation } = await import("../host/wall/find-wall.ts");
      return await isolationOf(mergeIsolation(options, owner.isolation));
    },
    async open(context) {
      context.signal?.throwIfAborted();
      // Load the code when the first sandbox is opened, not when kit is imported.
      const { openLocal } = await import("./open-local.ts");
      return await openLocal(options, context);
    },
    locate({ project_root }) {
      try {
        const folder = realpathSync.native(resolve(options.root ?? project_root ?? process.cwd()));
        return { folder, shared: true };
      } catch {
        // `open` reports the error.
        return undefined;
      }
    },
  };
}
