import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import type { WorkspaceStore } from "../../../protocol/workspace-store.ts";
import { InMemorySessionStore } from "../../../stores/memory/memory-store.ts";
import type { SandboxFactory } from "../../contract.ts";
import { virtual } from "../../virtual/virtual-sandbox.ts";
import { persistWorkspaces } from "../persistent-sandbox.ts";

/** The session whose workspace the machines share. */
export const owner = { agent: "writer", instance_id: "pr-7", session: "default" };

/** Machines that persist workspaces in one store. Each test gets a new store and new folders. */
export interface Machines {
  /** Contains the folders of all machines. */
  root: string;
  store: WorkspaceStore;
  /** The sandbox of one machine. */
  machine(name: string, maxBytes?: number): SandboxFactory;
  /** The folder of a session's workspace on a machine. */
  folderOf(name: string, key?: typeof owner): string;
}

export function openMachines(): Machines {
  const machines: Machines = {
    root: "",
    store: new InMemorySessionStore().workspaces,
    machine: (name, maxBytes = 10_000_000) =>
      persistWorkspaces(virtual({ folder: join(machines.root, name), isolation: "off" }), {
        store: machines.store,
        maxBytes,
      }),
    folderOf: (name, key = owner) =>
      String(virtual({ folder: join(machines.root, name) }).locate?.(key)?.folder),
  };
  beforeEach(() => {
    machines.root = realpathSync(mkdtempSync(join(tmpdir(), "kit-persist-")));
    machines.store = new InMemorySessionStore().workspaces;
  });
  afterEach(() => rmSync(machines.root, { recursive: true, force: true }));
  return machines;
}
