import { KitError } from "../../base/kit-error.ts";
import type {
  PythonFunction,
  PythonResult,
  PythonRunner,
  PythonRunOptions,
  PythonSession,
} from "../../python/contract.ts";
import type { Harness, LiveSession } from "../agent-runtime.ts";
import { type AgentProfile, pythonProfileOf } from "../define/agent-profile.ts";
import type { ToolDefinition, ToolOutput } from "../define/tool.ts";
import { objectSchema } from "../tools/tool-environment.ts";

/** Runs Python as an operation of a session: queued, and stopped by the session's `abort`. */
export function runPython(
  harness: Pick<Harness, "python">,
  live: LiveSession,
  call: { readonly code: string; readonly options: PythonRunOptions },
): Promise<PythonResult> {
  const { code, options } = call;
  const { signal } = options;
  return live.operate({ kind: "python", signal }, async (operation) =>
    harness
      .python(live.key.session)
      .run(code, { ...withProfile(live.profile, options), signal: operation.signal }),
  );
}

/** The options of a run merged with the profile; the call's options win. */
function withProfile(profile: AgentProfile, options: PythonRunOptions): PythonRunOptions {
  const { functions, resourceLimits } = pythonProfileOf(profile.python);
  const limits = options.resourceLimits ?? resourceLimits;
  return {
    ...options,
    functions: { ...functions, ...options.functions },
    resourceLimits: limits,
  };
}

/** The Python sessions of an agent by session name, created on first use. */
export class PythonSessions {
  readonly #runner: PythonRunner | undefined;
  readonly #profile: AgentProfile;
  readonly #sessions = new Map<string, PythonSession>();

  constructor(runner: PythonRunner | undefined, profile: AgentProfile) {
    this.#runner = runner;
    this.#profile = profile;
  }

  get(name: string): PythonSession {
    const existing = this.#sessions.get(name);
    if (existing !== undefined) return existing;
    if (this.#runner === undefined) {
      throw new KitError({
        code: "unavailable",
        message: "This agent has no Python.",
        hint: "Pass `createPython()` of kit/python to its runtime.",
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

/** The tool name that is reserved if an agent has Python. */
export const pythonToolName = "run_code";

/** The `run_code` tool: Python with the session's variables and the functions of the profile. */
export function createPythonTool(
  profile: AgentProfile,
  python: () => PythonSession,
): ToolDefinition<{ readonly code: string }> {
  const { functions = {}, resourceLimits } = pythonProfileOf(profile.python);
  return {
    name: pythonToolName,
    description: describe(functions),
    input: objectSchema({ code: { type: "string", description: "The Python code." } }, ["code"]),
    exclusive: true,
    // The limits of the run are what ends it; this bounds the functions that it waits for.
    timeoutMs: 300_000 + (resourceLimits?.maxDurationSecs ?? 0) * 1_000,
    async execute({ code }, { signal }) {
      try {
        return toOutput(await python().run(code, { ...withProfile(profile, {}), returns: "repr", signal }));
      } catch (error) {
        if (!isPythonFailure(error)) throw error;
        return { content: join([error.stdout, error.traceback]), isError: true };
      }
    },
  };
}

function toOutput({ result, stdout, dropped_chars, forgotten }: PythonResult): ToolOutput {
  const parts = [stdout];
  if (dropped_chars > 0) parts.push(`[… ${dropped_chars} characters of output were dropped …]`);
  if (result !== "None") parts.push(`Result: ${String(result)}`);
  for (const { name, reason } of forgotten) parts.push(`[${name} is not kept for the next call: ${reason}]`);
  const text = join(parts);
  return text === "" ? "(no output)" : text;
}

function join(parts: readonly string[]): string {
  return parts
    .map((part) => part.trimEnd())
    .filter((part) => part !== "")
    .join("\n");
}

/** Whether the model's own code failed: only then does the model see the error.  */
function isPythonFailure(error: unknown): error is { readonly traceback: string; readonly stdout: string } {
  return error instanceof Error && "code" in error && error.code === "python_error";
}

const basics = `Runs Python code and gives back what it prints and the value of its last expression. Variables, functions and imports stay for the next call; a call that fails keeps nothing. It is a part of Python 3: no files, no network, no clock, no packages; the modules asyncio, datetime, json, math, pathlib, re, sys and typing.
Not there: class, yield, match, del (d.pop(k)), decorators, eval; str.format, % of texts and f"{n:,}" (f"{n:.2f}" is); a[1:3] = b; key=str.lower (key=lambda s: s.lower()); int(s, 16); sum(x > 2 for x in a) (sum(1 for x in a if x > 2)); sorting or max of lists of lists (key=tuple); d | e ({**d, **e}); loops over iter(a); re.sub with a function; a[0], a[1] = b; names of a function two levels up (pass them on); exceptions of anything but one text; collections, itertools, functools.
Wrong without an error: <, <=, >, >= of lists, of sets and of unlike types are False (compare tuples; issubset); x % y of floats is wrong where one is negative (x - y * (x // y)); round(2.675, 2) is 2.68; re.split drops what groups match; a generator expression is a list; hasattr is False for methods; frozenset == set is False; floats print as inf.0, NaN.0, 10000000000000000.0 and 0.00001.`;

function describe(functions: Readonly<Record<string, PythonFunction>>): string {
  const lines = Object.entries(functions).map(([name, definition]) => {
    const { signature, description } = typeof definition === "function" ? {} : definition;
    return `- ${signature ?? `${name}(...)`}${description === undefined ? "" : `: ${description}`}`;
  });
  if (lines.length === 0) return basics;
  return `${basics}\nFunctions it can call, without await:\n${lines.join("\n")}`;
}
