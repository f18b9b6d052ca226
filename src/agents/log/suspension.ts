import { KitError } from "../../base/kit-error.ts";
import type { EventBody } from "../../protocol/event.ts";

/**
 * The reason that stops an operation which only waits for somebody's word: nothing of it stays in memory, and readers
 * are told nothing. Once there is a word, the same operation is asked for with a signal that `goOnFrom` marks: it goes on from
 * the log, as after a crash, and says nothing twice.
 */
export class Rested extends KitError {
  /** When the operation began, by its runtime's clock. */
  startedAt: number | undefined;
  /** The turn whose calls wait. */
  turnId: string | undefined;
  /** When each call began, in the milliseconds of this process. */
  readonly #calls: { readonly id: string; readonly startedAt: number }[] = [];
  readonly #starts: string[] = [];
  readonly #requests: string[] = [];

  constructor() {
    super({
      code: "aborted",
      message: "The operation goes on once somebody has decided.",
      meta: { will_resume: true },
    });
  }

  /** Takes down a call that waits. */
  add(id: string, startedAt: number): void {
    this.#calls.push({ id, startedAt });
    this.#starts.push(id);
    this.#requests.push(id);
  }

  /** When a call began that goes on. */
  startOf(id: string): number | undefined {
    return this.#calls.find((call) => call.id === id)?.startedAt;
  }

  /** Whether readers know this from before. */
  hasSaid(body: EventBody): boolean {
    switch (body.type) {
      case "operation_start":
      case "agent_start":
        return true;
      case "tool_start":
        return take(this.#starts, body.tool_call_id);
      case "approval_request":
        return take(this.#requests, body.tool_call_id);
      default:
        return false;
    }
  }
}

/** Ids of calls come from providers and may repeat, so each counts once. */
function take(ids: string[], id: string): boolean {
  const at = ids.indexOf(id);
  if (at !== -1) ids.splice(at, 1);
  return at !== -1;
}

const marked = new WeakMap<AbortSignal, Rested>();

/** Marks the signal of an operation that goes on from where it rested. */
export function goOnFrom(rested: Rested, signal: AbortSignal): void {
  marked.set(signal, rested);
}

/** From where the operation with that signal goes on. */
export function restedBefore(signal: AbortSignal | undefined): Rested | undefined {
  return signal === undefined ? undefined : marked.get(signal);
}

/** Whether the operation is stopped to rest. */
export function isRest(signal: AbortSignal): signal is AbortSignal & { readonly reason: Rested } {
  return signal.aborted && signal.reason instanceof Rested;
}

/** Thrown by a call that is to go on when its operation does: it has no result yet. The cause is why. */
export class PutOff extends Error {
  override readonly name = "PutOff";
}

/**
 * Whether an abort means that the same operation is asked for again, by another process or at the next
 * start: what can be gone on with then is left as a crash would leave it.
 */
export function isPutOff({ aborted, reason }: AbortSignal): boolean {
  if (!aborted || !(reason instanceof KitError)) return false;
  return reason.code === "lease_lost" || reason.meta?.will_resume === true;
}
