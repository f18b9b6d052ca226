import { sharedEngineOf, toEngineLimits } from "../../app/config/engine-config.ts";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import { maskOf } from "../../app/runtime/known-secrets.ts";
import type { ApplicationData, ApplicationProject } from "../../app/service/open-application.ts";
import { openProjectService } from "../../app/service/open-project-service.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import { thrownText } from "../../base/thrown.ts";
import type { Engine } from "../../engine/contract.ts";
import { createEngineOnDemand } from "../../engine/open-engine.ts";
import type { BriefEngine } from "../../engine/postgres/asked-work.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { createConfiguredServer } from "../serve-application.ts";

/** The connections, shards and agents that a process holds during calls. */
export interface OpenedShift extends Pick<BriefEngine, "takeDue" | "atRest"> {
  fetch(request: Request, sender: string): Promise<Response>;
  /** Hands running work over after at most `timeoutMs`, and releases everything. */
  close(timeoutMs: number): Promise<void>;
}

/**
 * The concurrent calls of a function in one process. The first call opens the shared resources, and the last one releases them, so
 * that a process that the platform then freezes holds no connection, no lock and no work.
 */
export class Shifts {
  readonly #open: () => Promise<OpenedShift>;
  #calls = 0;
  #opened: Promise<OpenedShift> | undefined;
  #closed: Promise<void> = Promise.resolve();

  constructor(open: () => Promise<OpenedShift>) {
    this.#open = open;
  }

  async enter(): Promise<OpenedShift> {
    this.#calls += 1;
    this.#opened ??= this.#closed.then(this.#open);
    try {
      return await this.#opened;
    } catch (error) {
      await this.leave(0);
      throw error;
    }
  }

  async leave(timeoutMs: number): Promise<void> {
    this.#calls -= 1;
    if (this.#calls > 0) return;
    const opened = this.#opened;
    this.#opened = undefined;
    this.#closed = this.#closed
      .then(async () => await (await opened)?.close(timeoutMs))
      .catch(() => undefined);
    await this.#closed;
  }
}

/** The default number of inputs and runs that a function runs concurrently. */
const concurrency = 32;
/** Connections of a function in addition to the one for its locks: a database has few, and there are many functions. */
const maxConnections = 4;

/** Opens the agents of a project with their own engine, and the server for them. */
export async function openShift(
  { project, loaded: givenConfig }: ApplicationProject,
  modules: ApplicationData["modules"],
): Promise<OpenedShift> {
  const loaded = onPostgres(givenConfig);
  const mask = maskOf(loaded);
  // The platform stores what functions write to the console.
  const onError = (error: unknown): void => {
    const text = error instanceof Error ? (error.stack ?? error.message) : thrownText(error);
    process.stderr.write(`${mask(text)}\n`);
  };
  const engine = await openEngine(loaded);
  const works = "takeDue" in engine;
  const store = works ? await openSessions(loaded) : undefined;
  const service = await openProjectService({
    project,
    loaded: works ? loaded : withoutDatabase(loaded),
    engine,
    store,
    modules,
    housekeeping: works,
    endsIdle: false,
    onError,
  });
  const server = createConfiguredServer({ project, loaded, service }, { onError });
  return {
    fetch: (request, remoteAddress) => server.fetch(request, { localAddress: "0.0.0.0", remoteAddress }),
    async takeDue() {
      if (!works) throw engine.problem?.();
      await engine.takeDue();
    },
    async atRest() {
      if (works) await engine.atRest();
    },
    async close(timeoutMs) {
      await server.close();
      await service.close({ timeoutMs });
      await store?.close();
    },
  };
}

/** Configures the engine and the sessions of a function for Postgres, whatever a machine with a disk would use. */
function onPostgres(loaded: LoadedConfig): LoadedConfig {
  const { config } = loaded;
  return { ...loaded, config: { ...config, engine: { ...config.engine, kind: "postgres" } } };
}

/** Opens the session store in the engine's database; undefined if the configuration names another place. */
async function openSessions({ config, environment }: LoadedConfig): Promise<SessionStore | undefined> {
  const shared = sharedEngineOf(config, environment);
  if (shared === undefined || config.store !== undefined) return undefined;
  const { PostgresSessionStore } = await import("../../stores/postgres/postgres-store.ts");
  const { url, schema } = shared;
  return new PostgresSessionStore({ url, maxConnections, ...defined({ schema }) });
}

/** Opens the agents without a database: they are listed, and refuse work with the error of the engine. */
function withoutDatabase(loaded: LoadedConfig): LoadedConfig {
  const { config } = loaded;
  return { ...loaded, config: { ...config, engine: { kind: "embedded" }, store: "memory" } };
}

/** Opens the engine; without a database, an engine that refuses everything with the reason. */
async function openEngine({ config, environment }: LoadedConfig): Promise<BriefEngine | Engine> {
  try {
    const shared = sharedEngineOf(config, environment);
    if (shared === undefined) throw new Error("Unreachable: the engine is Postgres.");
    const { createBriefEngine } = await import("../../engine/postgres/create-postgres-engine.ts");
    const limits = {
      running: concurrency,
      ...toEngineLimits(config.engine ?? {}, config.agent?.max_waiting),
    };
    return await createBriefEngine({ ...shared, limits, maxConnections });
  } catch (error) {
    const problem = toProblem(error);
    return {
      ...createEngineOnDemand(() => Promise.reject(problem)),
      problem: () => problem,
      drain: async () => undefined,
    };
  }
}

function toProblem(cause: unknown): KitError {
  const error = cause instanceof KitError ? cause : undefined;
  return new KitError({
    code: "unavailable",
    message: `There is no database for sessions and accepted work: ${error?.message ?? "it cannot be opened."}`,
    ...defined({ hint: error?.hint }),
    cause,
  });
}
