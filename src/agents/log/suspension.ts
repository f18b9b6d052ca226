import { KitError } from "../../base/kit-error.ts";
import type { EventBody } from "../../protocol/event.ts";

/**
 * The abort reason that suspends an operation which only waits for approval: it leaves memory without an event. After
 * the decision, the service starts the same operation with a signal that `suspensions` has: it resumes from the log, as
 * after a crash, and repeats no event.
 */
export class Suspension extends KitError {
  /** When the operation started, by its runtime's clock. */
  startedAt: number | undefined;
  /** The turn whose calls wait. */
  turnId: string | undefined;
  /** When each call started, in milliseconds of this process. */
  readonly #calls: { readonly id: string; readonly startedAt: number }[] = [];
  readonly #starts: string[] = [];
  readonly #requests: string[] = [];
  readonly #waiting = new Set<string>();

  constructor() {
    super({
      code: "aborted",
      message: "The operation is suspended until its approval is decided.",
      meta: { will_resume: true },
    });
  }

  /** Records a waiting call. */
  add(id: string, startedAt: number): void {
    this.#calls.push({ id, startedAt });
    this.#starts.push(id);
    this.#requests.push(id);
  }

  /** When a resumed call started. */
  startOf(id: string): number | undefined {
    return this.#calls.find((call) => call.id === id)?.startedAt;
  }

  /** Whether readers got this event before the suspension. */
  hasEmitted(body: EventBody): boolean {
    switch (body.type) {
      case "operation_start":
      case "agent_start":
        return true;
      case "tool_start":
        return take(this.#starts, body.tool_call_id);
      case "approval":
        // Its request is not repeated: it was withdrawn, and what the call asks now is new to readers.
        if (!this.#waiting.has(body.approval_id)) take(this.#requests, body.tool_call_id);
        return false;
      case "approval_request":
        this.#waiting.add(body.approval_id);
        return take(this.#requests, body.tool_call_id);
      default:
        return false;
    }
  }
}

/** Call ids come from providers and may repeat, so each entry counts once. */
function take(ids: string[], id: string): boolean {
  const at = ids.indexOf(id);
  if (at !== -1) ids.splice(at, 1);
  return at !== -1;
}

/** The suspensions from which operations resume, by the signals of the operations. */
export const suspensions: WeakMap<AbortSignal, Suspension> = new WeakMap();

/** Thrown by a call that continues when its operation resumes: it has no result yet. `cause` is the reason. */
export class Postponed extends Error {
  override readonly name = "Postponed";
  /** Whether the call has certainly not started. */
  readonly isUnstarted: boolean;

  constructor(
    message?: string,
    { cause, isUnstarted = false }: ErrorOptions & { readonly isUnstarted?: boolean } = {},
  ) {
    super(message, cause === undefined ? {} : { cause });
    this.isUnstarted = isUnstarted;
  }
}

/**
 * Whether an aborted operation will be resumed, by another process or at the next start: resumable work is then left
 * as a crash would leave it.
 */
export function willResume({ aborted, reason }: AbortSignal): boolean {
  if (!aborted || !(reason instanceof KitError)) return false;
  return reason.code === "lease_lost" || reason.meta?.will_resume === true;
}

/** The next attempt at failed work. */
export interface NextAttempt {
  readonly delayMs: number;
}

/** The attempt of an engine in which an operation runs. */
export interface OperationAttempt {
  /** The input that the operation works on. */
  readonly dispatch_id: string;
  /** From 1. */
  readonly number: number;
  /** Returns what the engine does if the operation fails with this error: undefined if the operation then has failed for good. */
  planRetry(error: unknown): Promise<NextAttempt | undefined>;
}

/** The attempts of operations that an engine tries again after some errors, by the signals of the operations. */
export const attempts: WeakMap<AbortSignal, OperationAttempt> = new WeakMap();
