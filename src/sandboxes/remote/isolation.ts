import type { SandboxIsolation } from "../contract.ts";

/** What keeps commands to their access on a machine where files can be kept from them by that program. */
export function isolationBy(name: string, wall: string): SandboxIsolation {
  if (wall !== "") {
    return {
      wall: "remote",
      description: `Commands run on a machine of their own (${name}), which keeps them to what they may write; the network is the machine's.`,
    };
  }
  return {
    wall: "none",
    description: `Commands run on a machine of their own (${name}), where they can write whatever its user may.`,
    hint: "An image whose user may use 'unshare' and 'mount' (root, or user namespaces) can keep files from commands.",
  };
}
