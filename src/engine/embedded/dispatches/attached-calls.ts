import { createId } from "../../../base/id.ts";
import { KitError } from "../../../base/kit-error.ts";
import type { SessionKey } from "../../../protocol/session-entry.ts";
import type { AdmitRequest, EngineHandlers } from "../../contract.ts";
import { type EngineBase, fenceCheck } from "../engine-base.ts";
import { linkSignals } from "../work/link-signals.ts";
import type { Work } from "../work/work-lines.ts";
import { lineOf } from "./dispatch-rows.ts";

export interface AttachedCalls {
  /** Waits in line, is tried once, and lives no longer than its caller. */
  call(request: AdmitRequest, handlers: EngineHandlers, signal?: AbortSignal): Promise<unknown>;
  /** How many wait, in a session or in all. */
  waiting(key?: SessionKey): number;
}

/** Inputs of callers who wait for the answer: in line like others, but nowhere on disk. */
export function createAttachedCalls(base: EngineBase): AttachedCalls {
  const { lines, lease, stopping } = base;
  const counts = new Map<string, number>();
  let total = 0;

  function count(line: string, change: 1 | -1): void {
    const now = (counts.get(line) ?? 0) + change;
    if (now === 0) counts.delete(line);
    else counts.set(line, now);
    total += change;
  }

  return {
    waiting: (key) => (key === undefined ? total : (counts.get(lineOf(key)) ?? 0)),
    call: (request, handlers, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const id = createId("call");
        const line = lineOf(request);
        const leave = (): void => {
          if (lines.leave({ id, line })) refuse(signal?.reason);
        };
        const refuse = (reason: unknown): void => {
          count(line, -1);
          signal?.removeEventListener("abort", leave);
          reject(reason);
        };
        const begin: Work["begin"] = async (standAside) => {
          count(line, -1);
          signal?.removeEventListener("abort", leave);
          const signals = [lease.signal, stopping, ...(signal === undefined ? [] : [signal])];
          const stop = linkSignals(signals);
          try {
            const { fence } = lease;
            const checkFence = fenceCheck(base, fence);
            const context = { id, attempt: 1, fence, signal: stop.signal, standAside, checkFence };
            resolve(await handlers.dispatch(context, request));
          } catch (error) {
            reject(error);
          } finally {
            stop.unlink();
          }
          return { ended: true };
        };
        count(line, 1);
        signal?.addEventListener("abort", leave, { once: true });
        lines.join({ id, line, begin, forget: () => refuse(closing()) });
      }),
  };
}

export function closing(): KitError {
  return new KitError({
    code: "unavailable",
    message: "The work is done by another process now, or this one is stopping. Try again.",
    meta: { retry_after_s: 1 },
  });
}
