import { linkSignals } from "../../../base/abort.ts";
import { createId } from "../../../base/id.ts";
import { KitError } from "../../../base/kit-error.ts";
import type { AdmitRequest, EngineHandlers } from "../../contract.ts";
import { type EngineBase, fenceCheck } from "../engine-base.ts";
import { ownerOfInput } from "../work/owner.ts";
import type { LineScope, Work } from "../work/work-lines.ts";
import { lineOf } from "./dispatch-rows.ts";

export interface AttachedCalls {
  /** Waits in line, is tried once, and lives no longer than its caller. */
  call(request: AdmitRequest, handlers: EngineHandlers, signal?: AbortSignal): Promise<unknown>;
  /** How many wait, in a session, of an owner, or in all. */
  waiting(scope?: LineScope): number;
}

/** Inputs of callers who wait for the answer: in line like others, but nowhere on disk. */
export function createAttachedCalls(base: EngineBase): AttachedCalls {
  const { lines, lease, stopping } = base;
  const inLine = new Map<string, number>();
  const ofOwner = new Map<string, number>();
  let total = 0;

  function count({ line, owner }: Pick<Work, "line" | "owner">, change: 1 | -1): void {
    total += change;
    for (const [counts, name] of [
      [inLine, line],
      [ofOwner, owner],
    ] as const) {
      const now = (counts.get(name) ?? 0) + change;
      if (now === 0) counts.delete(name);
      else counts.set(name, now);
    }
  }

  return {
    waiting: ({ line, owner } = {}) => {
      if (line !== undefined) return inLine.get(line) ?? 0;
      return owner === undefined ? total : (ofOwner.get(owner) ?? 0);
    },
    call: (request, handlers, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const id = createId("call");
        const place = { id, line: lineOf(request), owner: ownerOfInput(request) };
        const leave = (): void => {
          if (lines.leave(place)) refuse(signal?.reason);
        };
        const refuse = (reason: unknown): void => {
          count(place, -1);
          signal?.removeEventListener("abort", leave);
          reject(reason);
        };
        const begin: Work["begin"] = async (standAside) => {
          count(place, -1);
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
        count(place, 1);
        signal?.addEventListener("abort", leave, { once: true });
        lines.join({ ...place, begin, forget: () => refuse(closing()) });
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
