import { KitError } from "../../base/kit-error.ts";
import type { MachineInfo, MachineSpec, RemoteDriver, RemoteMachine } from "../remote/driver.ts";
import { loadSdk } from "../remote/load-sdk.ts";
import { remoteError } from "../remote/remote-error.ts";
import type { RunloopOptions } from "./runloop-options.ts";
import { policyFor } from "./runloop-policy.ts";
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
/** States of a machine that is there; the vendor lists those that ended as well, of all time. */
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

/** The primitives of Runloop. `root`: the project whose package of the vendor is taken. */
export function createRunloopDriver(options: RunloopOptions, root: string): RemoteDriver {
  let loading: Promise<Client> | undefined;
  const load = async (): Promise<Client> => {
    const { default: sdk } = await loadSdk<{ readonly default: RunloopSdk }>("@runloop/api-client", root);
    const { apiKey, apiUrl, requestTimeoutMs = 60_000 } = options;
    try {
      const client = new sdk.Runloop({
        ...(apiKey === undefined ? {} : { bearerToken: apiKey }),
        ...(apiUrl === undefined ? {} : { baseURL: apiUrl }),
        timeout: requestTimeoutMs,
        // The package would send what makes a machine, or runs a command, a second time.
        maxRetries: 0,
        // Its pool for HTTP/2 wants TLS, which an interface of one's own may not have.
        http2: false,
      });
      return { sdk, client };
    } catch (cause) {
      throw remoteError(vendor, "key", { cause, hint: keyHint });
    }
  };
  const asking = async <Value>(work: (client: Client) => Promise<Value>): Promise<Value> => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    const client = await loading;
    try {
      return await work(client);
    } catch (error) {
      throw error instanceof KitError ? error : toRemote(client.sdk, error);
    }
  };
  return {
    name: vendor,
    folder: options.folder ?? "/home/user/workspace",
    network: "hosts",
    create: (spec) => asking((client) => create(client, options, spec)),
    attach: (id) => asking((client) => attach(client, id)),
    pause: (id) =>
      asking(async ({ client }) => {
        await client.devboxes.suspend(id);
      }),
    destroy: (id) =>
      asking(async ({ sdk, client }) => {
        try {
          await client.devboxes.shutdown(id);
        } catch (error) {
          if (reasonFor(sdk, error) !== "gone") throw error;
        }
      }),
    list: (labels) => asking(({ client }) => list(client, labels)),
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
      ...(size === undefined ? {} : { resource_size_request: size }),
      ...(policy === undefined ? {} : { network_policy_id: policy }),
    },
  });
  try {
    await client.devboxes.awaitRunning(id, { longPoll: { timeoutMs: startTimeoutMs } });
  } catch (error) {
    // A machine that kit does not know would cost money for nothing.
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
  const found = new Map<string, MachineInfo>();
  const awaitStatus = async (status: (typeof liveStates)[number]): Promise<void> => {
    const rests = status === "suspended" || status === "suspending";
    for await (const { id, metadata, create_time_ms } of client.devboxes.list({ status, limit: 100 })) {
      // The vendor cannot look for labels by itself.
      if (Object.entries(labels).some(([name, value]) => metadata[name] !== value)) continue;
      const created_at = new Date(create_time_ms).toISOString();
      found.set(id, { id, state: rests ? "paused" : "running", labels: metadata, created_at });
    }
  };
  await Promise.all(liveStates.map(awaitStatus));
  return [...found.values()];
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
