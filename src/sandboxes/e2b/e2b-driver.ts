import { defined } from "../../base/record.ts";
import {
  hasLabels,
  type MachineInfo,
  type MachineSpec,
  type RemoteDriver,
  type RemoteMachine,
  type RemoteRun,
  shellLine,
} from "../remote/driver.ts";
import { atVendor, loadSdk } from "../remote/load-vendor-sdk.ts";
import { type RemoteReason, reasonOf, remoteError, wasNotSent } from "../remote/remote-error.ts";
import type { RemoteOptions } from "../remote/remote-options.ts";

type Sdk = typeof import("e2b");
type Machine = InstanceType<Sdk["Sandbox"]>;

const vendor = "e2b";
/** Characters per message of standard input; the vendor documents no limit. */
const inputChunk = 1024 * 1024;

/** Creates the driver of E2B with the vendor's package of the project at `root`. */
export function createE2bDriver(options: E2bOptions, root: string): RemoteDriver {
  const { apiKey, domain, apiUrl, sandboxUrl, requestTimeoutMs = 60_000 } = options;
  const connection = { ...defined({ apiKey, domain, apiUrl, sandboxUrl }), requestTimeoutMs };
  const withSdk = atVendor(() => loadSdk<Sdk>("e2b", root), toRemote);
  return {
    name: vendor,
    folder: options.folder ?? "/home/user/workspace",
    network: "hosts",
    create: (spec) =>
      withSdk(async (sdk) => {
        const machine = await sdk.Sandbox.create(options.template ?? "base", {
          ...connection,
          ...limitsOf(spec),
          metadata: { ...spec.labels },
          envs: { ...spec.env },
          timeoutMs: spec.aliveMs,
          lifecycle: { onTimeout: "pause" },
        });
        return toMachine(sdk, machine);
      }),
    attach: (id, { aliveMs }) =>
      withSdk(async (sdk) =>
        toMachine(sdk, await sdk.Sandbox.connect(id, { ...connection, timeoutMs: aliveMs })),
      ),
    async pause(id) {
      await withSdk((sdk) => sdk.Sandbox.pause(id, connection));
    },
    async destroy(id) {
      await withSdk((sdk) => sdk.Sandbox.kill(id, connection));
    },
    list: (labels) =>
      withSdk(async (sdk) => {
        const machines: MachineInfo[] = [];
        const pages = sdk.Sandbox.list({ ...connection, query: { metadata: { ...labels } } });
        while (pages.hasNext) {
          for (const { sandboxId, state, metadata, startedAt } of await pages.nextItems()) {
            if (!hasLabels({ labels: metadata }, labels)) continue;
            machines.push({ id: sandboxId, state, labels: metadata, created_at: startedAt.toISOString() });
          }
        }
        return machines;
      }),
  };
}

function limitsOf({ network }: Pick<MachineSpec, "network">) {
  if (network === undefined) return {};
  if (network.length === 0) return { allowInternetAccess: false };
  return {
    network: {
      allowOut: [...network],
      denyOut: ({ allTraffic }: { readonly allTraffic: string }) => [allTraffic],
    },
  };
}

function toMachine(sdk: Sdk, machine: Machine): RemoteMachine {
  return {
    id: machine.sandboxId,
    run: (request) => run(sdk, machine, request),
    async keepAlive(ms) {
      try {
        await machine.setTimeout(ms);
      } catch (error) {
        throw toRemote(sdk, error);
      }
    },
  };
}

async function run(sdk: Sdk, machine: Machine, request: RemoteRun): Promise<{ readonly exitCode: number }> {
  const { stdin, env, onOutput, signal } = request;
  let started = false;
  try {
    signal?.throwIfAborted();
    const command = await machine.commands.run(shellLine(request.script, request.args), {
      background: true,
      stdin: stdin !== undefined,
      // The script has its own time limit; the vendor's would stop waiting and leave the script running.
      timeoutMs: 0,
      ...(env === undefined ? {} : { envs: { ...env } }),
      ...(signal === undefined ? {} : { signal }),
      onStdout: (text) => onOutput("stdout", text),
      onStderr: (text) => onOutput("stderr", text),
    });
    started = true;
    const feeding = stdin === undefined ? undefined : feed(machine, command.pid, stdin);
    const ended = await command.wait().catch((error: unknown) => {
      if (error instanceof sdk.CommandExitError) return error;
      throw error;
    });
    await feeding;
    return { exitCode: ended.exitCode };
  } catch (error) {
    if (signal?.aborted === true && !started) throw signal.reason;
    if (started) throw lostResult(sdk, error);
    const remote = toRemote(sdk, error);
    // The request may have arrived before the connection broke.
    throw reasonOf(remote) === "unreachable" && !wasNotSent(error)
      ? remoteError(vendor, "lost", { cause: error })
      : remote;
  }
}

/** Sends standard input. A program can end without reading all of it. */
async function feed(machine: Machine, pid: number, text: string): Promise<void> {
  try {
    for (let at = 0; at < text.length; at += inputChunk)
      await machine.commands.sendStdin(pid, text.slice(at, at + inputChunk));
    await machine.commands.closeStdin(pid);
  } catch {
    // If the connection is lost, waiting for the command fails too.
  }
}

/** The error for a started script whose result was not received. */
function lostResult(sdk: Sdk, cause: unknown): Error {
  return reasonFor(sdk, cause) === "busy"
    ? remoteError(vendor, "busy", { cause })
    : remoteError(vendor, "lost", { cause });
}

function toRemote(sdk: Sdk, error: unknown): Error {
  const reason = reasonFor(sdk, error);
  return remoteError(vendor, reason, {
    cause: error,
    ...(reason === "key" ? { hint: "Set E2B_API_KEY." } : {}),
  });
}

function reasonFor(sdk: Sdk, error: unknown): RemoteReason {
  const text = error instanceof Error ? error.message : "";
  const status = error instanceof sdk.SandboxError ? error.statusCode : undefined;
  if (error instanceof sdk.AuthenticationError) return "key";
  if (error instanceof sdk.RateLimitError)
    return /concurrent|quota|maximum number|limit of/i.test(text) ? "quota" : "busy";
  if (error instanceof sdk.ServiceBusyError) return "unreachable";
  if (error instanceof sdk.SandboxNotFoundError)
    return /probably not running/.test(text) ? "detached" : "gone";
  // A paused machine answers with this error.
  if (error instanceof sdk.TimeoutError)
    return /not found|timeout|unavailable|killed/i.test(text) ? "detached" : "unreachable";
  if (status === 402 || (status === 403 && /quota|limit|plan/i.test(text))) return "quota";
  if (status === 403) return "key";
  if (error instanceof sdk.InvalidArgumentError || (status !== undefined && status >= 400 && status < 500))
    return "refused";
  return "unreachable";
}

export interface E2bOptions extends RemoteOptions {
  /** The template for new machines; default "base". */
  readonly template?: string;
  /** The domain of a self-hosted installation; default: the vendor's. */
  readonly domain?: string;
  /** The address of the API; default: derived from `domain`. */
  readonly apiUrl?: string;
  /** The address of all machines; default: derived from `domain`. */
  readonly sandboxUrl?: string;
  /** Time limit of one request to the vendor, in milliseconds; default 60,000. Does not limit commands. */
  readonly requestTimeoutMs?: number;
}
