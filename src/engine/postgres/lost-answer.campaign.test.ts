import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(async () => await server?.stop());

/** A proxy that cuts one connection to Postgres after it has committed a statement with some words, and before its answer. */
class LosingProxy {
  #words: string | undefined;
  readonly #server: Server;

  constructor() {
    const { port } = new URL(server.url);
    this.#server = createServer((near) => {
      const far = connect(Number(port), "127.0.0.1");
      let isAsked = false;
      near.on("data", (data: Buffer) => {
        isAsked ||= this.#words !== undefined && data.includes(this.#words);
        far.write(data);
      });
      far.on("data", (data: Buffer) => {
        // A command's tag: Postgres has committed.
        if (!isAsked || !this.isArmed || !/(UPDATE|SELECT) 1\0/.test(data.toString("latin1"))) {
          near.write(data);
          return;
        }
        this.#words = undefined;
        near.destroy();
        far.destroy();
      });
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        one.on("error", () => other.destroy());
        one.on("close", () => other.destroy());
      }
    }).listen(0, "127.0.0.1");
  }

  async url(): Promise<string> {
    if (!this.#server.listening) await once(this.#server, "listening");
    const { username, password } = new URL(server.url);
    return `postgres://${username}:${password}@127.0.0.1:${(this.#server.address() as AddressInfo).port}/postgres`;
  }

  loseAnswerTo(words: string): void {
    this.#words = words;
  }

  get isArmed(): boolean {
    return this.#words !== undefined;
  }

  close(): void {
    this.#server.close();
  }
}

test("an input begins although the connection broke after its claim, before the answer, and its node stays the owner", async () => {
  const proxy = new LosingProxy();
  const engine = await createPostgresEngine({ url: await proxy.url(), schema: "claims" });
  const attempts: number[] = [];
  await engine.start({
    run: async () => null,
    dispatch: async ({ attempt }) => {
      attempts.push(attempt);
      return null;
    },
  });
  proxy.loseAnswerTo("SET status = CASE WHEN cancelling THEN status ELSE 'running' END");
  const { dispatch_id } = await engine.admit({ agent: "a", instance_id: "i", session: "s", input: 1 });
  const ended = await engine.awaitDispatch(dispatch_id, { signal: AbortSignal.timeout(30_000) });
  expect(proxy.isArmed).toBe(false);
  expect(ended).toMatchObject({ status: "completed", attempts: 1 });
  expect(attempts).toEqual([1]);
  await engine.drain({ timeoutMs: 0 });
  proxy.close();
}, 90_000);

test.each([
  { signal: "that a run waits for", isEarly: false },
  { signal: "that came before the run waited for it", isEarly: true },
])(
  "a signal $signal reaches it although the answer to its taking was lost",
  async ({ isEarly }) => {
    const proxy = new LosingProxy();
    // The sender has a connection of its own: its statement has the payload, too.
    const target = { schema: `signals_${isEarly}` };
    const engine = await createPostgresEngine({ ...target, url: await proxy.url() });
    const mayWait = Promise.withResolvers<void>();
    await engine.start({
      dispatch: async () => null,
      run: async (context) => {
        await mayWait.promise;
        const signals = [await context.waitFor("go")];
        signals.push(await context.waitFor("again", { timeoutMs: 60_000 }));
        return signals;
      },
    });
    const { run_id } = await engine.startRun({ workflow: "w", payload: null });
    const sender = await createPostgresEngine({ ...target, url: server.url });
    if (!isEarly) {
      mayWait.resolve();
      await expect
        .poll(async () => (await engine.readJournal?.(run_id, { after: -1, limit: 10 }))?.length)
        .toBe(1);
    }
    proxy.loseAnswerTo("go-4711");
    await sender.signal(run_id, { name: "go", payload: "go-4711" });
    mayWait.resolve();
    await expect.poll(() => proxy.isArmed).toBe(false);
    await sender.signal(run_id, { name: "again", payload: 2 });
    const ended = await engine.awaitRun(run_id, { signal: AbortSignal.timeout(30_000) });
    expect(ended).toMatchObject({ status: "completed", result: ["go-4711", 2] });
    await sender.drain({ timeoutMs: 0 });
    await engine.drain({ timeoutMs: 0 });
    proxy.close();
  },
  90_000,
);
