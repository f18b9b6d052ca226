import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { arch, platform, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "./free-port.ts";

const binary = fileURLToPath(
  new URL(
    `../../vendors/node_modules/@restatedev/restate-server-${platform()}-${arch()}/bin/restate-server`,
    import.meta.url,
  ),
);

/** Whether restate-server is installed: `npm run test:vendors` installs it. */
export const hasRestate = existsSync(binary);

export interface RestateServers {
  /** The addresses of all servers, including those that are down. */
  readonly ingress: readonly string[];
  readonly admin: readonly string[];
  /** Kills a server. */
  kill(index?: number): Promise<void>;
  /** Starts a server again, with its stored data. */
  start(index?: number): Promise<void>;
  stop(): Promise<void>;
}

export interface RestateServersOptions {
  /** One server, or a cluster that writes everything to two of its servers. Default 1. */
  readonly count?: number | undefined;
  /** The file of the private key with which the server signs its calls. */
  readonly identityKeyFile?: string | undefined;
}

interface Ports {
  readonly node: number;
  readonly ingress: number;
  readonly admin: number;
}

/** Starts restate-server on free ports, with its own folder. Takes about a second; a cluster about ten. */
export async function startRestate(options: RestateServersOptions = {}): Promise<RestateServers> {
  const { count = 1 } = options;
  const folder = await mkdtemp(join(tmpdir(), "kit-restate-"));
  const ports = await Promise.all(Array.from({ length: count }, freePorts));
  const processes: (ChildProcess | undefined)[] = [];
  const logs: string[] = [];

  async function start(index = 0): Promise<void> {
    const own = join(folder, `n${index}`);
    await mkdir(own, { recursive: true });
    const config = join(own, "restate.toml");
    await writeFile(config, toConfig(index, { ports, own, options }));
    const child = spawn(binary, ["--config-file", config, "--listen-mode", "tcp", "--no-logo"], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, DO_NOT_TRACK: "1", RUST_LOG: "warn" },
    });
    processes[index] = child;
    logs[index] = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => {
        logs[index] = `${logs[index]}${chunk}`.slice(-20_000);
      });
    await untilHealthy(`http://127.0.0.1:${ports[index]?.admin}`, () => {
      if (child.exitCode !== null) throw new Error(`restate-server ended: ${logs[index]}`);
    });
  }

  async function kill(index = 0): Promise<void> {
    const child = processes[index];
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGCONT");
    child.kill("SIGKILL");
    await ended;
  }

  async function stop(): Promise<void> {
    await Promise.all(processes.map((_, index) => kill(index)));
    await rm(folder, { recursive: true, force: true });
  }

  try {
    await Promise.all(ports.map((_, index) => start(index)));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ingress: ports.map(({ ingress }) => `http://127.0.0.1:${ingress}`),
    admin: ports.map(({ admin }) => `http://127.0.0.1:${admin}`),
    kill,
    start,
    stop,
  };
}

/** The settings of one server. Those that could affect the tests have Restate's defaults. */
function toConfig(
  index: number,
  {
    ports,
    own,
    options,
  }: { readonly ports: readonly Ports[]; readonly own: string; readonly options: RestateServersOptions },
): string {
  const { node, ingress, admin } = ports[index] as Ports;
  const { count = 1, identityKeyFile } = options;
  return `
node-name = "n${index}"
cluster-name = "kit"
base-dir = ${JSON.stringify(own)}
auto-provision = ${index === 0}
default-replication = ${count > 1 ? 2 : 1}
default-num-partitions = 4
rocksdb-total-memory-size = "128.0 MiB"
bind-address = "127.0.0.1:${node}"
advertised-address = "http://127.0.0.1:${node}"
${identityKeyFile === undefined ? "" : `request-identity-private-key-pem-file = ${JSON.stringify(identityKeyFile)}`}

[metadata-client]
addresses = ${JSON.stringify(ports.map((port) => `http://127.0.0.1:${port.node}`))}

[ingress]
bind-address = "127.0.0.1:${ingress}"

[admin]
bind-address = "127.0.0.1:${admin}"
`;
}

async function untilHealthy(admin: string, check: () => void): Promise<void> {
  for (const deadline = Date.now() + 60_000; ; await setTimeout(50)) {
    check();
    try {
      if ((await fetch(`${admin}/health`)).ok) return;
    } catch {
      // The server does not listen yet.
    }
    if (Date.now() > deadline) throw new Error("restate-server did not become healthy.");
  }
}

async function freePorts(): Promise<Ports> {
  const [node, ingress, admin] = await Promise.all([freePort(), freePort(), freePort()]);
  return { node, ingress, admin };
}
