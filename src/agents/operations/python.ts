import { KitError } from "../../base/kit-error.ts";
import type { PythonResult, PythonRunner, PythonRunOptions, PythonSession } from "../../python/contract.ts";
import type { AgentProfile } from "../agent-profile.ts";
import type { Harness, LiveSession } from "../agent-runtime.ts";
import { pythonProfileOf } from "../python-profile.ts";

/** Runs Python in a session, as an operation: in its turn, and stopped by the session's `abort`. */
export function runPython(
  harness: Harness,
  live: LiveSession,
  call: { readonly code: string; readonly options: PythonRunOptions },
): Promise<PythonResult> {
  const { code, options } = call;
  const { signal } = options;
  return live.operate({ kind: "python", ...(signal && { signal }) }, async (operation) =>
    harness
      .python(live.key.session)
      .run(code, { ...withProfile(live.profile, options), signal: operation.signal }),
  );
}

/** The options of a run with what the profile says; the call's own words win. */
export function withProfile(profile: AgentProfile, options: PythonRunOptions): PythonRunOptions {
  const { functions, resourceLimits } = pythonProfileOf(profile.python);
  const limits = options.resourceLimits ?? resourceLimits;
  return {
    ...options,
    functions: { ...functions, ...options.functions },
    ...(limits === undefined ? {} : { resourceLimits: limits }),
  };
}

/** The Python of an agent's sessions by their names, made where it is asked for. */
export class PythonSessions {
  readonly #runner: PythonRunner | undefined;
  readonly #profile: AgentProfile;
  readonly #sessions = new Map<string, PythonSession>();

  constructor(runner: PythonRunner | undefined, profile: AgentProfile) {
    this.#runner = runner;
    this.#profile = profile;
  }

  get(name: string): PythonSession {
    const known = this.#sessions.get(name);
    if (known !== undefined) return known;
    if (this.#runner === undefined) {
      throw new KitError({
        code: "unavailable",
        message: "This agent has no Python.",
        hint: "Give its runtime one: `createPython()` of kit/python.",
      });
    }
    const { dataclasses = [] } = pythonProfileOf(this.#profile.python);
    const session = this.#runner.createSession({ dataclasses });
    this.#sessions.set(name, session);
    return session;
  }

  /** Forgets the variables of a session. */
  delete(name: string): void {
    this.#sessions.delete(name);
  }
}
