import type { SandboxIsolation } from "../contract.ts";

/** Options of every remote sandbox. */
export interface RemoteOptions {
  /** The vendor's key; default: the vendor's environment variable. */
  readonly apiKey?: string;
  /**
   * The files of the project to copy to a new machine: `true` for the whole repository, or a folder of it. Copies
   * tracked and new files in their current state, without files that Git ignores or that hold secrets. Default: none.
   */
  readonly upload?: boolean | string;
  /** Files of a new workspace, by path. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** Variables for all commands. Not for secrets, because the vendor stores them with the machine. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Hosts that the machine may reach; default: the agent's `allowNetwork`, otherwise none. `"any"` allows all hosts.
   * If the vendor has no such rules, opening the sandbox fails unless this is `"any"`.
   */
  readonly network?: readonly string[] | "any";
  /** Milliseconds without a call after which the machine is paused; default 300,000. */
  readonly idleMs?: number;
  /** The absolute path of the workspace on the machine; the default depends on the vendor. */
  readonly folder?: string;
  /**
   * The id that labels the machines of this project, unique in the vendor's account; default: generated and stored in
   * `.kit/machines`. Set it if that folder is not kept.
   */
  readonly project?: string;
}

/** The isolation of a machine; `wall` is the machine's program that makes paths read-only, or "". */
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
