import { existsSync } from "node:fs";
import { join } from "node:path";
import type { SandboxFactory, SandboxOwner, WorkspaceLocation } from "../contract.ts";
import { workspaceName } from "../host/workspace-name.ts";
import { folderOfAll, type VirtualOptions } from "./virtual-options.ts";

/**
 * A separate workspace for every agent, instance and session, kept until `remove`. File calls cannot leave it.
 * Commands run as the user of this process, with their own home folder and without this process's environment;
 * without isolation a command can do everything that the user can: allow commands with care.
 *
 * @example
 * import { createAgent } from "kit";
 * import { virtual } from "kit/sandboxes/virtual";
 *
 * export default createAgent(() => ({ instructions: "Draft a report.", sandbox: virtual() }));
 */
export function virtual(options: VirtualOptions = {}): SandboxFactory {
  // Every session asks for the folder above its workspace, usually of the same project.
  let last: { readonly root: string; readonly above: string } | undefined;
  const aboveOf = (owner: SandboxOwner): string => {
    const { project_root: root } = owner;
    if (root === undefined) return folderOfAll(options, owner);
    if (last?.root !== root) last = { root, above: folderOfAll(options, owner) };
    return last.above;
  };
  return {
    name: "virtual",
    async isolation(owner) {
      const { isolationOf, mergeIsolation } = await import("../host/wall/find-wall.ts");
      return await isolationOf(mergeIsolation(options, owner.isolation));
    },
    async open(context) {
      context.signal?.throwIfAborted();
      // Load the code when the first sandbox is opened, not when kit is imported.
      const { openVirtual } = await import("./open-virtual.ts");
      return await openVirtual(options, context);
    },
    locate(owner) {
      const location = new OwnFolder(aboveOf(owner), owner);
      // With `files`, a workspace that does not exist yet would look empty.
      const isBare = options.files === undefined || Object.keys(options.files).length === 0;
      return isBare || existsSync(location.folder) ? location : undefined;
    },
    async remove(owner) {
      const { removeVirtual } = await import("./open-virtual.ts");
      await removeVirtual(options, owner);
    },
  };
}

/** Most sessions never use their workspace, so its name, a hash, is computed on first use. */
class OwnFolder implements WorkspaceLocation {
  readonly shared = false;
  readonly above: string;
  readonly #owner: SandboxOwner;
  #folder: string | undefined;

  constructor(above: string, owner: SandboxOwner) {
    this.above = above;
    this.#owner = owner;
  }

  get folder(): string {
    this.#folder ??= join(this.above, workspaceName(this.#owner));
    return this.#folder;
  }
}
