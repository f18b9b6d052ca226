import { AsyncLocalStorage } from "node:async_hooks";
import { raceSignal } from "../base/abort.ts";
import { KitError } from "../base/kit-error.ts";
import { answerCall, type Callables } from "./answer-call.ts";
import type { PythonSession } from "./contract.ts";
import type { DataclassRegistry } from "./dataclass-registry.ts";
import { hintFor } from "./hints.ts";
import { prepareRun } from "./prepare-run.ts";
import type { ProcessPool } from "./process/process-pool.ts";
import type { ProcessEnd } from "./process/python-process.ts";
import { type RunEnd, runOnProcess } from "./process/run-on-process.ts";
import { exceptionLine, PythonError, type PythonExceptionInfo } from "./python-error.ts";
import { decodeDump, encodeDump } from "./state/dump.ts";
import {
  noVariables,
  type SessionVariables,
  selectVariables,
  updateVariables,
} from "./state/session-variables.ts";
import { decodeValue } from "./values/decode-value.ts";

/** A limit against a compromised process; a correct process sends at most half of it. */
const maxOutputChars = 200_000;

export function createPythonSession(
  pool: ProcessPool,
  registry: DataclassRegistry,
): Omit<PythonSession, "registerDataclass"> {
  // Set in code that runs inside a host call of this session's own Python.
  const inside = new AsyncLocalStorage<{ answered: boolean }>();
  let variables: SessionVariables = noVariables;
  let last: Promise<unknown> = Promise.resolve();

  /** Runs one call at a time, in order. */
  const inTurn = async <Value>(work: () => Promise<Value>, signal?: AbortSignal): Promise<Value> => {
    if (inside.getStore()?.answered === false) {
      throw new KitError({
        code: "invalid_request",
        message:
          "A function called by Python cannot use the same Python session, because the session is running.",
        hint: "Use another session in the function.",
      });
    }
    const before = last;
    const turn = Promise.withResolvers<void>();
    last = before.then(() => turn.promise);
    try {
      await raceSignal(before, signal);
      return await work();
    } finally {
      turn.resolve();
    }
  };

  return {
    async run(code, options = {}) {
      const prepared = prepareRun(code, options, registry);
      return inTurn(async () => {
        const selected = selectVariables({ code, inputs: Object.keys(options.inputs ?? {}) }, variables);
        const callables: Callables = { functions: prepared.functions, registry };
        const signal = options.signal ?? new AbortController().signal;
        const started = performance.now();
        let stdout = "";
        const ended = await runOnProcess(pool, {
          message: { ...prepared.message, state: selected.state },
          attachment: selected.attachment,
          signal,
          output: (text) => {
            if (stdout.length < maxOutputChars) stdout += text;
          },
          call: (message, callSignal) => {
            const call = { answered: false };
            return inside
              .run(call, () => answerCall(message, callables, callSignal))
              .finally(() => {
                call.answered = true;
              });
          },
        });
        const { message, attachment } = completed(ended, { code, stdout });
        const updated = updateVariables(variables, selected.names, { saved: message.saved, attachment });
        // A dataclass's `create` can throw, so save nothing before the result is decoded.
        const result = decodeValue(message.result, registry);
        variables = updated.variables;
        return {
          result,
          stdout,
          dropped_chars: message.dropped_chars,
          forgotten: updated.forgotten,
          duration_ms: performance.now() - started,
        };
      }, options.signal);
    },
    dump: () => inTurn(async () => encodeDump(variables)),
    async load(dump) {
      const loaded = decodeDump(dump);
      await inTurn(async () => {
        variables = loaded;
      });
    },
    reset: () =>
      inTurn(async () => {
        variables = noVariables;
      }),
  };
}

type Done = Extract<RunEnd, { readonly message: unknown }> & {
  readonly message: { readonly type: "done" };
};

/** Returns the result of a completed run; throws the error of any other end. */
function completed(
  ended: RunEnd,
  { code, stdout }: { readonly code: string; readonly stdout: string },
): Done {
  if ("end" in ended) {
    const exception = exceptionOf(ended.end);
    throw new PythonError({ exception, traceback: exceptionLine(exception), stdout });
  }
  const { message } = ended;
  if (message.type === "failed") {
    throw new PythonError({ ...message, stdout, hint: hintFor(message.exception, code) });
  }
  if (message.type === "refused") {
    throw new KitError({
      code: "invalid_request",
      message: `Python could not start the code: ${message.message}`,
    });
  }
  if (message.type === "broken") {
    const cause = new Error(message.message);
    throw new KitError({ code: "internal_error", message: "kit could not run the code.", cause });
  }
  return ended as Done;
}

function exceptionOf(end: ProcessEnd): PythonExceptionInfo {
  switch (end) {
    case "time":
      return { type: "TimeoutError", message: "time limit exceeded" };
    case "memory":
      return { type: "MemoryError", message: "memory limit exceeded" };
    case "crash":
      return { type: "SystemError", message: "the interpreter broke down" };
    case "closed":
      throw new KitError({ code: "unavailable", message: "Python was closed." });
  }
}
