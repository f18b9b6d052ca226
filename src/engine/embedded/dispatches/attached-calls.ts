import { linkSignals } from "../../../base/abort.ts";
import { createId } from "../../../base/id.ts";
import { KitError } from "../../../base/kit-error.ts";
import type { LinePlace, WorkContext } from "../../contract.ts";
import { fenceCheck } from "../../engine-base.ts";
import type { EmbeddedBase } from "../embedded-base.ts";
import { ownerOfInput } from "../work/owner.ts";
import type { LineScope, Work } from "../work/work-lines.ts";
import { lineOf } from "./dispatch-rows.ts";

/** Work of callers who wait for the answer: in line with the stored inputs of its session, but nowhere on disk. */
export class AttachedCalls {
  readonly #base: EmbeddedBase;
  readonly #ofLine = new Map<string, number>();
  readonly #ofOwner = new Map<string, number>();
  #total = 0;

  constructor(base: EmbeddedBase) {
    this.#base = base;
  }

  /** How many wait, in a session, of an owner, or in all. */
  waiting({ line, owner }: LineScope = {}): number {
    if (line !== undefined) return this.#ofLine.get(line) ?? 0;
    return owner === undefined ? this.#total : (this.#ofOwner.get(owner) ?? 0);
  }

  /** Runs `work` when its turn comes, once; see `Engine.inLine`. */
  run<Value>(
    at: LinePlace,
    work: (context: WorkContext) => Promise<Value>,
    signal?: AbortSignal,
  ): Promise<Value> {
    const { lines } = this.#base;
    const place = { id: createId("call"), line: lineOf(at), owner: ownerOfInput(at) };
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const leaveCount = (): void => {
        this.#count(place, -1);
        signal?.removeEventListener("abort", leave);
      };
      const refuse = (reason: unknown): void => {
        leaveCount();
        reject(reason);
      };
      const leave = (): void => {
        if (lines.leave(place)) refuse(signal?.reason);
      };
      const begin: Work["begin"] = async (releaseSlot) => {
        leaveCount();
        await this.#perform({ id: place.id, releaseSlot, signal }, work).then(resolve, reject);
        return { ended: true };
      };
      this.#count(place, 1);
      signal?.addEventListener("abort", leave, { once: true });
      lines.join({ ...place, begin, forget: () => refuse(closing()) });
    });
  }

  async #perform<Value>(
    {
      id,
      releaseSlot,
      signal,
    }: Pick<WorkContext, "id" | "releaseSlot"> & { readonly signal: AbortSignal | undefined },
    work: (context: WorkContext) => Promise<Value>,
  ): Promise<Value> {
    const { lease, stopping } = this.#base;
    const stop = linkSignals([lease.signal, stopping, signal]);
    try {
      const { fence } = lease;
      const checkFence = fenceCheck(this.#base, fence);
      return await work({ id, attempt: 1, fence, signal: stop.signal, releaseSlot, checkFence });
    } finally {
      stop.unlink();
    }
  }

  #count({ line, owner }: Pick<Work, "line" | "owner">, change: 1 | -1): void {
    this.#total += change;
    for (const [counts, name] of [
      [this.#ofLine, line],
      [this.#ofOwner, owner],
    ] as const) {
      const now = (counts.get(name) ?? 0) + change;
      if (now === 0) counts.delete(name);
      else counts.set(name, now);
    }
  }
}

export function closing(): KitError {
  return new KitError({
    code: "unavailable",
    message: "The work is done by another process now, or this one is stopping. Try again.",
    meta: { retry_after_s: 1 },
  });
}
