import type { Engine, EngineHandlers } from "./contract.ts";
import type { RestateEngineOptions } from "./restate/create-restate-engine.ts";

type Calls = {
  [Name in keyof Engine as Engine[Name] extends (...args: never[]) => Promise<unknown> ? Name : never]: true;
};

/**
 * An engine in memory that the first call creates and starts. For programs and commands that mostly prompt: the engine
 * holds no work of an earlier process, so before the first call it has nothing to do. Its event log is for runs: events
 * that are appended before the first call are dropped.
 */
export function createEngineOnDemand(create: () => Promise<Engine>): Engine {
  let handlers: EngineHandlers | undefined;
  let engine: Engine | undefined;
  let opening: Promise<Engine> | undefined;
  let drained: Promise<void> | undefined;

  async function load(): Promise<Engine> {
    engine = await create();
    // The drained engine itself refuses a call after the drain.
    if (drained !== undefined) await engine.drain({ timeoutMs: 0 });
    else if (handlers !== undefined) await engine.start(handlers);
    return engine;
  }

  function open(): Promise<Engine> {
    opening ??= load();
    return opening;
  }

  function call<Name extends keyof Calls>(name: Name): Engine[Name] {
    const forward = async (...args: unknown[]): Promise<unknown> => {
      const target = (await open())[name] as (...args: unknown[]) => Promise<unknown>;
      return await target(...args);
    };
    return forward as Engine[Name];
  }

  return {
    capabilities: { durable: false, distributed: false },
    events: {
      last: async (stream) => (await engine?.events.last(stream)) ?? 0,
      begin: async (stream) => await (await open()).events.begin(stream),
      state: async (stream) => (await engine?.events.state(stream)) ?? { id: undefined, highest: 0 },
      append: (stream, event) => engine?.events.append(stream, event),
      flush: async () => await engine?.events.flush(),
      read: async (stream, options) => (await engine?.events.read(stream, options)) ?? [],
      async *subscribe(stream, options) {
        yield* (await open()).events.subscribe(stream, options);
      },
      end: (stream) => engine?.events.end(stream),
      delete: async (stream) => await engine?.events.delete(stream),
    },
    deliveries: {
      record: async (delivery) => {
        const target = await open().catch(() => undefined);
        await target?.deliveries?.record(delivery);
      },
      list: async (filter) => (await (await open()).deliveries?.list(filter)) ?? { items: [] },
    },
    problem: () => engine?.problem?.(),
    warning: () => engine?.warning?.(),
    async start(startHandlers) {
      handlers = startHandlers;
    },
    drain(options) {
      drained ??= opening === undefined ? Promise.resolve() : opening.then((loaded) => loaded.drain(options));
      return drained;
    },
    load: call("load"),
    admit: call("admit"),
    inLine: call("inLine"),
    once: call("once"),
    getDispatch: call("getDispatch"),
    listDispatches: call("listDispatches"),
    awaitDispatch: call("awaitDispatch"),
    cancelDispatch: call("cancelDispatch"),
    listDeadLetters: call("listDeadLetters"),
    redrive: call("redrive"),
    mayForget: call("mayForget"),
    startRun: call("startRun"),
    getRun: call("getRun"),
    readJournal: async (...args) => await (await open()).readJournal?.(...args),
    listRuns: call("listRuns"),
    awaitRun: call("awaitRun"),
    retryRun: call("retryRun"),
    resumeHeld: async () => await engine?.resumeHeld?.(),
    cancelRun: call("cancelRun"),
    signal: call("signal"),
    putSchedule: call("putSchedule"),
    deleteSchedule: call("deleteSchedule"),
    listSchedules: call("listSchedules"),
  };
}

/** Opens the engine that several machines share: with Restate if `options.restate` is set, else on Postgres alone. */
export async function openSharedEngine(options: RestateEngineOptions): Promise<Engine> {
  if (options.restate !== undefined) {
    const { createRestateEngine } = await import("./restate/create-restate-engine.ts");
    return await createRestateEngine(options);
  }
  const { createPostgresEngine } = await import("./postgres/create-postgres-engine.ts");
  return await createPostgresEngine(options);
}
