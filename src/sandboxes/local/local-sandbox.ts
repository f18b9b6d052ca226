import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import type { SandboxFactory } from "../contract.ts";
import type { LocalOptions } from "./open-local.ts";

/**
 * The real folder, which every session shares; its commands run as this process's user. Paths cannot
 * leave the folder, but a command can do all that its user may: grant commands with that in mind.
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
      // A sandbox's code is loaded when the first one is opened, not when kit is imported.
      const { openLocal } = await import("./open-local.ts");
      return await openLocal(options, context);
    },
    locate({ project_root }) {
      try {
        const folder = realpathSync.native(resolve(options.root ?? project_root ?? process.cwd()));
        return { folder, shared: true };
      } catch {
        // The caller that opens it is told what is wrong with it.
        return undefined;
      }
    },
  };
}
