import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isAlive } from "../../../src/processes/is-alive.ts";
import { stopBetweenWrites } from "../../../src/testing/stop-between-writes.ts";
import { clusterFaults, heavyFaults } from "../../cluster/harness/cluster-faults.ts";
import { postgresEngine } from "../../cluster/harness/engines.ts";
import { type Kit, Kits } from "../../cluster/harness/kits.ts";
import { createFaultProject } from "../service/fault-project.ts";
import type { KitProcess } from "../service/kit-process.ts";
import { clockEnvironment, setClock } from "../service/wrong-clock.ts";
import {
  campaignFiles,
  campaignScript,
  createLedger,
  type Effect,
  ledgerVariable,
  orderFile,
  readLedger,
  steadyNow,
  type Wake,
} from "./campaign-project.ts";

type Random = (below: number) => number;

/** Servers with their faults: each fault begins and ends within its call. */
export interface World {
  /** The addresses of the servers that should run. */
  urls(): readonly string[];
  readonly faults: Readonly<Record<string, (random: Random) => Promise<void>>>;
  effects(): readonly Effect[];
  readonly wakes: readonly Wake[];
  /** Ends every fault, and starts what is down. Throws if a server ended by itself. */
  heal(): Promise<void>;
  stop(): Promise<void>;
}

/** Three nodes on Postgres, with the default settings. */
export async function startThreeNodes(): Promise<World> {
  const cluster = await Kits.start(postgresEngine, 3, {
    files: campaignFiles,
    script: campaignScript,
    ledger: ledgerVariable,
  });
  const onOne =
    (fault: (cluster: Kits, kit: Kit, random: Random) => Promise<void>) => async (random: Random) => {
      const kit = cluster.kits[random(cluster.kits.length)];
      if (kit !== undefined) await fault(cluster, kit, random);
    };
  const faults = Object.entries({
    ...clusterFaults,
    ...heavyFaults,
    async fewHandles(_: Kits, { process }: Kit, random: Random) {
      await withLimit(process, ["--nofile=24:"], 300 + random(1_000));
    },
  }).filter(([name]) => hasLimits || name !== "fewHandles");
  return {
    urls: () => cluster.kits.map(({ process }) => process.url),
    faults: Object.fromEntries(faults.map(([name, fault]) => [name, onOne(fault)])),
    effects: () => readLedger(cluster.effectsFile),
    wakes: cluster.wakes,
    heal: async () => await cluster.heal(),
    stop: async () => await cluster.stop(),
  };
}

const hasLimits = spawnSync("prlimit", ["--version"]).status === 0;

/** Limits what a running process may have, for a while. */
async function withLimit({ pid }: KitProcess, [limit = ""]: readonly string[], ms: number): Promise<void> {
  const set = (value: string) => spawnSync("prlimit", [`--pid=${pid}`, value]);
  const name = limit.slice(0, limit.indexOf("="));
  const before = spawnSync("prlimit", [`--pid=${pid}`, name, "--output=SOFT", "--noheadings", "--raw"]);
  set(limit);
  await delay(ms);
  set(`${name}=${before.stdout.toString().trim()}:`);
}

/** One machine with one folder: one `kit start`, and in some faults a second process that stands by. */
export async function startOneMachine(): Promise<World> {
  const project = await createFaultProject(() => 2, { files: campaignFiles, script: campaignScript });
  const { root } = project;
  const ledger = join(root, "ledger.log");
  createLedger(ledger);
  const servers = [project.kit, await project.another()];
  const up = new Set<KitProcess>();
  const start = async (server: KitProcess): Promise<void> => {
    await server.start({ [ledgerVariable]: ledger, ...clockEnvironment(root) });
    up.add(server);
  };
  const end = async (server: KitProcess, signal: "SIGKILL" | "SIGTERM"): Promise<void> => {
    up.delete(server);
    await server.end(signal);
  };
  const wakes: Wake[] = [];
  // A server that has ended by itself is told when it is asked.
  const thaw = ({ pid }: KitProcess): void => {
    if (!isAlive(pid)) return;
    wakes.push({ pid, at: steadyNow() });
    process.kill(pid, "SIGCONT");
  };
  const [first = project.kit, second = project.kit] = servers;
  setClock(root, 0);
  await start(first);
  const write = (path: string, text: string): void => writeFileSync(join(root, path), text);
  const order = campaignFiles[orderFile] ?? "";
  const faults: World["faults"] = {
    async kill(random) {
      await end(first, "SIGKILL");
      await delay(random(500));
      await start(first);
    },
    async killTwice(random) {
      for (let time = 0; time < 2; time += 1) {
        await end(first, "SIGKILL");
        await start(first);
        await delay(random(400));
      }
    },
    async stop() {
      await end(first, "SIGTERM");
      await start(first);
    },
    async freeze(random) {
      process.kill(first.pid, "SIGSTOP");
      await delay(500 + random(3_000));
      thaw(first);
    },
    /** The second process takes over from a killed one, and back. */
    async standBy(random) {
      await start(second);
      await end(first, "SIGKILL");
      await delay(500 + random(1_000));
      await start(first);
      await end(second, random(2) === 0 ? "SIGKILL" : "SIGTERM");
    },
    /** The second process takes over from one that hangs longer than its lease. */
    async hang() {
      await start(second);
      await stopBetweenWrites(first.pid, join(root, ".kit"));
      await delay(12_000);
      thaw(first);
      await delay(500);
      await end(second, "SIGTERM");
    },
    /** A new version of the code, installed after a crash. */
    async deploy(random) {
      await end(first, "SIGKILL");
      await delay(random(1_000));
      write(orderFile, `${order}\n// Version ${random(1_000_000)}.\n`);
      await start(first);
    },
    /** A broken version of the code, and the return to the one before. */
    async breakCode(random) {
      await end(first, "SIGTERM");
      write(orderFile, "export async function run(ctx) { syntax error");
      await start(first);
      await delay(1_000 + random(1_000));
      await end(first, "SIGTERM");
      write(orderFile, order);
      await start(first);
    },
  };
  const limited: World["faults"] = {
    async fillDisk(random) {
      await withLimit(first, ["--fsize=4096:"], 200 + random(800));
    },
    async fewHandles(random) {
      await withLimit(first, ["--nofile=24:"], 200 + random(800));
    },
  };
  const clocks: World["faults"] = {
    async setClock(random) {
      setClock(root, [-24, -1, 1, 24 * 30][random(4)] ?? 1);
      await delay(500 + random(1_500));
      if (random(2) === 0) {
        await end(first, "SIGKILL");
        await start(first);
        await delay(500);
      }
      setClock(root, 0);
    },
  };
  return {
    // A deploy that ends the only server leaves its address, which refuses connections meanwhile.
    urls: () => (up.size > 0 ? [...up] : [first]).map(({ url }) => url),
    faults: {
      ...faults,
      ...(hasLimits ? limited : {}),
      ...(Object.keys(clockEnvironment(root)).length > 0 ? clocks : {}),
    },
    effects: () => readLedger(ledger),
    wakes,
    async heal() {
      for (const server of up) thaw(server);
      setClock(root, 0);
      if (!up.has(first)) await start(first);
    },
    async stop() {
      for (const server of up) thaw(server);
      for (const server of servers) await end(server, "SIGKILL");
    },
  };
}
