import { setTimeout as delay } from "node:timers/promises";
import type { Kit, Kits } from "./kits.ts";

type Random = (below: number) => number;

/** A fault of a node, its network or the database, and its end. */
export type ClusterFault = (cluster: Kits, kit: Kit, random: Random) => Promise<void>;

export const clusterFaults: Readonly<Record<string, ClusterFault>> = {
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

/** Faults that need more time than the others, or hit all nodes. */
export const heavyFaults: Readonly<Record<string, ClusterFault>> = {
  async killTwo(cluster, kit, random) {
    const other = cluster.kits.find((one) => one !== kit);
    for (const one of [kit, other]) if (one !== undefined) await cluster.kill(one);
    await delay(random(1_500));
    for (const one of [kit, other]) if (one !== undefined) await cluster.startKit(one);
  },
  /** Replaces the nodes one after the other, as a deploy does. */
  async deploy(cluster) {
    for (const kit of cluster.kits) {
      await cluster.end(kit);
      await cluster.startKit(kit);
    }
  },
  async restartDatabase(cluster) {
    await cluster.database.restart();
  },
  async freezeDatabase(cluster, _, random) {
    cluster.database.freeze();
    await delay(500 + random(5_000));
    cluster.database.thaw();
  },
  /** A decision or a receipt is stored, and the node dies before the session's log has what follows from it. */
  async killWhileSlow(cluster, kit, random) {
    const unlock = await cluster.database.lock("kit.entries");
    await delay(300 + random(700));
    await cluster.kill(kit);
    await unlock();
    await delay(random(500));
    await cluster.startKit(kit);
  },
  async lockWork(cluster, _, random) {
    const unlock = await cluster.database.lock("kit.dispatches");
    await delay(500 + random(2_000));
    await unlock();
  },
  async lockEvents(cluster, _, random) {
    const unlock = await cluster.database.lock("kit.batches");
    await delay(500 + random(2_000));
    await unlock();
  },
};
