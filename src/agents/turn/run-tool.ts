import { longestTimerMs } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { thrownText } from "../../base/thrown.ts";
import { messagesOf } from "../../protocol/error-cause.ts";
import { isUnstarted, outageOf } from "../../protocol/outage.ts";
import { builtInToolNames } from "../define/profile-settings.ts";
import type { ToolDefinition, ToolReturn } from "../define/tool.ts";
import { Postponed, willResume } from "../log/suspension.ts";
import {
  failed,
  isGenerator,
  type Outcome,
  type RunningCall,
  readProgress,
  toOutcome,
} from "./running-call.ts";

const defaultToolTimeoutMs = 120_000;

/** A call of a tool that starts now. */
export interface Execution {
  readonly input: unknown;
  readonly context: RunningCall;
  readonly signal: AbortSignal;
  readonly running: RunningTools;
  /**
   * Called when the tool begins to work, and again after each answer of a person; returns the callback for the end of that work, also
   * after its timeout. What a person does during the wait is not the work of the tool.
   */
  readonly begin: ((tool: string) => (() => void) | undefined) | undefined;
}

/** The tools of one operation that run now. One listener stops them all: one for each would cost more than a short call. */
export class RunningTools {
  readonly #signal: AbortSignal;
  #listens = false;
  #work: ToolWork | undefined;
  /** The tools besides the first one: most turns call one tool. */
  #others: Set<ToolWork> | undefined;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    this.#work = undefined;
    this.#others = undefined;
  }

  add(work: ToolWork): void {
    if (!this.#listens) this.#listen();
    if (this.#work === undefined) this.#work = work;
    else {
      this.#others ??= new Set();
      this.#others.add(work);
    }
  }

  remove(work: ToolWork): void {
    if (this.#work === work) this.#work = undefined;
    else this.#others?.delete(work);
  }

  #listen(): void {
    this.#listens = true;
    this.#signal.addEventListener("abort", () => {
      this.#work?.stop();
      for (const work of this.#others ?? []) work.stop();
    });
  }
}

/**
 * Runs a tool until it ends, is aborted or times out. A tool that ignores its signal is abandoned, so that aborts and
 * time limits always hold.
 */
export function execute(tool: ToolDefinition, run: Execution): Outcome | Promise<Outcome> {
  return new ToolWork(tool, run).start();
}

/** The work of a tool in one call. A class: functions for each of its steps would cost more than a short call. */
class ToolWork {
  readonly #tool: ToolDefinition;
  readonly #run: Execution;
  #ended: (() => void) | undefined;
  #isOver = false;
  /** Undefined before there is a wait for the outcome, and after it. */
  #outcome: PromiseWithResolvers<Outcome> | undefined;
  readonly #timeoutMs: number;
  #leftMs: number;
  #since = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(tool: ToolDefinition, run: Execution) {
    this.#tool = tool;
    this.#run = run;
    this.#timeoutMs = Math.min(tool.timeoutMs ?? defaultToolTimeoutMs, longestTimerMs);
    this.#leftMs = this.#timeoutMs;
  }

  start(): Outcome | Promise<Outcome> {
    const { input, context } = this.#run;
    this.#begin();
    context.work = this;
    let work: ToolReturn | Promise<ToolReturn>;
    try {
      const returned = this.#tool.execute(input, context);
      work = isGenerator(returned) ? readProgress(returned, context) : returned;
    } catch (error) {
      this.#finish();
      return thrownOutcome(error);
    }
    if (isPromise(work)) return this.#wait(work);
    this.#finish();
    context.leaveQuestions();
    return toOutcome(work);
  }

  /** Called when the call begins or ends to wait for a person, who can take days. */
  asking(isAsking: boolean): void {
    if (isAsking) this.#pause();
    else if (!this.#isOver) this.#begin();
    if (this.#outcome === undefined) return;
    clearTimeout(this.#timer);
    if (isAsking) this.#leftMs -= performance.now() - this.#since;
    else this.#setTimer();
  }

  #begin(): void {
    this.#ended = this.#run.begin?.(this.#tool.name);
  }

  /** Called when the operation is aborted. */
  stop(): void {
    const { context, signal } = this.#run;
    // A call that waits for a person has not acted on the answer: it is called again.
    const isLater = resumesLater(this.#tool, signal) || (context.isAsking && willResume(signal));
    context.stop(signal.reason);
    this.#end(isLater ? new Postponed() : stopped("The call was aborted.", signal));
  }

  /** Waits for the outcome, until the call is aborted or times out. */
  #wait(work: Promise<ToolReturn>): Promise<Outcome> {
    const { context, running, signal } = this.#run;
    const outcome = Promise.withResolvers<Outcome>();
    this.#outcome = outcome;
    if (!context.isAsking) this.#setTimer();
    running.add(this);
    work.then(
      (output) => {
        this.#finish();
        this.#end(settledOutcome(output));
      },
      (error: unknown) => {
        this.#finish();
        this.#end(this.#failure(error));
      },
    );
    // The tool itself may have aborted before the listener was added.
    if (signal.aborted) this.stop();
    return outcome.promise;
  }

  #setTimer(): void {
    this.#since = performance.now();
    this.#timer = setTimeout(() => this.#expire(), Math.max(0, this.#leftMs));
  }

  #expire(): void {
    const { context, signal } = this.#run;
    const message = `The tool did not finish within ${this.#timeoutMs / 1000} seconds and was stopped.`;
    this.#end(stopped(message, signal));
    context.stop(new Error(message));
  }

  #failure(error: unknown): Outcome | Postponed {
    const { name, idempotent } = this.#tool;
    // After an outage, an idempotent call, such as a task, continues, and so does one that has not begun.
    // kit's own file tools change nothing before their file is open.
    const isFile = name === "write" || name === "edit";
    const unstarted = builtInToolNames.has(name) && (isFile || isUnstarted(error));
    const cause = idempotent === true || unstarted ? outageOf(error) : undefined;
    if (cause === undefined) return thrownOutcome(error);
    return new Postponed("There is an outage.", { cause, isUnstarted: unstarted });
  }

  #end(ended: Outcome | Postponed): void {
    const outcome = this.#outcome;
    if (outcome === undefined) return;
    this.#outcome = undefined;
    clearTimeout(this.#timer);
    this.#run.context.leaveQuestions();
    this.#run.running.remove(this);
    if (ended instanceof Postponed) outcome.reject(ended);
    else outcome.resolve(ended);
  }

  #pause(): void {
    this.#ended?.();
    this.#ended = undefined;
  }

  #finish(): void {
    this.#isOver = true;
    this.#pause();
  }
}

function stopped(message: string, { aborted }: AbortSignal): Outcome {
  const outcome = failed(`${message} What it had done by then is unknown.`);
  return { ...outcome, outcome: "unknown", ...(aborted && { aborted: true }) };
}

/** Whether the call continues later: an idempotent call, such as a task, of an operation that will be resumed. */
export function resumesLater(tool: ToolDefinition, signal: AbortSignal): boolean {
  return tool.idempotent === true && willResume(signal);
}

function settledOutcome(output: ToolReturn): Outcome {
  try {
    return toOutcome(output);
  } catch (error) {
    return thrownOutcome(error);
  }
}

function isPromise(work: ToolReturn | Promise<ToolReturn>): work is Promise<ToolReturn> {
  return typeof work === "object" && work !== null && "then" in work && typeof work.then === "function";
}

export function thrownOutcome(error: unknown): Outcome {
  return { ...failed(errorText(error)), thrown: error };
}

function errorText(error: unknown): string {
  if (error instanceof KitError)
    return error.hint === undefined ? error.message : `${error.message} ${error.hint}`;
  const [, ...causes] = messagesOf(error);
  return [thrownText(error), ...causes].join("; caused by: ");
}
