import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import type { KitEvent } from "../../../src/protocol/event.ts";
import { createRandom } from "../seeded-random.ts";
import { CampaignClients } from "./campaign-clients.ts";
import type { World } from "./campaign-worlds.ts";
import { checkTold, type Ended } from "./check-told.ts";

const rounds = Number(process.env.KIT_FAULT_ROUNDS ?? 0);
const seed = Number(process.env.KIT_FAULT_SEED ?? 1);
const chosen = process.env.KIT_FAULTS?.split(",");
/** The time that accepted work may take after the last fault, in ms. */
const settleMs = 120_000;

/** Tests that a world with faults keeps what clients were told. */
export function testCampaign(name: string, start: () => Promise<World>): void {
  test(
    `${name}: nothing that a client was told is lost, done twice, stuck, dead or otherwise, under every fault (seed ${seed})`,
    async () => {
      const random = createRandom(seed);
      const world = await start();
      try {
        const clients = new CampaignClients(world.urls);
        clients.start(random);
        const counts = await cause(world, random);
        await world.heal();
        await clients.finish();
        const campaign = await collect(world, clients);
        const { replies } = campaign;
        const table = Object.entries(Object.groupBy(replies, ({ what }) => what)).map(
          ([what, list]) => `${list?.length} ${what}`,
        );
        process.stdout.write(`${name}, seed ${seed}: ${JSON.stringify(counts)}; ${table.join(", ")}\n`);
        expect(checkTold(campaign)).toEqual([]);
        // The faults must have met work.
        expect(replies.length).toBeGreaterThan(20);
      } finally {
        await world.stop();
      }
    },
    600_000 + rounds * 30_000,
  );
}

/** Causes each fault once, or as many as were asked for, at moments that the seed determines. */
async function cause(
  world: World,
  random: (below: number) => number,
): Promise<Readonly<Record<string, number>>> {
  const names = Object.keys(world.faults).filter((name) => chosen?.includes(name) ?? true);
  const counts: Record<string, number> = {};
  await delay(1_000);
  for (let round = 0; round < (rounds || names.length); round += 1) {
    // Every fault in turn, then at random.
    const name = names[round < names.length ? round : random(names.length)] ?? "";
    counts[name] = (counts[name] ?? 0) + 1;
    await world.faults[name]?.(random);
    await delay(300 + random(1_500));
  }
  return counts;
}

const openStates = ["queued", "running", "waiting"];

/** Waits until everything has ended, and reads what the servers know. */
async function collect(world: World, clients: CampaignClients) {
  const { replies } = clients;
  const client = clients.client();
  const ended = new Map<string, Ended>();
  const deadline = Date.now() + settleMs;
  for (const one of replies) {
    if (!("id" in one) || one.what === "signal") continue;
    for (;;) {
      const read = one.what === "run" ? client.runs.get(one.id) : client.dispatches.get(one.id);
      const end: Ended = await read.catch((error) => {
        if (error.code === "not_found") return { status: "missing" };
        throw error;
      });
      ended.set(one.id, end);
      if (!openStates.includes(end.status) || Date.now() > deadline) break;
      await delay(50);
    }
  }
  if ([...ended.values()].some(({ status }) => openStates.includes(status))) await printOpenRuns(clients);
  await clients.end();
  const histories = new Map<string, readonly string[]>();
  const lines = new Map<string, "worker" | "payer">();
  for (const one of replies) {
    if ("line" in one) lines.set(one.line, "worker");
    if (one.what === "payment") lines.set(`payment-${one.number}`, "payer");
  }
  for (const [id, agent] of lines) {
    const messages = await client.agents.history(agent, { id });
    histories.set(
      id,
      messages.map(({ content }) => textOf(content)),
    );
  }
  const logs = new Map<string, readonly KitEvent[]>();
  for (const { instance, events } of clients.received)
    logs.set(instance, await readLog(clients, instance, events.at(-1)?.index ?? 0));
  return {
    replies,
    effects: world.effects(),
    wakes: world.wakes,
    received: clients.received,
    ended,
    histories,
    logs,
  };
}

/** Prints what has not ended: the work of which others wait is often another one. */
async function printOpenRuns(clients: CampaignClients): Promise<void> {
  for (const status of ["queued", "running", "waiting"] as const) {
    const { runs } = await clients.client().runs.list({ status, limit: 20 });
    for (const run of runs) process.stdout.write(`${JSON.stringify(run)}\n`);
  }
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? content : [];
  return parts.map((part) => part.text ?? JSON.stringify(part)).join("");
}

/** Reads an instance's events up to an index, which a reader has received. */
async function readLog(clients: CampaignClients, id: string, last: number): Promise<readonly KitEvent[]> {
  const events: KitEvent[] = [];
  const quiet = new AbortController();
  const timer = setTimeout(() => quiet.abort(), 10_000);
  try {
    for await (const event of clients
      .client()
      .agents.events("worker", { id, after: 0 }, { signal: quiet.signal })) {
      events.push(event);
      if (event.index >= last) break;
    }
  } catch (error) {
    if (!quiet.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
  return events;
}
