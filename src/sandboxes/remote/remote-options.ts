import type { SandboxIsolation } from "../contract.ts";

/** Options of every remote sandbox. */
export interface RemoteOptions {
  /** The vendor's key; default: its variable of the environment. */
  readonly apiKey?: string;
  /**
   * The files of the project that a new machine gets, by the state of Git: files that are tracked or new, as they are now;
   * none that Git ignores, and none that hold secrets. `true` for the repository, or a folder of it. Default: nothing.
   */
  readonly upload?: boolean | string;
  /** Files of a new workspace, by path. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** Variables that all commands find: nothing secret, as they are kept with the machine. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Hosts that the machine may reach; default: those of the agent's `allowNetwork`, else none. `"any"` closes nothing.
   * Where the vendor has no such rules, opening the sandbox fails unless it is `"any"`.
   */
  readonly network?: readonly string[] | "any";
  /** How long nothing happens before the machine is paused, in milliseconds; default 300,000. */
  readonly idleMs?: number;
  /** The workspace on the machine, absolute; each vendor has a default. */
  readonly folder?: string;
  /**
   * The name by which the machines of this project are told from others of the same account; default: one that is
   * made and kept in `.kit/machines`. Set it where that folder does not last.
   */
  readonly project?: string;
}

/** The isolation on a machine that has that program to keep files from commands. */
export function isolationBy(name: string, wall: string): SandboxIsolation {
  if (wall !== "") {
    return {
      wall: "remote",
      description: `Commands run on a separate machine (${name}), where they can write only to the paths that they are granted; the machine decides what they can reach in the network.`,
    };
  }
  return {
    wall: "none",
    description: `Commands run on a separate machine (${name}), where they can write everything that its user may write.`,
    hint: "To protect files from commands, use an image whose user may run 'unshare' and 'mount' (root, or user namespaces).",
  };
}
