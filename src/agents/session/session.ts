import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { DeepPartial } from "../../base/record.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { EventBuffer, toDelta } from "../../protocol/event-buffer.ts";
import type { Message } from "../../protocol/message.ts";
import { partialResults } from "../../protocol/read-records.ts";
import type {
  AnyPythonDataclass,
  PythonDataclass,
  PythonObject,
  PythonResult,
  PythonRunOptions,
} from "../../python/contract.ts";
import type { ExecResult, Sandbox } from "../../sandboxes/contract.ts";
import type { Harness, Operation, OperationRequest } from "../agent-runtime.ts";
import type { Skill } from "../define/agent-profile.ts";
import type { EventHub } from "../events.ts";
import {
  type CompactOptions,
  checkedCommand,
  checkedOperationId,
  checkedText,
  checkOptions,
  type PromptOptions,
  type PromptResult,
  type ShellOptions,
  type SkillOptions,
  type TaskOptions,
} from "../operations/options.ts";
import { runPrompt } from "../operations/run-prompt.ts";
import { runPython } from "../operations/run-python.ts";
import { maskedBeforeGrant } from "../secrets.ts";

/**
 * The events of one operation as they happen, and its result. Reading is optional and never delays the operation,
 * which continues when a reader leaves. After its last event, the iteration of an operation that fails or is aborted throws
 * the error of `result`. Use one reader: several would share the events between them.
 *
 * @example
 * ```ts
 * import type { Session } from "kit";
 *
 * export async function print(session: Session): Promise<void> {
 *   const stream = session.stream("Summarize the README.");
 *   for await (const event of stream) if (event.type === "text_delta") process.stdout.write(event.text);
 *   console.log((await stream.result).usage.total_tokens);
 * }
 * ```
 */
export interface SessionStream<Result> extends AsyncIterable<KitEvent> {
  readonly result: Promise<PromptResult<Result>>;
  /**
   * A typed result as it grows, instead of the events: each value replaces the previous value, and a repaired answer
   * starts again. A value is what the model has written so far; the schema has not checked it. Ends at once without a schema.
   *
   * @example
   * ```ts
   * import type { Session } from "kit";
   * import { z } from "zod";
   *
   * export async function list(session: Session): Promise<readonly string[]> {
   *   const stream = session.stream("List the problems.", { result: z.object({ problems: z.array(z.string()) }) });
   *   for await (const { problems = [] } of stream.partialResults()) console.log(problems.at(-1));
   *   return (await stream.result).result.problems;
   * }
   * ```
   */
  partialResults(): AsyncIterable<DeepPartial<Result>>;
}

/**
 * A durable conversation. Operations run one at a time, in the order of the calls. Every operation accepts a `signal`,
 * and `abort` stops the running one; the next operation can continue from the history. An aborted operation throws a
 * `KitError` with the code `aborted`; its `cause` is the reason of the signal.
 *
 * @example
 * ```ts
 * import type { Session } from "kit";
 * import { z } from "zod";
 *
 * export async function review(session: Session): Promise<readonly string[]> {
 *   const { result } = await session.prompt("Review the last commit.", {
 *     result: z.object({ problems: z.array(z.string()) }),
 *   });
 *   return result.problems;
 * }
 * ```
 */
export interface Session<Output = unknown> {
  readonly name: string;
  /** The result has the type of the call's `result` schema, or else of the agent's `output`. */
  prompt<Result = Output>(text: string, options?: PromptOptions<Result>): Promise<PromptResult<Result>>;
  stream<Result = Output>(text: string, options?: PromptOptions<Result>): SessionStream<Result>;
  /** Runs a skill of the agent or the project by name, or a skill. */
  skill<Result = unknown>(
    skill: string | Skill,
    options?: SkillOptions<Result>,
  ): Promise<PromptResult<Result>>;
  /** Runs a prompt in a new session that shares the sandbox. */
  task<Result = unknown>(text: string, options?: TaskOptions<Result>): Promise<PromptResult<Result>>;
  /** Runs a command in the sandbox under the agent's policy; the history records it. */
  shell(command: string, options?: ShellOptions): Promise<ExecResult>;
  /**
   * Runs Python with the session's variables in a separate process; the history does not record it. Throws
   * `PythonError` for an exception, a limit included. See docs/python.md.
   */
  runPython(code: string, options?: PythonRunOptions): Promise<PythonResult>;
  /** Registers a dataclass for the Python of this session. */
  registerPythonDataclass<Instance extends object = PythonObject>(dataclass: PythonDataclass<Instance>): void;
  registerPythonDataclass(dataclass: AnyPythonDataclass): void;
  /** Dumps the variables of the session's Python as bytes; otherwise they end with this process. */
  dumpPython(): Promise<Uint8Array>;
  /** Replaces the variables with those of a dump. Throws `invalid_request` for other bytes. */
  loadPython(dump: Uint8Array): Promise<void>;
  /** Shortens the history now. Returns false if there was nothing to shorten. */
  compact(options?: CompactOptions): Promise<boolean>;
  /** Aborts the running operation and its tasks, and waits for their end. */
  abort(): Promise<boolean>;
  /** The active history: after a compaction, its summary and what was kept. */
  history(): Promise<readonly Message[]>;
  /** The sandbox, for the caller's own code: no policy applies and the history records nothing. */
  fs(): Promise<Sandbox>;
}

/**
 * The handle of a session. It holds only the name and looks up the live session on each call: an idle session may
 * have been evicted, and two live sessions of one name would not share a queue. A class, because there may be
 * thousands: their methods are shared.
 */
export class SessionHandle implements Session {
  readonly name: string;
  readonly #harness: Harness;

  constructor(harness: Harness, name: string) {
    this.name = name;
    this.#harness = harness;
  }

  prompt<Result = unknown>(text: string, options?: PromptOptions<Result>): Promise<PromptResult<Result>> {
    return this.#prompt(text, options);
  }

  stream<Result = unknown>(text: string, options: PromptOptions<Result> = {}): SessionStream<Result> {
    const id = options.operationId ?? createId("op");
    const events = collectEvents(this.#harness.events, id);
    const result = this.#prompt(text, options, id);
    // This also avoids an unhandled rejection when only the events are read.
    result.then(events.end, events.fail);
    const stream = { [Symbol.asyncIterator]: events.iterate };
    return { ...stream, result, partialResults: () => partialResults<Result>(stream) };
  }

  async skill<Result = unknown>(
    skill: string | Skill,
    options: SkillOptions<Result> = {},
  ): Promise<PromptResult<Result>> {
    checkOptions("skill", options);
    return this.#operate(requestOf("skill", options), async (operation) => {
      const { runSkill } = await import("../operations/run-skill.ts");
      return runSkill(this.#harness, operation, { skill, options });
    });
  }

  async task<Result = unknown>(
    text: string,
    options: TaskOptions<Result> = {},
  ): Promise<PromptResult<Result>> {
    checkOptions("task", options);
    checkedText(text);
    return this.#operate(requestOf("task", options), async (operation) => {
      const { startTask } = await import("../operations/run-task.ts");
      return startTask(this.#harness, operation, { text, key: operation.id, options });
    });
  }

  async shell(command: string, options: ShellOptions = {}): Promise<ExecResult> {
    checkOptions("shell", options);
    checkedCommand(command);
    return this.#operate(requestOf("shell", options), async (operation) => {
      const { runShell } = await import("../operations/run-shell.ts");
      return runShell(this.#harness, operation, { command, options });
    });
  }

  async runPython(code: string, options: PythonRunOptions = {}): Promise<PythonResult> {
    checkOptions("python", options);
    return runPython(this.#harness, this.#harness.liveSession(this.name), { code, options });
  }

  registerPythonDataclass(dataclass: AnyPythonDataclass): void {
    this.#harness.python(this.name).registerDataclass(dataclass);
  }

  async dumpPython(): Promise<Uint8Array> {
    return this.#harness.python(this.name).dump();
  }

  async loadPython(dump: Uint8Array): Promise<void> {
    return this.#harness.python(this.name).load(dump);
  }

  async compact(options: CompactOptions = {}): Promise<boolean> {
    checkOptions("compact", options);
    return this.#operate(requestOf("compact", options), async (operation) => {
      const { runCompact } = await import("../compaction/compact.ts");
      return runCompact(this.#harness, operation, options);
    });
  }

  async abort(): Promise<boolean> {
    return this.#harness.liveSession(this.name).abort();
  }

  async history(): Promise<readonly Message[]> {
    return [...(await this.#harness.liveSession(this.name).history())];
  }

  async fs(): Promise<Sandbox> {
    return this.#harness.liveSession(this.name).sandbox();
  }

  /** `streamId`: the id of a stream's operation. No `async`: its promise would live as long as the operation. */
  #prompt<Result>(
    text: string,
    given: PromptOptions<Result> | undefined,
    streamId?: string,
  ): Promise<PromptResult<Result>> {
    try {
      if (given !== undefined) checkOptions("prompt", given);
      const options = given ?? noOptions;
      // A text of the wrong type is refused by the operation.
      const message =
        typeof text === "string"
          ? maskedBeforeGrant(text, options.secrets, this.#harness.runtime)
          : undefined;
      const request =
        streamId === undefined
          ? requestOf("prompt", options, message)
          : { ...requestOf("stream", options, message), id: streamId };
      return this.#operate(request, (operation) =>
        runPrompt(this.#harness, operation, { text: checkedText(text), options }),
      );
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Enqueues an operation with the signal of its caller. */
  #operate<Value>(request: OperationRequest, work: (operation: Operation) => Promise<Value>): Promise<Value> {
    const { signal } = request;
    const running = this.#harness.liveSession(this.name).operate(request, work);
    if (signal === undefined) return running;
    return running.catch((error: unknown) => {
      throw signal.aborted && error === signal.reason ? toAborted(error) : error;
    });
  }
}

/** The error of a call that its `signal` ended; `cause` is the reason of the signal. */
function toAborted(reason: unknown): unknown {
  if (reason instanceof KitError) return reason;
  return new KitError({ code: "aborted", message: "The operation was aborted.", cause: reason });
}

const noOptions: PromptOptions<never> = {};

/** The options that operations have in common. */
type OperationOptions = Pick<
  PromptOptions<unknown>,
  "operationId" | "resumes" | "signal" | "images" | "clientId" | "rewindBefore" | "fork"
>;

function requestOf(
  kind: OperationRequest["kind"],
  { operationId, resumes = true, signal, images, clientId, rewindBefore, fork }: OperationOptions,
  message?: string,
): OperationRequest {
  if (fork !== undefined && rewindBefore !== undefined)
    throw new KitError({
      code: "invalid_request",
      message: "`rewindBefore` cannot be given with `fork`: `fork.before` is the message to go on before.",
    });
  return {
    kind,
    message,
    images: images?.length,
    clientId,
    rewindBefore,
    fork,
    id: operationId === undefined ? undefined : checkedOperationId(operationId),
    resumes: operationId !== undefined && resumes,
    signal,
  };
}

/** Buffers the events of an operation and its tasks for a reader, which never delays the operation. */
function collectEvents(
  hub: EventHub,
  operationId: string,
): { iterate(): AsyncIterator<KitEvent>; end(): void; fail(error: unknown): void } {
  const family = new Set([operationId]);
  const buffer = new EventBuffer<KitEvent>({ deltaOf: toDelta, ofDelta: (delta) => delta });
  const unsubscribe = hub.subscribe((event) => {
    if (!family.has(event.operation_id)) {
      if (event.parent_operation_id === undefined || !family.has(event.parent_operation_id)) return;
      family.add(event.operation_id);
    }
    buffer.push(event);
  });
  return {
    end() {
      unsubscribe();
      buffer.end();
    },
    fail(error) {
      unsubscribe();
      buffer.fail(error);
    },
    iterate() {
      const { next } = buffer[Symbol.asyncIterator]();
      // A reader that leaves: nothing more is collected.
      const leave = async (): Promise<IteratorResult<KitEvent>> => {
        unsubscribe();
        return { done: true, value: undefined };
      };
      return { next, return: leave };
    },
  };
}
