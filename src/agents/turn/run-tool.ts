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
  /**
   * Called when the tool begins to work, and again after each answer of a person; returns the callback for the end of that work, also
   * after its timeout. What a person does during the wait is not the work of the tool.
   */
  readonly begin: () => (() => void) | undefined;
}

/**
 * Runs a tool until it ends, is aborted or times out. A tool that ignores its signal is abandoned, so that aborts and
 * time limits always hold.
 */
export function execute(tool: ToolDefinition, run: Execution): Outcome | Promise<Outcome> {
  const { context } = run;
  let ended = run.begin();
  let isOver = false;
  const pause = (): void => {
    ended?.();
    ended = undefined;
  };
  const finish = (): void => {
    isOver = true;
    pause();
  };
  // V8 creates a function that is assigned to a field where it is written in the old space, with all that it refers to.
  const onAsking = (isAsking: boolean): void => {
    if (isAsking) pause();
    else if (!isOver) ended = run.begin();
  };
  context.onAsking = onAsking;
  let work: ToolReturn | Promise<ToolReturn>;
  try {
    const returned = tool.execute(run.input, context);
    work = isGenerator(returned) ? readProgress(returned, context) : returned;
  } catch (error) {
    finish();
    return thrownOutcome(error);
  }
  if (!isPromise(work)) {
    finish();
    context.leaveQuestions();
    return toOutcome(work);
  }
  work.then(finish, finish);
  return outcomeWithin(tool, run, work);
}

/** Waits for the outcome of a tool, until it is aborted or times out. */
function outcomeWithin(
  tool: ToolDefinition,
  { context, signal }: Execution,
  work: Promise<ToolReturn>,
): Promise<Outcome> {
  const timeoutMs = Math.min(tool.timeoutMs ?? defaultToolTimeoutMs, longestTimerMs);
  return new Promise((resolve, reject) => {
    let leftMs = timeoutMs;
    let since = performance.now();
    let timer: NodeJS.Timeout | undefined;
    const end = (outcome: Outcome | Postponed): void => {
      context.onAsking = onAsking;
      clearTimeout(timer);
      context.leaveQuestions();
      signal.removeEventListener("abort", onAbort);
      if (outcome instanceof Postponed) reject(outcome);
      else resolve(outcome);
    };
    const onAbort = (): void => {
      // A call that waits for a person has not acted on the answer: it is called again.
      const isLater = resumesLater(tool, signal) || (context.isAsking && willResume(signal));
      context.stop(signal.reason);
      end(isLater ? new Postponed() : stopped("The call was aborted.", signal));
    };
    const expire = (): void => {
      const message = `The tool did not finish within ${timeoutMs / 1000} seconds and was stopped.`;
      end(stopped(message, signal));
      context.stop(new Error(message));
    };
    const { onAsking } = context;
    // A person can take days.
    const onAskingNow = (isAsking: boolean): void => {
      onAsking?.(isAsking);
      clearTimeout(timer);
      if (isAsking) leftMs -= performance.now() - since;
      else {
        since = performance.now();
        timer = setTimeout(expire, Math.max(0, leftMs));
      }
    };
    context.onAsking = onAskingNow;
    if (!context.isAsking) timer = setTimeout(expire, timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(
      (output) => end(settledOutcome(output)),
      (error: unknown) => {
        // After an outage, an idempotent call, such as a task, continues, and so does one that has not begun.
        // kit's own file tools change nothing before their file is open.
        const isFile = tool.name === "write" || tool.name === "edit";
        const unstarted = builtInToolNames.has(tool.name) && (isFile || isUnstarted(error));
        const cause = tool.idempotent === true || unstarted ? outageOf(error) : undefined;
        end(
          cause === undefined
            ? thrownOutcome(error)
            : new Postponed("There is an outage.", { cause, isUnstarted: unstarted }),
        );
      },
    );
    // The tool itself may have aborted before the listener was added.
    if (signal.aborted) onAbort();
  });
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
