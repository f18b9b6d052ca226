/**
 * One worker process of `npm run bench:cluster`. Arguments: the engine and its settings as JSON. It reports when it is ready, and
 * every 20 ms how many inputs it has done, and when those with a duration began.
 */
import { setTimeout as delay } from "node:timers/promises";
import { createEmbeddedEngine } from "../../src/engine/embedded/create-embedded-engine.ts";
import { createPostgresEngine } from "../../src/engine/postgres/create-postgres-engine.ts";
import { loadPeer } from "../runtime/peers/install-peer.ts";
import { type BenchInput, limits, type WorkerReport, type WorkerSettings } from "./subject.ts";

const settings = JSON.parse(String(process.argv[2])) as WorkerSettings;
let done = 0;
let begun: { id: string; at: number }[] = [];

async function work(input: BenchInput): Promise<string> {
  if (input.ms !== undefined) {
    begun.push({ id: input.id, at: Date.now() });
    await delay(input.ms);
  }
  done += 1;
  return input.id;
}

const starters: Readonly<Record<WorkerSettings["kind"], () => Promise<void>>> = {
  async embedded() {
    const engine = createEmbeddedEngine({ folder: String(settings.folder), limits });
    await engine.start({
      dispatch: async (_, { input }) => await work(input as BenchInput),
      run: async () => undefined,
    });
    process.on("message", ({ admit }: { admit: readonly BenchInput[] }) => {
      for (const input of admit) void engine.admit({ ...placeOf(input), input });
    });
  },
  async postgres() {
    const engine = await createPostgresEngine({ url: settings.url, schema: settings.schema, limits });
    await engine.start({
      dispatch: async (_, { input }) => await work(input as BenchInput),
      run: async () => undefined,
    });
  },
  async restate() {
    const sdk = await loadPeer<RestateSdk>("cluster-restate", "@restatedev/restate-sdk");
    const session = sdk.object({
      name: "session",
      handlers: { turn: async (_: unknown, input: BenchInput) => await work(input) },
    });
    await sdk.serve({ services: [session], port: settings.port ?? 0 });
  },
  async dbos() {
    const { DBOS } = await loadPeer<DbosSdk>("cluster-dbos", "@dbos-inc/dbos-sdk");
    DBOS.setConfig({
      name: "bench",
      systemDatabaseUrl: settings.url,
      systemDatabaseSchemaName: settings.schema,
      systemDatabasePoolSize: 20,
      logLevel: "error",
      applicationVersion: "1",
      executorID: `worker-${process.pid}`,
    });
    DBOS.registerWorkflow(work, { name: "turn" });
    await DBOS.launch();
    await DBOS.registerQueue("sessions", { partitionConcurrency: 1, minPollingIntervalMs: 20 });
  },
};

interface RestateSdk {
  object(definition: unknown): unknown;
  serve(options: { services: readonly unknown[]; port: number }): Promise<unknown>;
}

interface DbosSdk {
  DBOS: {
    setConfig(config: Record<string, unknown>): void;
    registerWorkflow(work: (input: BenchInput) => Promise<string>, options: { name: string }): void;
    registerQueue(name: string, options: Record<string, unknown>): Promise<unknown>;
    launch(): Promise<void>;
  };
}

function placeOf({ session }: BenchInput) {
  return { agent: "worker", instance_id: session, session: "default" };
}

await starters[settings.kind]();
process.send?.({ ready: true });
setInterval(() => {
  const report: WorkerReport = { done, begun };
  begun = [];
  process.send?.(report);
}, 20);
