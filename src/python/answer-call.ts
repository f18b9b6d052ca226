import { withDeadline } from "../base/abort.ts";
import type { PythonFunction, PythonValue } from "./contract.ts";
import type { DataclassRegistry } from "./dataclass-registry.ts";
import { toPythonException } from "./host-exception.ts";
import type { AnswerMessage, CallMessage } from "./process/messages.ts";
import { PythonException } from "./python-error.ts";
import { decodeValue } from "./values/decode-value.ts";
import { encodeValue } from "./values/encode-value.ts";

const defaultFunctionTimeoutMs = 60_000;

/** The functions and dataclasses that Python may call. */
export interface Callables {
  readonly functions: ReadonlyMap<string, PythonFunction>;
  readonly registry: DataclassRegistry;
}

/**
 * Answers a call of Python's with the host's function or method. Nothing is thrown: what goes wrong is an
 * exception in Python. A function that ignores its signal is left behind when its time is over.
 */
export async function answerCall(
  message: CallMessage,
  callables: Callables,
  signal: AbortSignal,
): Promise<AnswerMessage> {
  const { registry } = callables;
  try {
    const args = message.args.map((value) => decodeValue(value, registry));
    // Without a prototype: the names are Python's.
    const kwargs: Record<string, PythonValue> = Object.create(null);
    for (const [name, value] of message.kwargs) kwargs[name] = decodeValue(value, registry);
    const { work, timeoutMs } = findCallable(message, callables);
    const value = await withDeadline((callSignal) => work({ args, kwargs, signal: callSignal }), {
      ms: timeoutMs,
      signal,
      onTimeout: () =>
        new PythonException(
          "TimeoutError",
          `${message.name}() gave no answer within ${timeoutMs / 1_000} seconds`,
        ),
    });
    return { type: "answer", value: encodeValue(value, `the result of ${message.name}()`, registry) };
  } catch (error) {
    return { type: "raise", exception: toPythonException(error) };
  }
}

interface Callable {
  readonly timeoutMs: number;
  work(call: {
    readonly args: readonly PythonValue[];
    readonly kwargs: Readonly<Record<string, PythonValue>>;
    readonly signal: AbortSignal;
  }): unknown;
}

function findCallable(message: CallMessage, { functions, registry }: Callables): Callable {
  if (message.dataclass !== undefined) {
    const method = registry.get(message.dataclass)?.methods.get(message.name);
    if (method === undefined) throw new PythonException("AttributeError", `no method '${message.name}'`);
    return {
      timeoutMs: defaultFunctionTimeoutMs,
      work: ({ args, kwargs }) => {
        const [self, ...rest] = args;
        return method(self as object, ...withKeywords(rest, kwargs));
      },
    };
  }
  const found = functions.get(message.name);
  if (found === undefined) throw new PythonException("NameError", `name '${message.name}' is not defined`);
  if (typeof found !== "function") {
    return { timeoutMs: found.timeoutMs ?? defaultFunctionTimeoutMs, work: (call) => found.execute(call) };
  }
  const plain = found as (...args: readonly unknown[]) => unknown;
  return {
    timeoutMs: defaultFunctionTimeoutMs,
    work: ({ args, kwargs }) => plain(...withKeywords(args, kwargs)),
  };
}

function withKeywords(
  args: readonly PythonValue[],
  kwargs: Readonly<Record<string, PythonValue>>,
): readonly unknown[] {
  return Object.keys(kwargs).length === 0 ? args : [...args, kwargs];
}
