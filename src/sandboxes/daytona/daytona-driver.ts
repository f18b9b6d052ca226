import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { defined } from "../../base/record.ts";
import {
  hasLabels,
  type MachineInfo,
  type MachineSpec,
  type RemoteDriver,
  type RemoteMachine,
  type RemoteRun,
  toUploadedRun,
} from "../remote/driver.ts";
import { atVendor, loadSdk } from "../remote/load-vendor-sdk.ts";
import { type RemoteReason, reasonOf, remoteError, wasNotSent } from "../remote/remote-error.ts";
import type { RemoteOptions } from "../remote/remote-options.ts";
import type { DaytonaClient, DaytonaMachine, DaytonaSdk } from "./daytona-sdk.ts";

const vendor = "daytona";
const startSeconds = 120;
/** States of a machine that cannot be started again. */
const endStates = new Set(["destroyed", "destroying", "error", "build_failed"]);

interface Client {
  readonly sdk: DaytonaSdk;
  readonly client: DaytonaClient;
}

/** Creates the driver of Daytona with the vendor's package of the project at `root`. */
export function createDaytonaDriver(options: DaytonaOptions, root: string): RemoteDriver {
  const load = async (): Promise<Client> => {
    const sdk = await loadSdk<DaytonaSdk>("@daytona/sdk", root);
    const { apiKey, apiUrl, target, requestTimeoutMs = 60_000 } = options;
    try {
      const client = new sdk.Daytona({
        ...defined({ apiKey, apiUrl, target }),
        requestTimeoutMs,
        // A connection for events would keep this process alive.
        useDeprecatedPolling: true,
      });
      return { sdk, client };
    } catch (cause) {
      throw remoteError(vendor, "key", { cause, hint });
    }
  };
  const withClient = atVendor(load, ({ sdk }, error) => toRemote(sdk, error));
  return {
    name: vendor,
    folder: options.folder ?? "/home/daytona/workspace",
    network: "hosts",
    create: (spec) =>
      withClient(async ({ sdk, client }) => {
        const machine = await client.create(paramsOf(options, spec), { timeout: startSeconds });
        return toMachine(sdk, machine);
      }),
    attach: (id) =>
      withClient(async ({ sdk, client }) => {
        const machine = await client.get(id);
        if (endStates.has(machine.state ?? "")) throw remoteError(vendor, "gone");
        if (machine.state !== "started") await machine.start(startSeconds);
        return toMachine(sdk, machine);
      }),
    pause: (id) =>
      withClient(async ({ client }) => {
        const machine = await client.get(id);
        if (machine.state === "started") await machine.stop(startSeconds);
      }),
    destroy: (id) =>
      withClient(async ({ sdk, client }) => {
        try {
          await (await client.get(id)).delete(startSeconds);
        } catch (error) {
          if (reasonFor(sdk, error) !== "gone") throw error;
        }
      }),
    list: (labels) =>
      withClient(async ({ client }) => {
        const machines: MachineInfo[] = [];
        for await (const machine of client.list({ labels: { ...labels } })) {
          if (!hasLabels(machine, labels)) continue;
          if (machine.state === "destroyed" || machine.state === "destroying") continue;
          const isPaused = machine.state !== "started" && machine.state !== "starting";
          machines.push({
            id: machine.id,
            state: isPaused ? "paused" : "running",
            labels: machine.labels,
            ...(machine.createdAt === undefined ? {} : { created_at: machine.createdAt }),
          });
        }
        return machines;
      }),
  };
}

const hint = "Set DAYTONA_API_KEY.";

function paramsOf({ snapshot, image }: DaytonaOptions, { labels, env, network, aliveMs }: MachineSpec) {
  return {
    ...defined({ snapshot, image }),
    labels: { ...labels },
    envVars: { ...env },
    autoStopInterval: Math.max(1, Math.ceil(aliveMs / 60_000)),
    // Never delete it automatically: it holds a session's work, and kit removes it with the session.
    autoDeleteInterval: -1,
    ...(network === undefined
      ? {}
      : network.length === 0
        ? { networkBlockAll: true }
        : { domainAllowList: network.join(",") }),
  };
}

function toMachine(sdk: DaytonaSdk, machine: DaytonaMachine): RemoteMachine {
  // Idle shell sessions of the vendor; each runs one command at a time.
  const shells: string[] = [];
  return {
    id: machine.id,
    async run(request) {
      request.signal?.throwIfAborted();
      let mayRun = false;
      try {
        const line = await uploadInput(machine, request);
        if (request.isCommand !== true) {
          mayRun = true;
          return await execute(machine, line, request);
        }
        const shell = shells.pop() ?? (await openShell(machine));
        mayRun = true;
        const ended = await runInShell({ machine, shell, line }, request);
        shells.push(shell);
        return ended;
      } catch (error) {
        if (reasonOf(error) !== undefined) throw error;
        const reason = reasonFor(sdk, error);
        const isUnknown = mayRun && reason === "unreachable" && !wasNotSent(error);
        throw remoteError(vendor, isUnknown ? "lost" : reason === "gone" ? "detached" : reason, {
          cause: error,
        });
      }
    },
    async keepAlive() {
      try {
        await machine.refreshActivity();
      } catch (error) {
        throw toRemote(sdk, error);
      }
    },
  };
}

/** Uploads the script's input, and returns the line that runs the script. */
async function uploadInput(machine: DaytonaMachine, request: RemoteRun): Promise<string> {
  const { line, files } = toUploadedRun(request, `/tmp/.kit-in-${randomUUID()}`);
  if (files.length > 0) {
    await machine.fs.uploadFiles(
      files.map(({ path, text }) => ({ source: Buffer.from(text), destination: path })),
    );
  }
  return line;
}

/** Runs a line in one round trip. Drops standard error, which the vendor would mix into the output. */
async function execute(
  machine: DaytonaMachine,
  line: string,
  { onOutput }: RemoteRun,
): Promise<{ readonly exitCode: number }> {
  const { exitCode, result } = await machine.process.executeCommand(
    `${line} 2>/dev/null`,
    undefined,
    undefined,
    0,
  );
  if (result !== "") onOutput("stdout", result);
  return { exitCode };
}

async function openShell(machine: DaytonaMachine): Promise<string> {
  const id = `kit-${randomUUID()}`;
  await machine.process.createSession(id);
  return id;
}

interface ShellRun {
  readonly machine: DaytonaMachine;
  readonly shell: string;
  readonly line: string;
}

async function runInShell(
  { machine, shell, line }: ShellRun,
  { onOutput }: RemoteRun,
): Promise<{ readonly exitCode: number }> {
  const { process } = machine;
  const { cmdId = "" } = await process.executeSessionCommand(shell, { command: `(${line})`, runAsync: true });
  const received = { stdout: 0, stderr: 0 };
  const receive = (stream: "stdout" | "stderr", text: string): void => {
    received[stream] += text.length;
    onOutput(stream, text);
  };
  await process.getSessionCommandLogs(
    shell,
    cmdId,
    (text) => receive("stdout", text),
    (text) => receive("stderr", text),
  );
  for (let tries = 0; tries < 7; tries += 1) {
    const { exitCode } = await process.getSessionCommand(shell, cmdId);
    if (exitCode === undefined) {
      // The vendor may record the exit code after the output ends, or the connection broke.
      await setTimeout(50 * tries);
      continue;
    }
    if (tries > 0) {
      const logs = await process.getSessionCommandLogs(shell, cmdId);
      for (const stream of ["stdout", "stderr"] as const) {
        const rest = (logs[stream] ?? "").slice(received[stream]);
        if (rest !== "") onOutput(stream, rest);
      }
    }
    return { exitCode };
  }
  throw remoteError(vendor, "lost");
}

function toRemote(sdk: DaytonaSdk, error: unknown): Error {
  const reason = reasonFor(sdk, error);
  return remoteError(vendor, reason, { cause: error, ...(reason === "key" ? { hint } : {}) });
}

function reasonFor(sdk: DaytonaSdk, error: unknown): RemoteReason {
  if (!(error instanceof sdk.DaytonaError)) return "unreachable";
  const { statusCode, message } = error;
  const isQuota = /quota|limit exceeded|maximum/i.test(message);
  switch (statusCode) {
    case 401:
      return "key";
    case 402:
      return "quota";
    case 400:
    case 403:
      return isQuota
        ? "quota"
        : statusCode === 403
          ? "key"
          : /not running|not started|no IP address/i.test(message)
            ? "detached"
            : "refused";
    case 404:
    case 410:
      return "gone";
    case 429:
      return isQuota ? "quota" : "busy";
    case 502:
      return "detached";
    case undefined:
      return "unreachable";
    default:
      return statusCode < 500 && statusCode !== 408 && statusCode !== 409 ? "refused" : "unreachable";
  }
}

export interface DaytonaOptions extends RemoteOptions {
  /** The snapshot for new machines; default: the account's. */
  readonly snapshot?: string;
  /** The image for new machines instead of a snapshot, such as "debian:12". */
  readonly image?: string;
  /** The region, such as "eu". */
  readonly target?: string;
  /** The address of the vendor's API; default: the vendor's own. */
  readonly apiUrl?: string;
  /** Time limit of one request to the vendor, in milliseconds; default 60,000. Does not limit commands. */
  readonly requestTimeoutMs?: number;
}
