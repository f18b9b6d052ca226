import type { ApplicationData } from "../app/service/open-application.ts";
import { KitError } from "../base/kit-error.ts";
import type { SandboxFactory } from "../sandboxes/contract.ts";
import type { ServedApplication } from "../server/serve-application.ts";
import type { DurableDatabase, DurableStorage } from "../sqlite/durable-database.ts";

/** The part of a Durable Object's state that kit uses. */
export interface DurableState {
  readonly storage: AlarmStorage;
}

/** A Durable Object as the platform calls it. */
export interface DurableKit {
  fetch(request: Request): Promise<Response>;
  alarm(): Promise<void>;
}

/** The bindings of a worker: the namespace of its Durable Object, variables and secrets. */
export interface WorkerBindings {
  readonly KIT: {
    idFromName(name: string): unknown;
    get(id: unknown): { fetch(request: Request): Promise<Response> };
  };
}

export interface WorkerApplication {
  /** Imports the application; called within a Durable Object, where its files are in place. */
  readonly load: () => Promise<Omit<ApplicationData, "files">>;
  readonly files: () => Promise<ApplicationData["files"]>;
  /** Identifies the set of files; with another version kit builds the index again. */
  readonly version: string;
  /** The folder of the files in the memory of the Durable Object; the bundle's code uses the same path. */
  readonly folder: string;
  /** The files of the console and their folder; without them the worker serves no console. */
  readonly console?: { readonly folder: string; readonly files: WorkerApplication["files"] } | undefined;
}

export interface KitWorker {
  /** The class of the Durable Object: the application with its SQLite. The worker uses one object. */
  readonly Kit: new (
    state: DurableState,
    environment: Readonly<Record<string, unknown>>,
  ) => DurableKit;
  readonly worker: { fetch(request: Request, bindings: WorkerBindings): Promise<Response> };
}

/**
 * Creates a Cloudflare worker from an application; `kit build --target cloudflare` writes the module that calls it. One
 * Durable Object runs the application: its SQLite stores sessions, accepted work, events and the index, and its alarm
 * resumes due work.
 *
 * @example
 * import { createWorker } from "kit/cloudflare";
 *
 * const { Kit, worker } = createWorker({
 *   load: async () => ({ name: "shop", modules: {} }),
 *   files: async () => ({ "AGENTS.md": "# Rules\n\nAmounts are whole cents.\n" }),
 *   version: "1",
 *   folder: "/tmp/shop",
 * });
 * export { Kit, worker as default };
 */
export function createWorker(application: WorkerApplication): KitWorker {
  return {
    Kit: class implements DurableKit {
      readonly #object: ApplicationObject;

      constructor(state: DurableState, environment: Readonly<Record<string, unknown>>) {
        this.#object = new ApplicationObject(application, state, environment);
      }

      fetch(request: Request): Promise<Response> {
        return this.#object.fetch(request);
      }

      alarm(): Promise<void> {
        return this.#object.alarm();
      }
    },
    worker: { fetch: async (request, { KIT }) => await KIT.get(KIT.idFromName("kit")).fetch(request) },
  };
}

class ApplicationObject {
  readonly #application: WorkerApplication;
  readonly #state: DurableState;
  readonly #environment: Readonly<Record<string, string>>;
  #opening: Promise<Opened> | undefined;

  constructor(
    application: WorkerApplication,
    state: DurableState,
    bindings: Readonly<Record<string, unknown>>,
  ) {
    this.#application = application;
    this.#state = state;
    const variables = Object.entries(bindings).filter(([, value]) => typeof value === "string");
    this.#environment = Object.fromEntries(variables) as Record<string, string>;
  }

  async fetch(request: Request): Promise<Response> {
    if (request.headers.get("upgrade")?.toLowerCase() === "websocket") return toResponse(noSockets());
    let opened: Opened;
    try {
      opened = await this.#open();
    } catch (error) {
      return toResponse(error);
    }
    const { served } = opened;
    const { hostname } = new URL(request.url);
    if (!served.isGuarded && !isThisMachine(hostname)) return toResponse(unguarded());
    return await served.fetch(request, request.headers.get("cf-connecting-ip") ?? "");
  }

  /** The platform calls it at the time of the alarm, and loads the object if it is not in memory. */
  async alarm(): Promise<void> {
    const { wakeUps } = await this.#open();
    await wakeUps.set();
  }

  #open(): Promise<Opened> {
    if (this.#opening === undefined) {
      const opening = openObject(this.#application, this.#state, this.#environment);
      this.#opening = opening;
      // The next request tries again.
      opening.catch((error: unknown) => {
        report(error);
        this.#opening = undefined;
      });
    }
    return this.#opening;
  }
}

interface Opened {
  readonly served: ServedApplication;
  readonly wakeUps: ReturnType<typeof createWakeUps>;
}

async function openObject(
  { load, files, version, folder, console: page }: WorkerApplication,
  { storage }: DurableState,
  env: Readonly<Record<string, string>>,
): Promise<Opened> {
  const [{ serveApplication }, { putFiles }, { createEmbeddedEngine }, { SqliteSessionStore }, sqlite] =
    await Promise.all([
      import("../server/serve-application.ts"),
      import("../app/service/open-application.ts"),
      import("../engine/embedded/create-embedded-engine.ts"),
      import("../stores/sqlite/sqlite-store.ts"),
      import("../sqlite/durable-database.ts"),
    ]);
  const open = (store: string): DurableDatabase => new sqlite.DurableDatabase(storage, store);
  if (page !== undefined) putFiles(page.folder, await page.files());
  const wakeUps = createWakeUps(storage, report);
  const served = await serveApplication(
    { ...(await load()), files: await files() },
    {
      env,
      folder,
      index: { open: () => open("index"), version },
      store: new SqliteSessionStore({ file: ":memory:" }, open("sessions")),
      engine: (limits) => createEmbeddedEngine({ open, limits, onCommit: wakeUps.soon }),
      sandbox: noDisk,
      onError: report,
    },
  );
  await wakeUps.set();
  return { served, wakeUps };
}

/** Agents without a vendor's sandbox have no files and no commands. */
const noDisk: SandboxFactory = {
  name: "none",
  // An empty workspace: the agent still has the specs and guidelines of the project.
  locate: () => ({ folder: "/tmp/kit-code/none", shared: false, above: "/tmp/kit-code/workspaces" }),
  async isolation() {
    return { wall: "remote", description: "Workers have no disk and no commands." };
  },
  async open() {
    throw new KitError({
      code: "unavailable",
      message: "There is no workspace here: Workers have no disk and run no commands.",
      hint: "Give the agent a remote sandbox: e2b(), daytona() or runloop().",
    });
  },
};

function noSockets(): KitError {
  return new KitError({
    code: "unavailable",
    message: "kit does not serve WebSockets on Workers.",
    hint: "Ask for an event stream instead, with Accept: text/event-stream; kit/client does so with stream().",
  });
}

function unguarded(): KitError {
  return new KitError({
    code: "forbidden",
    message: "The server requires no key, so anyone could use it.",
    hint: "Set keys: wrangler secret put KIT_API_KEYS",
  });
}

function isThisMachine(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}

/** An error that occurs before the server exists, in the form that the server would send. */
function toResponse(error: unknown): Response {
  const known = error instanceof KitError ? error : undefined;
  const type = known?.code ?? "internal_error";
  const message = known?.message ?? "The application could not be opened.";
  const status = { unavailable: 503, forbidden: 403, invalid_request: 500 }[type as string] ?? 500;
  const hint = known?.hint === undefined ? {} : { hint: known.hint };
  return Response.json({ error: { type, message, ...hint } }, { status });
}

/** The log of a worker is its console. */
function report(error: unknown): void {
  // biome-ignore lint/suspicious/noConsole: the platform's log has no other interface.
  console.error(error);
}

/** The storage of a Durable Object, with its alarm. */
export interface AlarmStorage extends DurableStorage {
  getAlarm(): Promise<number | null>;
  setAlarm(at: number): Promise<void>;
}

/** Maximum time, in ms, for which an object with unfinished work is out of memory. */
const atWorkMs = 30_000;
/** Minimum time until an alarm, in ms: the running process executes overdue work. */
const leastMs = 1_000;

/**
 * Sets the alarm of a Durable Object to the time of the engine's next work. An object without requests leaves the
 * memory, with its timers; the alarm loads it again, and its engine resumes stored work. While there is work, the
 * alarm comes every half minute, which also keeps the object in memory.
 */
function createWakeUps(
  storage: AlarmStorage,
  onError: (error: unknown) => void,
): { set(): Promise<void>; soon(): void } {
  const isAtWork = `SELECT
    EXISTS (SELECT 1 FROM dispatches WHERE status = 'running' AND status <> 'completed')
    OR EXISTS (SELECT 1 FROM dispatches WHERE status = 'queued' AND status <> 'completed' AND next_attempt_at IS NULL)
    OR EXISTS (SELECT 1 FROM runs WHERE status IN ('queued', 'running') AND status <> 'completed') AS at_work`;
  const nextDue = `SELECT min(at) AS at FROM (
    SELECT min(next_attempt_at) AS at FROM dispatches WHERE status = 'queued' AND status <> 'completed'
    UNION ALL SELECT min(wake_at) FROM runs WHERE wake_at IS NOT NULL
    UNION ALL SELECT min(next_at) FROM schedules WHERE next_at IS NOT NULL)`;
  const read = (sql: string): number | undefined => {
    const [row] = storage.sql.exec(sql).raw();
    return typeof row?.[0] === "number" ? row[0] : undefined;
  };

  async function set(): Promise<void> {
    const now = Date.now();
    const due = read(isAtWork) === 1 ? now + atWorkMs : read(nextDue);
    if (due === undefined) return;
    const alarmAt = Math.max(due, now + leastMs);
    const current = await storage.getAlarm();
    // An alarm that fires too early sets the next one; moving it here would cost a write.
    if (current === null || current > alarmAt + leastMs) await storage.setAlarm(alarmAt);
  }

  let isComing = false;
  return {
    set,
    soon() {
      if (isComing) return;
      isComing = true;
      setTimeout(() => {
        isComing = false;
        set().catch(onError);
      }, 0);
    },
  };
}
