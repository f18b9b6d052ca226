import { createHash } from "node:crypto";
import { remoteError } from "../remote/remote-error.ts";
import { type RunloopClient, type RunloopSdk, vendor } from "./runloop-run.ts";

/**
 * The id of the account's network policy that lets a machine reach these hosts and nothing else. The vendor keeps
 * policies apart from machines: one for each list of hosts is made once, and shared by all machines that have it.
 */
export async function policyFor(
  { sdk, client }: { readonly sdk: RunloopSdk; readonly client: RunloopClient },
  network: readonly string[],
): Promise<string> {
  const hosts = [...new Set(network)].sort();
  const name = `kit-${createHash("sha256").update(JSON.stringify(hosts)).digest("hex").slice(0, 24)}`;
  const known = await find(client, name, hosts);
  if (known !== undefined) return known;
  try {
    const { id } = await client.networkPolicies.create({
      name,
      description: hosts.length === 0 ? "kit: no network" : `kit: ${hosts.join(", ")}`.slice(0, 200),
      allow_all: false,
      allowed_hostnames: hosts,
    });
    return id;
  } catch (error) {
    // Another process may have made it meanwhile: names are unique.
    const made = error instanceof sdk.APIError ? await find(client, name, hosts) : undefined;
    if (made === undefined) throw error;
    return made;
  }
}

async function find(
  client: RunloopClient,
  name: string,
  hosts: readonly string[],
): Promise<string | undefined> {
  // The vendor takes parts of names as well.
  for await (const { id, name: called, egress } of client.networkPolicies.list({ name })) {
    if (called !== name) continue;
    const { allow_all, allow_devbox_to_devbox, allowed_cidrs, allowed_hostnames } = egress;
    const isClosed = !allow_all && !allow_devbox_to_devbox && (allowed_cidrs ?? []).length === 0;
    const lets = [...(allowed_hostnames ?? [])].sort();
    if (isClosed && lets.length === hosts.length && lets.every((host, at) => host === hosts[at])) return id;
    const hint = `The network policy ${name} was changed at the vendor: remove it there, and kit makes it again.`;
    throw remoteError(vendor, "refused", { hint });
  }
  return undefined;
}
