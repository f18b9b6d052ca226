import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { handlers } from "../cases/engine-check.ts";
import type { Engine, RunContext } from "../contract.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

const server = postgresForTests();

interface Note {
  readonly session: string;
  readonly input: number;
  readonly node: string;
  readonly acceptedAt: number;
  readonly begunAt: number;
  endedAt?: number;
}

/** The longest that an input of an idle session can wait because its node leaves, on a busy machine. */
const longestPauseMs = 5_000;

/** Instead of milliseconds: the work ends when the test opens its gate. */
const untilReleased = -1;

/** A cluster that records which node began and ended which input. */
function recordedCluster(schema: string) {
  const history: Note[] = [];
  const acceptedAt = new Map<string, number>();
  const admitted: string[] = [];
  const sent = new Map<string, number>();
  const released = Promise.withResolvers<void>();
  const open = async (name: string, run: (context: RunContext) => Promise<unknown>): Promise<Engine> => {
    const engine = await createPostgresEngine({ url: server.url, schema });
    await engine.start(
      handlers({
        async dispatch(context, { session, input }) {
          const { number, ms } = input as { number: number; ms: number };
          const key = `${session}/${number}`;
          const note: Note = {
            session,
            input: number,
            node: name,
            acceptedAt: acceptedAt.get(key) ?? 0,
            begunAt: performance.now(),
          };
          history.push(note);
          await (ms === untilReleased ? released.promise : sleep(ms));
          context.signal.throwIfAborted();
          note.endedAt = performance.now();
        },
        run,
      }),
    );
    return engine;
  };
  const send = async (engine: Engine, session: string, ms: number): Promise<void> => {
    const number = (sent.get(session) ?? 0) + 1;
    sent.set(session, number);
    const input = { number, ms };
    const { dispatch_id } = await engine.admit({ agent: "a", instance_id: session, session: session, input });
    acceptedAt.set(`${session}/${number}`, performance.now());
    admitted.push(dispatch_id);
  };
  /** Checks that nothing was lost or done twice, and that each session kept its order; returns the longest wait of inputs that were first in line. */
  const check = async (engine: Engine, message: string): Promise<number> => {
    const records = await Promise.all(admitted.map((id) => engine.awaitDispatch(id)));
    expect(records.filter((record) => record?.status !== "completed")).toEqual([]);
    const done = history.filter(({ endedAt }) => endedAt !== undefined);
    expect(done).toHaveLength(admitted.length);
    for (const [session, count] of sent) {
      const sessionNotes = done
        .filter((note) => note.session === session)
        .sort((one, two) => one.begunAt - two.begunAt);
      expect(sessionNotes.map(({ input }) => input)).toEqual(
        Array.from({ length: count }, (_, index) => index + 1),
      );
      for (const [index, note] of sessionNotes.entries())
        expect(note.begunAt).toBeGreaterThanOrEqual(sessionNotes[index - 1]?.endedAt ?? 0);
    }
    const waits = done.flatMap((note) => {
      const before = done.find(({ session, input }) => session === note.session && input === note.input - 1);
      const ready = Math.max(acceptedAt.get(`${note.session}/${note.input}`) ?? 0, before?.endedAt ?? 0);
      return note.session === message ? [] : [note.begunAt - ready];
    });
    return Math.max(...waits);
  };
  return { open, send, check, history, release: released.resolve };
}

const noRun = async (): Promise<unknown> => undefined;

test("a node that leaves hands over idle shards at once, still accepts work, and does not delay other nodes", async () => {
  const cluster = recordedCluster("hand_over");
  const nodes = await Promise.all(["one", "two", "three"].map((name) => cluster.open(name, noRun)));
  const [leaving, ...others] = nodes as [Engine, Engine, Engine];
  await expect
    .poll(async () => (await leaving.state?.())?.nodes.map(({ shards }) => shards > 80))
    .toEqual([true, true, true]);
  const sessions = Array.from({ length: 40 }, (_, index) => `s${index}`);
  const slow = sessions.find((id) => leaving.cluster?.owns({ agent: "a", instance_id: id })) ?? "";
  await cluster.send(leaving, slow, untilReleased);
  await expect.poll(() => cluster.history.length).toBe(1);
  let isLoaded = true;
  const load = (async () => {
    for (let index = 0; isLoaded; index += 1) {
      const engine = nodes[index % nodes.length] as Engine;
      await cluster.send(engine, sessions[index % sessions.length] as string, 3);
      await sleep(2);
    }
  })();
  await sleep(300);
  await leaving.leave?.();
  expect((await leaving.state?.())?.nodes.find(({ is_this }) => is_this)?.state).toBe("draining");
  // Only the shard with running work stays until the work ends.
  await expect
    .poll(async () => (await leaving.state?.())?.nodes.find(({ is_this }) => is_this)?.shards)
    .toBe(1);
  await expect.poll(async () => (await others[0].state?.())?.unowned_shards).toBe(0);
  await sleep(500);
  isLoaded = false;
  cluster.release();
  await load;
  await leaving.drain({ timeoutMs: 30_000 });
  expect(cluster.history.find(({ session }) => session === slow)?.node).toBe("one");
  const pause = await cluster.check(others[0], slow);
  expect(pause).toBeLessThan(longestPauseMs);
  await Promise.all(others.map((engine) => engine.drain({ timeoutMs: 1_000 })));
}, 60_000);

test("three nodes are replaced one after the other by new code, under load: open runs stay on their branch", async () => {
  const cluster = recordedCluster("rolling_deploy");
  const old = async (context: RunContext): Promise<unknown> => {
    const first = await context.step("first", () => 1);
    await context.waitFor("go");
    return [first, await context.step("last", () => "old")];
  };
  const changed = async (context: RunContext): Promise<unknown> => {
    const first = await context.step("first", () => 1);
    const isNew = await context.patched("second");
    if (isNew) await context.step("second", () => 2);
    await context.waitFor("go");
    return [first, await context.step("last", () => (isNew ? "new" : "old"))];
  };
  let nodes = await Promise.all(["old 1", "old 2", "old 3"].map((name) => cluster.open(name, old)));
  const before = await Promise.all(
    [1, 2, 3, 4].map((payload) => nodes[0]?.startRun({ workflow: "flow", payload })),
  );
  await expect.poll(async () => (await nodes[0]?.load())?.waiting_runs).toBe(4);
  let isLoaded = true;
  const load = (async () => {
    for (let index = 0; isLoaded; index += 1) {
      const current = nodes;
      await cluster.send(current[index % current.length] as Engine, `s${index % 30}`, 3);
      await sleep(3);
    }
  })();
  for (const name of ["new 1", "new 2", "new 3"]) {
    const next = await cluster.open(name, changed);
    const [leaving, ...rest] = nodes as [Engine, ...Engine[]];
    await leaving.leave?.();
    // A balancer notices it a little later; until then the leaving node accepts work.
    await sleep(200);
    nodes = [...rest, next];
    await sleep(50);
    await leaving.drain({ timeoutMs: 30_000 });
  }
  await sleep(300);
  isLoaded = false;
  await load;
  const [first] = nodes as [Engine];
  const after = await first.startRun({ workflow: "flow", payload: 5 });
  for (const receipt of before) await first.signal(String(receipt?.run_id), { name: "go" });
  await first.signal(after.run_id, { name: "go" });
  for (const receipt of before)
    expect((await first.awaitRun(String(receipt?.run_id)))?.result).toEqual([1, "old"]);
  expect((await first.awaitRun(after.run_id))?.result).toEqual([1, "new"]);
  expect(await cluster.check(first, "")).toBeLessThan(longestPauseMs);
  expect(cluster.history.some(({ node }) => node === "new 3")).toBe(true);
  await Promise.all(nodes.map((engine) => engine.drain({ timeoutMs: 1_000 })));
}, 60_000);
