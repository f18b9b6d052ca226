import { createHash } from "node:crypto";
import { defined } from "../../base/record.ts";
import {
  hasLabels,
  type MachineInfo,
  type MachineSpec,
  type RemoteDriver,
  type RemoteMachine,
} from "../remote/driver.ts";
import { atVendor, loadSdk } from "../remote/load-vendor-sdk.ts";
import { remoteError } from "../remote/remote-error.ts";
import type { RunloopOptions } from "./runloop-options.ts";
import {
  keyHint,
  type RunloopClient,
  type RunloopSdk,
  reasonFor,
  runOnDevbox,
  toRemote,
  vendor,
} from "./runloop-run.ts";

const startTimeoutMs = 120_000;
/** States of machines that exist. Without a filter the vendor also lists all machines that ever ended. */
const liveStates = [
  "running",
  "suspended",
  "suspending",
  "resuming",
  "initializing",
  "provisioning",
  "queued",
  "scheduled",
] as const;

interface Client {
  readonly sdk: RunloopSdk;
  readonly client: RunloopClient;
}

/** Creates the driver of Runloop with the vendor's package of the project at `root`. */
export function createRunloopDriver(options: RunloopOptions, root: string): RemoteDriver {
  const load = async (): Promise<Client> => {
    const { default: sdk } = await loadSdk<{ readonly default: RunloopSdk }>("@runloop/api-client", root);
    const { apiKey, apiUrl, requestTimeoutMs = 60_000 } = options;
    try {
      const client = new sdk.Runloop({
        ...defined({ bearerToken: apiKey, baseURL: apiUrl }),
        timeout: requestTimeoutMs,
        // A retry by the package could create a second machine, or run a command twice.
        maxRetries: 0,
        // The package's HTTP/2 pool needs TLS, which a custom address may lack.
        http2: false,
      });
      return { sdk, client };
    } catch (cause) {
      throw remoteError(vendor, "key", { cause, hint: keyHint });
    }
  };
  const withClient = atVendor(load, ({ sdk }, error) => toRemote(sdk, error));
  return {
    name: vendor,
    folder: options.folder ?? "/home/user/workspace",
    network: "hosts",
    create: (spec) => withClient((client) => create(client, options, spec)),
    attach: (id) => withClient((client) => attach(client, id)),
    pause: (id) =>
      withClient(async ({ client }) => {
        await client.devboxes.suspend(id);
      }),
    destroy: (id) =>
      withClient(async ({ sdk, client }) => {
        try {
          await client.devboxes.shutdown(id);
        } catch (error) {
          if (reasonFor(sdk, error) !== "gone") throw error;
        }
      }),
    list: (labels) => withClient(({ client }) => list(client, labels)),
  };
}

async function create(
  { sdk, client }: Client,
  { blueprint, size }: RunloopOptions,
  { labels, env, network, aliveMs }: MachineSpec,
): Promise<RemoteMachine> {
  const idle = { idle_time_seconds: Math.ceil(aliveMs / 1_000), on_idle: "suspend" } as const;
  const policy = network === undefined ? undefined : await policyFor({ sdk, client }, network);
  const { id } = await client.devboxes.create({
    name: `kit-${labels.kit_agent ?? ""}`,
    metadata: { ...labels },
    environment_variables: { ...env },
    ...(blueprint === undefined ? {} : { blueprint_name: blueprint }),
    launch_parameters: {
      lifecycle: { after_idle: idle },
      ...defined({ resource_size_request: size, network_policy_id: policy }),
    },
  });
  try {
    await client.devboxes.awaitRunning(id, { longPoll: { timeoutMs: startTimeoutMs } });
  } catch (error) {
    // No session would use the machine, and it would cost money.
    await client.devboxes.shutdown(id).catch(() => undefined);
    throw error;
  }
  return toMachine({ sdk, client }, id);
}

async function attach({ sdk, client }: Client, id: string): Promise<RemoteMachine> {
  const waiting = { longPoll: { timeoutMs: startTimeoutMs } };
  const { status } = await client.devboxes.retrieve(id);
  if (status === "failure" || status === "shutdown") throw remoteError(vendor, "gone");
  if (status === "suspending") await client.devboxes.awaitSuspended(id, waiting);
  if (status === "suspending" || status === "suspended") await client.devboxes.resume(id);
  if (status !== "running") await client.devboxes.awaitRunning(id, waiting);
  return toMachine({ sdk, client }, id);
}

async function list(
  client: RunloopClient,
  labels: Readonly<Record<string, string>>,
): Promise<readonly MachineInfo[]> {
  const machinesById = new Map<string, MachineInfo>();
  const listByStatus = async (status: (typeof liveStates)[number]): Promise<void> => {
    const isPaused = status === "suspended" || status === "suspending";
    for await (const { id, metadata, create_time_ms } of client.devboxes.list({ status, limit: 100 })) {
      if (!hasLabels({ labels: metadata }, labels)) continue;
      const created_at = new Date(create_time_ms).toISOString();
      machinesById.set(id, { id, state: isPaused ? "paused" : "running", labels: metadata, created_at });
    }
  };
  await Promise.all(liveStates.map(listByStatus));
  return [...machinesById.values()];
}

function toMachine({ sdk, client }: Client, id: string): RemoteMachine {
  return {
    id,
    run: (request) => runOnDevbox({ sdk, client, id }, request),
    async keepAlive() {
      try {
        await client.devboxes.keepAlive(id);
      } catch (error) {
        throw toRemote(sdk, error);
      }
    },
  };
}

/**
 * Returns the id of a network policy that lets a machine reach only these hosts. At this vendor, policies belong to
 * the account: kit creates one for each list of hosts, and all machines with that list share it.
 */
async function policyFor(
  { sdk, client }: { readonly sdk: RunloopSdk; readonly client: RunloopClient },
  network: readonly string[],
): Promise<string> {
  const hosts = [...new Set(network)].sort();
  const name = `kit-${createHash("sha256").update(JSON.stringify(hosts)).digest("hex").slice(0, 24)}`;
  const existing = await findPolicy(client, name, hosts);
  if (existing !== undefined) return existing;
  try {
    const { id } = await client.networkPolicies.create({
      name,
      description: hosts.length === 0 ? "kit: no network" : `kit: ${hosts.join(", ")}`.slice(0, 200),
      allow_all: false,
      allowed_hostnames: hosts,
    });
    return id;
  } catch (error) {
    // Names are unique: another process may have created the policy meanwhile.
    const createdMeanwhile =
      error instanceof sdk.APIError ? await findPolicy(client, name, hosts) : undefined;
    if (createdMeanwhile === undefined) throw error;
    return createdMeanwhile;
  }
}

async function findPolicy(
  client: RunloopClient,
  name: string,
  hosts: readonly string[],
): Promise<string | undefined> {
  // The vendor also returns policies whose name only contains `name`.
  for await (const { id, name: foundName, egress } of client.networkPolicies.list({ name })) {
    if (foundName !== name) continue;
    const { allow_all, allow_devbox_to_devbox, allowed_cidrs, allowed_hostnames } = egress;
    const isClosed = !allow_all && !allow_devbox_to_devbox && (allowed_cidrs ?? []).length === 0;
    const allowed = [...(allowed_hostnames ?? [])].sort();
    if (isClosed && allowed.length === hosts.length && allowed.every((host, at) => host === hosts[at]))
      return id;
    const hint = `The network policy ${name} was changed at the vendor. Remove it there, and kit will create it again.`;
    throw remoteError(vendor, "refused", { hint });
  }
  return undefined;
}
