import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { createRandom } from "../faults/seeded-random.ts";
import { clusterFaults } from "./harness/cluster-faults.ts";
import { chosenEngine } from "./harness/engines.ts";
import { Kits, type Load } from "./harness/kits.ts";

const minutes = Number(process.env.KIT_CLUSTER_MINUTES ?? 0.4);
const seed = Number(process.env.KIT_CLUSTER_SEED ?? Math.floor(Math.random() * 1_000_000));

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
        const name = Object.keys(clusterFaults)[random(Object.keys(clusterFaults).length)] ?? "kill";
        const kit = cluster.kits[random(cluster.kits.length)];
        if (kit === undefined) continue;
        counts[name] = (counts[name] ?? 0) + 1;
        await delay(random(700));
        await clusterFaults[name]?.(cluster, kit, random);
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
  // Each wait of the harness ends earlier, with what it waited for.
  minutes * 60_000 * 2 + 900_000,
);
