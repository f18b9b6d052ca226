import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { chosenEngine } from "./harness/engines.ts";
import { type Kit, Kits, type Load } from "./harness/kits.ts";

let cluster: Kits;
let kits: readonly [Kit, Kit, Kit];

beforeAll(async () => {
  cluster = await Kits.start(chosenEngine());
  kits = cluster.kits as unknown as typeof kits;
});

afterEach(() => cluster.heal());

afterAll(() => cluster?.stop());

async function checkEnd(load: Load): Promise<void> {
  await cluster.settled(load);
  expect(await cluster.findings(load)).toEqual([]);
}

test("a node that is killed during a step loses nothing, and the others do its work", async () => {
  const load = cluster.load({ lines: 12, each: 4, ms: 150 });
  await cluster.begun(load, 14);
  await cluster.kill(kits[0]);
  await checkEnd(load);
});

test("a node that was frozen for five seconds loses its leases, and settles and appends nothing more", async () => {
  const short = cluster.load({ lines: 9, each: 3, ms: 300 });
  const long = cluster.load({ lines: 9, each: 1, ms: 5_700 });
  await cluster.begun(short, 10);
  await cluster.begun(long, 9);
  // The nodes choose who does what, so the node to freeze is one that has a long step.
  const { node } = cluster.effects().find(({ line }) => long.lines.includes(line)) ?? {};
  const kit = kits.find(({ process }) => process.pid === node) ?? kits[1];
  cluster.freeze(kit);
  await delay(5_000);
  cluster.thaw(kit);
  await cluster.settled(long);
  const effects = cluster.effects().filter((one) => one.node === node && long.lines.includes(one.line));
  // Its work ended there after it got `lease_lost`, and was done by another node.
  expect(effects.length).toBeGreaterThan(0);
  for (const { effect } of effects) {
    const steps = effects.filter((one) => one.effect === effect).map(({ what }) => what);
    expect(steps).toEqual(["begin", "lost", "end"]);
  }
  await checkEnd(short);
  await checkEnd(long);
});

test.each([
  ["in silence", "silence"],
  ["with resets", "reset"],
] as const)("a node whose network is cut %s stops before another does its work", async (_, cut) => {
  const load = cluster.load({ lines: 12, each: 3, ms: 400 });
  const long = cluster.load({ lines: 6, each: 1, ms: 4_000 });
  await cluster.begun(load, 14);
  kits[2].proxy[cut]();
  await cluster.settled(long);
  await delay(500);
  kits[2].proxy.restore();
  await checkEnd(load);
  await checkEnd(long);
});

test("when Postgres is killed and restarted, the nodes continue without help", async () => {
  const load = cluster.load({ lines: 12, each: 4, ms: 150 });
  await cluster.begun(load, 14);
  await cluster.database.kill();
  await delay(1_000);
  await cluster.database.up();
  await checkEnd(load);
});

test("when all connections are dropped again and again, the nodes continue", async () => {
  const load = cluster.load({ lines: 12, each: 4, ms: 100 });
  await cluster.begun(load, 14);
  for (let time = 0; time < 3; time += 1) {
    await cluster.database.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
    );
    await delay(300);
  }
  await checkEnd(load);
});

test("nodes without notifications find all work in the rows", async () => {
  for (const { proxy } of kits) proxy.mute(true);
  await delay(500);
  await cluster.untilBalanced();
  const load = cluster.load({ lines: 12, each: 3, ms: 50 });
  await cluster.begun(load, 14);
  await cluster.kill(kits[1]);
  await checkEnd(load);
});

test("runs whose node is killed during a step continue after their last finished step, and get signals that are sent to any node", async () => {
  const numbers = Array.from({ length: 9 }, (_, number) => number);
  const started = numbers.map((number) =>
    cluster.ask("/workflows/steps", { body: { number, waits: true }, from: number, key: `run ${number}` }),
  );
  const runs: { run_id: string }[] = await Promise.all(started);
  const stepsOf = (number: number) => cluster.effects().filter(({ line }) => line === `run-${number}`);
  await cluster.until(() => numbers.every((number) => stepsOf(number).length > 2));
  await cluster.kill(kits[0]);
  for (const [number, { run_id }] of runs.entries()) {
    await cluster.ask(`/runs/${run_id}/signal`, { body: { name: "go", payload: { number } }, from: number });
  }
  for (const [number, { run_id }] of runs.entries()) {
    await cluster.until(async () => (await cluster.ask(`/runs/${run_id}`)).status === "completed");
    expect((await cluster.ask(`/runs/${run_id}`)).result).toEqual({ number });
    const begun = stepsOf(number).filter(({ what }) => what === "begin");
    // Only the interrupted step can have begun twice.
    expect(begun.length).toBeLessThanOrEqual(6);
    expect(new Set(begun.map(({ effect }) => effect)).size).toBe(5);
  }
});

test("a schedule of every second starts each of its runs once while nodes are killed", async () => {
  const from = Date.now();
  await delay(2_500);
  for (const kit of [kits[0], kits[1]]) {
    await cluster.kill(kit);
    await delay(1_500);
    await cluster.startKit(kit);
  }
  await delay(1_000);
  const to = Date.now();
  const seconds = (await cluster.engine.occurrences(cluster.database, "tick"))
    .map((time) => Date.parse(time))
    .filter((at) => at > from && at < to - 1_000)
    .toSorted((left, right) => left - right);
  expect(seconds.length).toBeGreaterThan(5);
  for (const [index, at] of seconds.entries()) {
    if (index > 0) expect(at - Number(seconds[index - 1])).toBe(1_000);
  }
});

test("a node that is stopped under load exits cleanly, and none of its work is done again", async () => {
  const load = cluster.load({ lines: 12, each: 5, ms: 150 });
  await cluster.begun(load, 14);
  expect(await cluster.end(kits[0])).toBe(0);
  await cluster.startKit(kits[0]);
  expect(await cluster.end(kits[1])).toBe(0);
  await checkEnd(load);
  const begun = cluster.effects().filter(({ what, line }) => what === "begin" && load.lines.includes(line));
  expect(begun.length).toBe(60);
});

test("when a replica is promoted, it has all accepted work, and the nodes continue it", async () => {
  const replica = await cluster.database.replicate();
  const before = cluster.database;
  const load = cluster.load({ lines: 12, each: 5, ms: 150 });
  await cluster.begun(load, 20);
  await before.kill();
  await delay(500);
  await replica.promote();
  cluster.failOver(replica);
  await checkEnd(load);
  await before.remove();
});
