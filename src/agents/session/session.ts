import { createId } from "../../base/id.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { EventBuffer, toDelta } from "../../protocol/event-buffer.ts";
import type { Message } from "../../protocol/message.ts";
import type {
  AnyPythonDataclass,
  PythonDataclass,
  PythonObject,
  PythonResult,
  PythonRunOptions,
} from "../../python/contract.ts";
import type { ExecResult, Sandbox } from "../../sandboxes/contract.ts";
import type { Harness, LiveSession } from "../agent-runtime.ts";
import type { Skill } from "../define/skill.ts";
import type { EventHub } from "../events.ts";
import { checkedCommand, checkedText, checkOptions } from "../operations/check-options.ts";
import { resumable } from "../operations/input.ts";
import type { PromptOptions, PromptResult } from "../operations/prompt-options.ts";
import { type CompactOptions, runCompact } from "../operations/run-compact.ts";
import { runPrompt } from "../operations/run-prompt.ts";
import { runPython } from "../operations/run-python.ts";
import { runShell, type ShellOptions } from "../operations/run-shell.ts";
import { runSkill, type SkillOptions } from "../operations/run-skill.ts";
import { runTask, type TaskOptions } from "../operations/run-task.ts";

/**
 * The events of one operation as they happen, and its result. Reading is optional, and no reader delays the
 * operation; it goes on when one leaves. For one reader: several would share the events between them.
 */
export interface SessionStream<Result> extends AsyncIterable<KitEvent> {
  readonly result: Promise<PromptResult<Result>>;
}

/**
 * A durable conversation. Operations run one at a time in the order asked; each call waits for those
 * before it. Every operation takes a `signal`, and `abort` stops the running one: the history then is
 * one that the next operation can go on from.
 */
export interface Session {
  readonly name: string;
  prompt<Result = unknown>(text: string, options?: PromptOptions<Result>): Promise<PromptResult<Result>>;
  stream<Result = unknown>(text: string, options?: PromptOptions<Result>): SessionStream<Result>;
  /** Runs a skill of the agent or the project by name, or a skill. */
  skill<Result = unknown>(
    skill: string | Skill,
    options?: SkillOptions<Result>,
  ): Promise<PromptResult<Result>>;
  /** Works on a text in a session of its own that shares the sandbox. */
  task<Result = unknown>(text: string, options?: TaskOptions<Result>): Promise<PromptResult<Result>>;
  /** Runs a command in the sandbox under the agent's policy; the history keeps it. */
  shell(command: string, options?: ShellOptions): Promise<ExecResult>;
  /**
   * Runs Python with the session's variables, apart from this process; the history does not show it. Throws
   * `PythonError` for an exception, a limit included. See docs/python.md.
   */
  runPython(code: string, options?: PythonRunOptions): Promise<PythonResult>;
  /** Makes a dataclass known to the Python of this session. */
  registerPythonDataclass<Instance extends object = PythonObject>(dataclass: PythonDataclass<Instance>): void;
  registerPythonDataclass(dataclass: AnyPythonDataclass): void;
  /** The variables of the session's Python as bytes: they live as long as this process, unless kept. */
  dumpPython(): Promise<Uint8Array>;
  /** Takes the variables of a dump in place of its own. Throws `invalid_request` for bytes that are none. */
  loadPython(dump: Uint8Array): Promise<void>;
  /** Shortens the history now. False when there was nothing to shorten. */
  compact(options?: CompactOptions): Promise<boolean>;
  /** Stops the running operation with all that it started, and waits for its end. */
  abort(): Promise<boolean>;
  /** The active history: after a compaction, its summary and what was kept. */
  history(): Promise<readonly Message[]>;
  /** The sandbox's files, for the caller's own code: no policy, no trace in the history. */
  fs(): Promise<Sandbox>;
}

/**
 * The handle of a session. It holds the name only, and asks for what is alive each time: a session that
 * rests may have been forgotten meanwhile, and two of one name would not wait for each other.
 */
export function createSession(harness: Harness, name: string): Session {
  return new NamedSession(harness, name);
}

// A class, because there may be thousands: their methods are shared.
class NamedSession implements Session {
  readonly name: string;
  readonly #harness: Harness;

  constructor(harness: Harness, name: string) {
    this.name = name;
    this.#harness = harness;
  }

  prompt<Result = unknown>(text: string, options: PromptOptions<Result> = {}): Promise<PromptResult<Result>> {
    return this.#prompt("prompt", { text, options });
  }

  stream<Result = unknown>(text: string, options: PromptOptions<Result> = {}): SessionStream<Result> {
    const id = options.operationId ?? createId("op");
    const events = collectEvents(this.#harness.events, id);
    const result = this.#prompt("stream", { text, options, id }).finally(events.end);
    // Who reads the events only must not be punished for not awaiting the result.
    result.catch(() => undefined);
    return { result, [Symbol.asyncIterator]: events.iterate };
  }

  async skill<Result = unknown>(
    skill: string | Skill,
    options: SkillOptions<Result> = {},
  ): Promise<PromptResult<Result>> {
    checkOptions("skill", options);
    return runSkill(this.#harness, this.#live(), { skill, options });
  }

  async task<Result = unknown>(
    text: string,
    options: TaskOptions<Result> = {},
  ): Promise<PromptResult<Result>> {
    checkOptions("task", options);
    return runTask(this.#harness, this.#live(), { text: checkedText(text), options });
  }

  async shell(command: string, options: ShellOptions = {}): Promise<ExecResult> {
    checkOptions("shell", options);
    return runShell(this.#harness, this.#live(), { command: checkedCommand(command), options });
  }

  async runPython(code: string, options: PythonRunOptions = {}): Promise<PythonResult> {
    checkOptions("python", options);
    return runPython(this.#harness, this.#live(), { code, options });
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
    return runCompact(this.#harness, this.#live(), options);
  }

  async abort(): Promise<boolean> {
    return this.#live().abort();
  }

  async history(): Promise<readonly Message[]> {
    return [...(await this.#live().history())];
  }

  async fs(): Promise<Sandbox> {
    return this.#live().sandbox();
  }

  #live(): LiveSession {
    return this.#harness.live(this.name);
  }

  async #prompt<Result>(
    kind: "prompt" | "stream",
    call: { readonly text: string; readonly options: PromptOptions<Result>; readonly id?: string },
  ): Promise<PromptResult<Result>> {
    checkOptions("prompt", call.options);
    const { signal, operationId, resumes } = call.options;
    return this.#live().operate(
      {
        kind,
        ...(call.id && { id: call.id }),
        ...resumable(operationId, resumes),
        ...(signal && { signal }),
      },
      (operation) =>
        runPrompt(this.#harness, operation, { text: checkedText(call.text), options: call.options }),
    );
  }
}

/** Collects the events of an operation and of the tasks below it, for a reader in its own time. */
function collectEvents(
  hub: EventHub,
  operationId: string,
): { iterate(): AsyncIterator<KitEvent>; end(): void } {
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
