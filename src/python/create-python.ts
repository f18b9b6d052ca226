import { availableParallelism } from "node:os";
import { KitError } from "../base/kit-error.ts";
import { checkKeys } from "./check-keys.ts";
import type { PythonRunner } from "./contract.ts";
import { createProcessPool } from "./process/process-pool.ts";
import { createPythonSession } from "./python-session.ts";

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
 */
export function createPython(options: PythonOptions = {}): PythonRunner {
  const keys = ["maxRunning", "maxProcesses", "idleMs", "backend"];
  checkKeys(options, "The options of createPython", { of: "option of createPython", keys });
  for (const name of ["maxRunning", "maxProcesses"] as const) {
    const { [name]: count = 1 } = options;
    if (Number.isInteger(count) && count >= 1) continue;
    throw new KitError({ code: "invalid_request", message: `${name} must be a whole number from 1 up.` });
  }
  const pool = createProcessPool({
    backend: options.backend ?? "@pydantic/monty",
    maxRunning: options.maxRunning ?? Math.min(availableParallelism(), 8),
    maxProcesses: options.maxProcesses ?? 32,
    idleMs: options.idleMs ?? 30_000,
  });
  return {
    createSession(session = {}) {
      checkKeys(session, "The options of a session", { of: "option of a session", keys: ["dataclasses"] });
      return createPythonSession(pool, session.dataclasses ?? []);
    },
    close: () => pool.close(),
  };
}
