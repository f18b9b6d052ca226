import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { createRandom } from "../faults/seeded-random.ts";
import { chosenEngine } from "./harness/engines.ts";
import { type Kit, Kits, type Load } from "./harness/kits.ts";

const minutes = Number(process.env.KIT_CLUSTER_MINUTES ?? 0.4);
const seed = Number(process.env.KIT_CLUSTER_SEED ?? Math.floor(Math.random() * 1_000_000));

/** A fault of a node or of the database, and its end. */
const faults: Readonly<
  Record<string, (cluster: Kits, kit: Kit, random: (below: number) => number) => Promise<void>>
> = {
  async kill(cluster, kit, random) {
    await cluster.kill(kit);
    await delay(random(800));
    await cluster.startKit(kit);
  },
  async freeze(cluster, kit, random) {
    cluster.freeze(kit);
    await delay(500 + random(5_000));
    cluster.thaw(kit);
  },
  async silence(_, kit, random) {
    kit.proxy.silence();
    await delay(500 + random(5_000));
    kit.proxy.restore();
  },
  async reset(_, kit, random) {
    kit.proxy.reset();
    await delay(random(1_500));
    kit.proxy.restore();
  },
  async stop(cluster, kit) {
    await cluster.end(kit);
    await cluster.startKit(kit);
  },
  async drop(cluster) {
    await cluster.database.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
    );
  },
  async crash(cluster, _, random) {
    await cluster.database.kill();
    await delay(random(1_000));
    await cluster.database.up();
  },
};

test(
  `random faults for ${minutes} minutes lose no work and repeat none (seed ${seed}: --seed ${seed})`,
  async () => {
    const random = createRandom(seed);
    const cluster = await Kits.start(chosenEngine());
    const counts: Record<string, number> = {};
    const loads: Load[] = [];
    try {
      const end = Date.now() + minutes * 60_000;
      while (Date.now() < end) {
        loads.push(cluster.load({ lines: 6, each: 6, ms: random(250) }));
        const name = Object.keys(faults)[random(Object.keys(faults).length)] ?? "kill";
        const kit = cluster.kits[random(cluster.kits.length)];
        if (kit === undefined) continue;
        counts[name] = (counts[name] ?? 0) + 1;
        await delay(random(700));
        await faults[name]?.(cluster, kit, random);
        await delay(random(700));
      }
      await cluster.heal();
      for (const load of loads) await cluster.settled(load);
      process.stdout.write(`seed ${seed}: ${loads.length * 36} inputs, ${JSON.stringify(counts)}\n`);
      expect(await cluster.findings(...loads)).toEqual([]);
    } finally {
      await cluster.stop();
    }
  },
  minutes * 60_000 * 2 + 240_000,
);
