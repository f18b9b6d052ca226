import { availableParallelism } from "node:os";
import { KitError } from "../base/kit-error.ts";
import { checkKeys } from "./check-keys.ts";
import type { AnyPythonDataclass, PythonRunner, PythonSession } from "./contract.ts";
import { createDataclassRegistry } from "./dataclass-registry.ts";
import type { ProcessPool } from "./process/process-pool.ts";

export interface PythonOptions {
  /** Programs that compute at the same time; default: one for each processor, at most 8. */
  readonly maxRunning?: number;
  /** Processes there may be, with those that wait for a function of the host; default 32. */
  readonly maxProcesses?: number;
  /** Milliseconds that a process is kept without work; default 30,000. */
  readonly idleMs?: number;
  /** The package to load; default `@pydantic/monty`. */
  readonly backend?: string;
}

/**
 * Python for code that is not trusted: Monty, in processes apart from this one, which are killed where they
 * pass a limit. Nothing is started, and Monty not loaded, before the first run.
 *
 * @example
 * ```ts
 * import { createPython } from "kit/python";
 *
 * const python = createPython({ maxRunning: 2 });
 * const { result } = await python.createSession().run("sum(prices)", { inputs: { prices: [3, 4] } });
 * console.log(result); // 7
 * await python.close();
 * ```
 */
export function createPython(options: PythonOptions = {}): PythonRunner {
  const keys = ["maxRunning", "maxProcesses", "idleMs", "backend"];
  checkKeys(options, "The options of createPython", { of: "option of createPython", keys });
  for (const name of ["maxRunning", "maxProcesses"] as const) {
    const { [name]: count = 1 } = options;
    if (Number.isInteger(count) && count >= 1) continue;
    throw new KitError({ code: "invalid_request", message: `${name} must be a whole number from 1 up.` });
  }
  let isClosed = false;
  let opening: Promise<ProcessPool> | undefined;

  async function openPool(): Promise<ProcessPool> {
    const { createProcessPool } = await import("./process/process-pool.ts");
    const pool = createProcessPool({
      backend: options.backend ?? "@pydantic/monty",
      maxRunning: options.maxRunning ?? Math.min(availableParallelism(), 8),
      maxProcesses: options.maxProcesses ?? 32,
      idleMs: options.idleMs ?? 30_000,
    });
    // A run after the end is refused by the pool itself.
    if (isClosed) await pool.close();
    return pool;
  }

  return {
    createSession(session = {}) {
      checkKeys(session, "The options of a session", { of: "option of a session", keys: ["dataclasses"] });
      return createSessionOnDemand(session.dataclasses ?? [], () => {
        opening ??= openPool();
        return opening;
      });
    },
    async close() {
      isClosed = true;
      await (await opening)?.close();
    },
  };
}

type LoadedSession = Omit<PythonSession, "registerDataclass">;

/** A session whose code is loaded by its first call: dataclasses are registered, and refused, at once. */
function createSessionOnDemand(
  dataclasses: readonly AnyPythonDataclass[],
  openPool: () => Promise<ProcessPool>,
): PythonSession {
  const registry = createDataclassRegistry();
  for (const dataclass of dataclasses) registry.register(dataclass);
  let opening: Promise<LoadedSession> | undefined;

  async function load(): Promise<LoadedSession> {
    const [{ createPythonSession }, pool] = await Promise.all([import("./python-session.ts"), openPool()]);
    return createPythonSession(pool, registry);
  }

  // Calls that wait for the same promise go on in the order in which they were made.
  function open(): Promise<LoadedSession> {
    opening ??= load();
    return opening;
  }

  return {
    run: async (code, options) => await (await open()).run(code, options),
    registerDataclass: (dataclass: AnyPythonDataclass) => registry.register(dataclass),
    dump: async () => await (await open()).dump(),
    load: async (dump) => await (await open()).load(dump),
    reset: async () => await (await open()).reset(),
  };
}
