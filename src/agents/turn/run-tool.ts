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
  /** Called when the tool ends, even after its timeout. */
  readonly ended: (() => void) | undefined;
}

/**
 * Runs a tool until it ends, is aborted or times out. A tool that ignores its signal is abandoned, so that aborts and
 * time limits always hold.
 */
export function execute(tool: ToolDefinition, run: Execution): Outcome | Promise<Outcome> {
  const { context, ended } = run;
  let work: ToolReturn | Promise<ToolReturn>;
  try {
    const returned = tool.execute(run.input, context);
    work = isGenerator(returned) ? readProgress(returned, context) : returned;
  } catch (error) {
    ended?.();
    return thrownOutcome(error);
  }
  if (!isPromise(work)) {
    ended?.();
    return toOutcome(work);
  }
  if (ended !== undefined) work.then(ended, ended);
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
    const end = (outcome: Outcome | Postponed): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      if (outcome instanceof Postponed) reject(outcome);
      else resolve(outcome);
    };
    const onAbort = (): void => {
      end(resumesLater(tool, signal) ? new Postponed() : stopped("The call was aborted.", signal));
      context.stop(signal.reason);
    };
    const timer = setTimeout(() => {
      const message = `The tool did not finish within ${timeoutMs / 1000} seconds and was stopped.`;
      end(stopped(message, signal));
      context.stop(new Error(message));
    }, timeoutMs);
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
